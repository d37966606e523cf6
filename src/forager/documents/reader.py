"""Reading pages: a request resolves the generation once, and cursors keep it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from urllib.parse import unquote
from uuid import UUID

from forager.archive.options import archive_options
from forager.archive.reader import ArchivedResponse, read_response
from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.names import defined_names, page_container
from forager.documents.page import DocumentRow, SectionRow
from forager.documents.publication import existing_source, missing_source, publish_hint
from forager.documents.sources import get_source
from forager.documents.store import generations, reads
from forager.documents.store.reads import select_carried_page, select_near_duplicates
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_key
from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.links import LinkStyle, relative_links
from forager.extract.sections import CONTINUED
from forager.extract.urls import NormalizedUrl, Refusal, normalize, other_scheme, with_scheme
from forager.hints import Hint, action
from forager.settings import Settings

__all__ = ["select_carried_page", "select_near_duplicates"]

MAX_VERSIONS = 500
INDEXED_PATH = 600
# a duplicate may repeat a duplicate: a redirect to a page that names another one
MAX_HOPS = 12
# sections that are listed if another one was requested
MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page with its sections."""

    document: DocumentRow
    sections: list[SectionRow]
    # the requested URL, if it is a duplicate of this page
    duplicate: str | None = None

    @property
    def markdown(self) -> str:
        """The whole page as markdown."""
        return as_markdown(self.sections)

    def with_links(self, style: LinkStyle) -> ReadPage:
        """The same page with its links absolute, or relative to it."""
        return replace(self, sections=with_links(self.sections, self.document.url, style))


async def list_documents(
    database: Database,
    source_id: str,
    *,
    path: str = "",
    cursor: str | None = None,
    limit: int = 100,
) -> Page[DocumentRow]:
    """Pages of a source by path. Later pages of the list are of the same generation."""
    check_limit(limit)
    async with database.connection() as connection:
        if cursor:
            generation_id, after = _decode(cursor)
        else:
            source = await existing_source(connection, source_id)
            if source.published_generation is None:
                return Page([], None)
            generation_id, after = source.published_generation, ("", 0)
        rows = await reads.select_documents(
            connection, source_id, generation_id, after=after, prefix=path, limit=limit + 1
        )
        # checked after the rows were read: until now they were complete
        if not await generations.generation_is_readable(connection, generation_id):
            raise InvalidInput(
                "the list has expired: its generation is gone", hint="Start again without a cursor."
            )
    return page_of(
        rows, limit, lambda row: encode_values(generation_id, row.path[:INDEXED_PATH], row.id)
    )


async def read_page(
    database: Database,
    url: str,
    *,
    source_id: str | None = None,
    generation: int | None = None,
    user_id: UUID | None = None,
) -> ReadPage:
    """A published page by its URL; without a source, the copy that was fetched last.

    With an owner, only pages in that owner's sources. A URL that the crawl settled as a duplicate
    leads to the page it repeats; one without a scheme is looked for under both. With a generation
    of the source, the page as that generation lists it.
    """
    if generation is not None and source_id is None:
        raise InvalidInput("a generation is a number of one source", hint="Name the source.")
    if generation is not None and source_id is not None:
        source_id = (await get_source(database, source_id, owner=user_id)).id
    spellings = spellings_of(url)
    async with database.connection() as connection:
        for spelling in spellings:
            if generation is None or source_id is None:
                found = await _find(connection, spelling, source_id, user_id)
            else:
                found = await reads.select_document_of_generation(
                    connection, url_key(spelling), source_id, generation, user_id
                )
            if found is not None:
                # documents are immutable: these are its sections even after a publication
                sections = (await reads.select_sections(connection, [found.id])).get(found.id, [])
                return ReadPage(found, sections, None if found.url == spelling else spelling)
        if generation is None:
            held_back = await generations.select_held_back_with(
                connection, url_key(spellings[0]), source_id, user_id
            )
            if held_back is not None:
                raise _held_back(spellings[0], held_back)
        if source_id is not None:
            named = await generations.select_sources_named(connection, source_id)
            if all(user_id not in (None, each.user_id) for each in named):
                raise await missing_source(connection, source_id, user_id)
    place = f" in {source_id}" if source_id else ""
    if generation is not None:
        place = f" in generation {generation} of {source_id}"
    raise NotFound(
        f"there is no page {spellings[0]}{place}",
        hint=Hint("{} finds pages by their content.", action("search")),
    )


def _held_back(url: str, generation: Generation) -> NotFound:
    return NotFound(
        f"{url} is not published: generation {generation.number} of {generation.source_id}"
        f" is {generation.label}",
        hint=publish_hint(generation.source_id),
    )


