"""`forager search`, `search reindex` and `read`: find and print published pages."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from forager.cli.options import Cursor, option
from forager.cli.output import clean, console, counted, note, note_more, short_time, write
from forager.cli.running import CommandServices, answers
from forager.documents.operations import reading as operations
from forager.documents.search.hit import MAX_HITS, UNEMBEDDED
from forager.errors import InvalidInput
from forager.extract.markdown.links import LinkStyle
from forager.index.engine import open_engine
from forager.settings import Search

if TYPE_CHECKING:
    from rich.console import Console

    from forager.index.reindex import Reindexed

REINDEX = "reindex"
WORDS = "words"


class IndexName(StrEnum):
    """An index of the search engine."""

    SECTIONS = "sections"
    PRODUCTS = "products"


def _show_reindexed(done: list[Reindexed]) -> None:
    for each in done:
        rows = "document" if each.kind == IndexName.SECTIONS else "product"
        again = ", resumed from an earlier run" if each.resumed else ""
        note(f"{each.kind}: {counted(each.rows, rows)} in {each.seconds:.1f} s{again}")


@answers(_show_reindexed)
async def reindex(
    services: CommandServices, only: IndexName | None = option("Rebuild only this index.")
) -> object:
    """Rebuild the indexes of the search engine from PostgreSQL.

    Searches keep working, with the old index or with PostgreSQL. The next run resumes an
    interrupted one.
    """
    # imported only where a search engine is configured
    from forager.documents.search.indexing import INDEXED_SECTIONS
    from forager.index.client import EngineClient
    from forager.index.reindex import Reindexer
    from forager.products.indexing import INDEXED_PRODUCTS

    settings = services.settings
    if settings.search is Search.POSTGRES or settings.opensearch_url is None:
        raise InvalidInput(
            "there is no search engine: PostgreSQL is searched, and needs no index made",
            hint="Set FORAGER_SEARCH=opensearch and FORAGER_OPENSEARCH_URL.",
        )
    kinds = [kind for kind in (INDEXED_SECTIONS, INDEXED_PRODUCTS) if only in (None, kind.name)]
    async with EngineClient(settings.opensearch_url.get_secret_value()) as client:
        with services.steps("") as steps:
            reindexer = Reindexer(
                services.database,
                client,
                settings.opensearch_prefix,
                progress=lambda kind, rows, total: steps.show(rows, total=total, what=kind),
            )
            return [await reindexer.run(kind) for kind in kinds]


class SearchGroup(TyperGroup):
    """A group whose default command searches for the given words."""

    @property
    def default(self) -> Any:
        return self.commands[WORDS]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # the command has options only: with words after it, it is a word of a query
        is_command = args[:1] == [REINDEX] and not (args[1:] and args[1][:1] != "-")
        return super().parse_args(ctx, args if is_command else [WORDS, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        # usage messages omit the name of the default command
        return ("" if name == WORDS else name), command, rest


app = typer.Typer(
    cls=SearchGroup,
    help="Search what was crawled and published; rebuild the index of a search engine.",
)
app.command(REINDEX)(reindex)


def show_hits(page: Any, out: Console | None = None, err: Console | None = None) -> None:
    """Print the hits, and notes about them on standard error; or both on other consoles."""
    out = out or console()
    for hit in page.items:
        _show_hit(hit, out)
    total = f"{'at least ' if page.capped else ''}{counted(page.total, 'result')}"
    shown = f"{len(page.items)} of {total}" if page.items else "no results"
    note(shown, err)
    if page.note:
        note(page.note, err)
    if page.capped:
        note(
            "Too many sections match, so only some were ranked. Add words to narrow the search.",
            err,
        )
    note_more(page.next_cursor, err)


def _show_hit(hit: Any, out: Console) -> None:
    from rich.text import Text

    head = hit.heading or hit.title
    place = hit.title if hit.title and hit.title != hit.heading else hit.source
    out.print(Text.assemble((clean(head), "bold"), (f"  {clean(place)}", "dim")), soft_wrap=True)
    out.print(clean(hit.url), style="cyan", soft_wrap=True)
    # the ranges fit the cleaned text: cleaning replaces one character by one
    snippet = Text(clean(hit.snippet))
    for start, end in hit.highlights:
        snippet.stylize("bold", start, end)
    out.print(snippet, soft_wrap=True)
    if further := _further(hit):
        out.print(Text(clean(further), "dim"), soft_wrap=True)
    out.print()


def _further(hit: Any) -> str:
    """Further sections of the page, and other pages with the same text."""
    parts = []
    if hit.more_sections:
        listed = ", ".join(section.heading for section in hit.sections if section.heading)
        parts.append(f"{counted(hit.more_sections, 'more section')} of this page: {listed}")
    if hit.repeats:
        parts.append(f"{hit.repeats} more with the same text")
    if hit.missing:
        parts.append(f"without: {', '.join(hit.missing)}")
    return " · ".join(parts)


@app.command(WORDS, hidden=True)
@answers(show_hits)
async def search(
    services: CommandServices,
    words: Annotated[
        list[str],
        typer.Argument(help='Words, "exact phrases", identifiers, -without, one or another.'),
    ],
    wanted: operations.SearchFilters,
    limit: int = option("Maximum number of results.", default=10, min=1, max=MAX_HITS),
    cursor: Cursor = None,
) -> object:
    """Search published documents. Words that begin with - go after --.

    `forager search -- reindex` searches for the word; `forager search reindex` is a command.
    """
    return await find(services, " ".join(words), wanted, limit, cursor)


async def find(
    services: CommandServices,
    words: str,
    wanted: operations.SearchFilters,
    limit: int,
    cursor: str | None = None,
) -> object:
    async with open_engine(services.settings) as engine:
        context = replace(services.context, engine=engine)
        page = await operations.search(context, words, wanted, limit, cursor)
    if UNEMBEDDED in (page.note or ""):
        from forager.documents.search.background import embed_in_background

        await embed_in_background(services.database, services.settings)
    return page


def _show_page(page: Any) -> None:
    document = page.document
    if page.duplicate:
        note(f"{page.duplicate} repeats {document.url}: this is that page")
    if document.carried_since:
        since = short_time(document.carried_since)
        note(f"carried over: the page fails since {since} ({document.carried_reason})")
    write(clean(page.markdown).encode("utf-8", "replace"))


@answers(_show_page)
async def read(
    services: CommandServices,
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL of a crawled page.")],
    source: str | None = option("Source to read from.", show_default="the one fetched last"),
    generation: int | None = option(
        "Generation of the source.", min=1, show_default="the published one"
    ),
    section: str | None = option(
        "Only this section and those below it: an anchor, heading or name."
    ),
    links: LinkStyle = option("Links to pages of the same host.", default=LinkStyle.ABSOLUTE),
) -> object:
    """Print the published markdown of a page, or of one of its sections.

    A URL with an anchor prints the section with that anchor.
    """
    return await operations.read(
        services.context, url, source=source, generation=generation, section=section, links=links
    )
