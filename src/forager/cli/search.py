"""`forager search`: find sections in what was crawled. `forager search reindex` is beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from forager.cli.flags import flags_of
from forager.cli.options import AsJson, Cursor
from forager.cli.output import console, note, say, show_json
from forager.cli.running import run
from forager.cli.search_reindex import reindex
from forager.cli.words import clean, counted

if TYPE_CHECKING:
    from forager.documents.search import Hit, SearchPage, SearchRequest
    from forager.settings import Settings

MAX_HITS = 100
REINDEX = "reindex"
WORDS = "words"


class SearchGroup(TyperGroup):
    """Whatever is not the name of a command is looked for."""

    @property
    def default(self) -> Any:
        return self.commands[WORDS]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args[:1] == [REINDEX] else [WORDS, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        # shown as it was typed: without a name
        return ("" if name == WORDS else name), command, rest


app = typer.Typer(
    name="search",
    cls=SearchGroup,
    help="Search what was crawled and published; make the index of a search engine anew.",
)
app.command(REINDEX)(reindex)


@app.command(WORDS, hidden=True)
def search(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(help='Words, "exact phrases", identifiers, -without, one or another.'),
    ],
    source: Annotated[str | None, typer.Option(help="Only in this source.")] = None,
    path: Annotated[str | None, typer.Option(help="Only pages whose path begins so.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_HITS, help="How many to show at most.")] = 10,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Search what was crawled and published. Words that begin with - go behind a --.

    The word reindex alone goes behind one too: `forager search reindex` is a command.
    """
    from forager.documents.search import SearchRequest

    request = SearchRequest(
        query=" ".join(words), source=source, path=path, limit=limit, cursor=cursor
    )
    page = run(find(flags_of(context).load(), request))
    if as_json:
        show_json(page)
    else:
        show_hits(page)


async def find(settings: Settings, request: SearchRequest) -> SearchPage:
    from forager.db.database import open_database
    from forager.documents.search import search
    from forager.index.engine import open_engine

    async with (
        open_database(settings, name="forager search") as database,
        open_engine(settings) as engine,
    ):
        return await search(database, request, engine)


# --- how it looks ------------------------------------------------------------------------------


def show_hits(page: SearchPage) -> None:
    """Hits for people: highlighted, with what was left out said below."""
    for hit in page.hits:
        _show_hit(hit)
    milliseconds = page.took * 1000
    note(f"{counted(len(page.hits), 'hit')} in {milliseconds:.0f} ms")
    if page.note:
        note(page.note)
    if page.capped:
        note("So many sections match that only a part was ranked. More words find better ones.")
    if page.next_cursor:
        note(f"There are more: --cursor {page.next_cursor}")


def _show_hit(hit: Hit) -> None:
    from rich.text import Text

    head = hit.heading or hit.title
    console().print(
        Text.assemble((clean(head), "bold"), (f"  {clean(_place(hit))}", "dim")), soft_wrap=True
    )
    say(hit.url, "cyan")
    # ranges hold for the text as it is: control characters were taken out of it before
    snippet = Text(clean(hit.snippet))
    for start, end in hit.highlights:
        snippet.stylize("bold", start, end)
    console().print(snippet, soft_wrap=True)
    say("")


def _place(hit: Hit) -> str:
    return hit.title if hit.title and hit.title != hit.heading else hit.source_id