async def lists_page(database: Database, generation: Generation, url: str) -> bool:
    """Whether a generation lists a URL."""
    return await database.run(reads.generation_lists, generation.id, url_key(spellings_of(url)[0]))


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One content of a page, and the generations in a row that list it."""

    first: int
    last: int
    # when the server last sent or confirmed it
    fetched_at: datetime


async def page_versions(database: Database, document: DocumentRow) -> list[PageVersion]:
    """The versions of a page, newest first: the generations in which its content changed."""
    key = url_key(NormalizedUrl(document.url))
    rows = await database.run(reads.select_versions, document.source_id, key, limit=MAX_VERSIONS)
    versions: list[PageVersion] = []
    for _, listed in groupby(rows, key=lambda row: row[1]):
        generations = list(listed)
        versions.append(PageVersion(generations[-1][0], *generations[0][::2]))
    return versions


async def read_response_of(
    database: Database, settings: Settings, document: DocumentRow
) -> ArchivedResponse:
    """The archived response that a page was extracted from."""
    ref = await database.run(
        reads.select_response_ref, document.generation_id, url_key(NormalizedUrl(document.url))
    )
    if ref is None:
        raise NotFound(f"the response of {document.url} is not in the archive")
    return await read_response(archive_options(settings).open(), ref)


def spellings_of(url: str) -> list[NormalizedUrl]:
    """The URL of a page; without a scheme, under both."""
    given = with_scheme(url)
    normalized = normalize(given)
    if isinstance(normalized, Refusal):
        raise InvalidInput(f"{url!r} is not a page's URL: {normalized.value}")
    other = normalize(other_scheme(given))
    if "://" in url or isinstance(other, Refusal):
        return [normalized]
    return [normalized, other]


async def _find(
    connection: Connection, url: str, source_id: str | None, user_id: UUID | None
) -> DocumentRow | None:
    """The page at a URL, or the one that it repeats."""
    for _ in range(MAX_HOPS):
        key = url_key(NormalizedUrl(url))
        found = await reads.select_published_documents(connection, key, source_id, user_id)
        if found:
            return found[0]
        kept = await reads.select_page_repeated(connection, key, source_id, user_id)
        if kept is None:
            return None
        url = kept
    return None


async def read_path(database: Database, source_id: str, path: str) -> ReadPage:
    """A published page of a source by its path; of several, the first that was stored."""
    found = (await list_documents(database, source_id, path=path, limit=1)).items
    if not found or found[0].path != path:
        raise NotFound(
            f"source {source_id} has no page at {path}",
            hint="A path begins with a slash: /docs/intro",
        )
    sections = await database.run(reads.select_sections, [found[0].id])
    return ReadPage(found[0], sections.get(found[0].id, []))


async def sections_of(
    database: Database, document_ids: Sequence[int]
) -> dict[int, list[SectionRow]]:
    """The sections of each document, in the order of the page."""
    return await database.run(reads.select_sections, document_ids)


def requested_sections(page: ReadPage, url: str, name: str | None = None) -> list[SectionRow]:
    """The section with a name; without one, that of the URL's anchor if the page has it, or all."""
    if name is not None:
        return section_of(page, name)
    anchor = url.partition("#")[2]
    wanted = {anchor, unquote(anchor)} - {""}
    for start, section in enumerate(page.sections):
        if section.anchor in wanted or not wanted.isdisjoint(section.anchors):
            return page.sections[start : _end_of(page.sections, start)]
    return page.sections


def section_of(page: ReadPage, name: str) -> list[SectionRow]:
    """A section and everything below it: by its anchor or one in it, its heading or a name."""
    found = named_section(page.sections, page.document.title, name)
    if not found:
        raise no_such_section(page.document.url, name, page.sections)
    return found


def named_section(sections: Sequence[SectionRow], title: str | None, name: str) -> list[SectionRow]:
    """The section of a page with a name and everything below it; empty without such a section."""
    anchor = name.removeprefix("#")
    # a link escapes what an id need not
    anchors = {anchor, unquote(anchor)}
    folded = anchor.casefold()
    container = page_container(title, sections)
    matches: tuple[Callable[[SectionRow], bool], ...] = (
        lambda section: section.anchor in anchors,
        lambda section: not anchors.isdisjoint(section.anchors),
        lambda section: section.heading.casefold() == folded,
        lambda section: folded in defined_names(section, container),
    )
    for is_match in matches:
        for start, section in enumerate(sections):
            if is_match(section):
                return list(sections[start : _end_of(sections, start)])
    return []


def no_such_section(url: str, name: str, sections: Sequence[SectionRow]) -> NotFound:
    """The error for a section that the page does not have, with similar ones."""
    return NotFound(
        f"{url} has no section {name!r}",
        hint=f"Sections: {', '.join(_section_names(sections)[:MAX_NAMES])}",
    )


def _section_names(sections: Sequence[SectionRow]) -> list[str]:
    """Headings; also the anchor where several sections have the same heading, or it has none."""
    count = Counter(section.heading for section in sections)
    names = []
    for section in sections:
        is_unique = section.heading and count[section.heading] == 1
        anchor = "" if is_unique or not section.anchor else f"#{section.anchor}"
        names.append(" ".join(filter(None, (section.heading, anchor))))
    return list(dict.fromkeys(filter(None, names)))


def with_links(sections: Sequence[SectionRow], url: str, style: LinkStyle) -> list[SectionRow]:
    """Sections of the page at a URL, with their links in a style; they are stored absolute."""
    if style is LinkStyle.ABSOLUTE:
        return list(sections)
    return [replace(each, content=relative_links(each.content, url)) for each in sections]


def as_markdown(sections: Sequence[SectionRow]) -> str:
    """Sections joined as one text."""
    parts = []
    for section in sections:
        # text before the first heading has the page's title as heading, which is not part of it
        if 0 < section.level < CONTINUED:
            parts.append(f"{'#' * section.level} {escape_text(section.heading)}")
        if section.content:
            parts.append(section.content.strip("\n"))
    return "\n\n".join(parts) + "\n" if parts else ""


def _end_of(sections: Sequence[SectionRow], start: int) -> int:
    """Sections are in the order of the page, so what belongs to one follows it."""
    family = {sections[start].id}
    end = start + 1
    while end < len(sections) and sections[end].parent_id in family:
        family.add(sections[end].id)
        end += 1
    return end


def _decode(cursor: str) -> tuple[int, tuple[str, int]]:
    """The generation of a list, and the last path and document before the next page."""
    try:
        generation_id, path, document_id = decode_values(cursor)
        numbers = (generation_id, document_id)
        if not all(isinstance(n, int) and 0 <= n < 2**63 for n in numbers) or "\0" in path:
            raise ValueError(cursor)
        return generation_id, (str(path), document_id)
    except (ValueError, TypeError):
        raise unknown_cursor() from None
