"""Search, the reader, and the explanation of a URL."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Header, Query
from starlette.responses import Response

from forager.api.streams import response_file
from forager.archive.warc_record import ArchiveError
from forager.documents.reader import (
    PageVersion,
    ReadPage,
    page_versions,
    read_page,
    read_response_of,
)
from forager.documents.search import Hit, SearchPage, SearchRequest, SectionKind
from forager.documents.search import search as search_sections
from forager.documents.search.hit import preferred_language
from forager.documents.section_diff import SectionChange, compare_sections
from forager.documents.sources import get_generation, list_sources
from forager.errors import InvalidInput, NotFound
from forager.web.content import render_diffs, render_sections
from forager.web.formats import highlighted
from forager.web.page import WebPage, new_router, page
from forager.web.responses import ShownResponse, shown_response
from forager.web.visit import ReaderVisit, WebVisit

router = new_router()

HITS = 20
# sources in the list of the form; others are reached from their own page
MAX_SOURCES = 200
# of the table of contents of a page
MAX_CONTENTS = 200
DEEPEST = 4

Text = Annotated[str, Query(max_length=2000)]
Cursor = Annotated[str | None, Query(max_length=60_000)]


@page(router, "/search")
async def search(
    visit: ReaderVisit,
    q: Text = "",
    source: Text = "",
    path: Text = "",
    language: Text = "",
    kind: Text = "",
    cursor: Cursor = None,
    accept_language: Annotated[str | None, Header()] = None,
) -> WebPage:
    known = await list_sources(visit.database, user_id=visit.caller.sees_only, limit=MAX_SOURCES)
    filters = {"q": q.strip(), "source": source, "path": path, "language": language, "kind": kind}
    found = await _found(visit, filters, cursor, preferred_language(accept_language))
    return WebPage(
        "search.html",
        **filters,
        wanted_path=path,
        sources=[each.id for each in known.items],
        found=found,
        hits=[
            (hit, highlighted(hit.snippet, hit.highlights), _reader_url(hit))
            for hit in (found.items if found else [])
        ],
        facets=_facets(found, filters) if found else [],
        suggestion_url=_url(filters, q=found.suggestion) if found and found.suggestion else None,
        next_url=visit.following(found.next_cursor) if found else None,
    )


def _url(filters: dict[str, str], **changes: str | None) -> str:
    fields = {**filters, **changes}
    return f"/search?{urlencode({name: value for name, value in fields.items() if value})}"


def _facets(found: SearchPage, filters: dict[str, str]) -> list[tuple[str, str, int, str, bool]]:
    """Name, value, number of pages, the URL that turns it on or off, and whether it is on."""
    return [
        (
            name,
            value,
            count,
            _url(filters, **{name: None if filters[name] == value else value}),
            filters[name] == value,
        )
        for name in ("source", "language", "kind")
        for value, count in found.facets.get(name, {}).items()
        if len(found.facets[name]) > 1 or name == "kind" or filters[name]
    ]


class ReaderTab(StrEnum):
    """A view of a page in the reader."""

    PAGE = "page"
    MARKDOWN = "markdown"
    ORIGINAL = "original"
    CHANGES = "changes"


Generation = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@page(router, "/read")
async def read(
    visit: ReaderVisit,
    url: Text,
    source: Text = "",
    section: Text = "",
    tab: ReaderTab = ReaderTab.PAGE,
    generation: Generation = None,
    old: Generation = None,
) -> WebPage:
    found = await _read(visit, url, source, generation)
    document = found.document
    published = (await visit.get_source(document.source_id)).published_number
    versions = await page_versions(visit.database, found.document)
    # deeper headings are on the page, but would make the contents longer than most screens
    headings = [each for each in found.sections if each.heading and 0 < each.level < DEEPEST]
    side = visit.request.query_params.get("view") == "side"
    changes = await _changes(visit, found, versions, old) if tab is ReaderTab.CHANGES else None
    texts = [each.content for each in found.sections] if tab is ReaderTab.PAGE else []
    return WebPage(
        "read.html",
        page=found,
        section=section,
        tab=tab,
        tabs=list(ReaderTab),
        contents=headings[:MAX_CONTENTS],
        contents_html=await render_sections(texts),
        versions=versions,
        shown=_version_of(versions, document.generation_number),
        # the version that readers see; None if the published generation does not have the page
        current=None if published is None else _version_of(versions, published),
        generation=await get_generation(
            visit.database, document.source_id, document.generation_number
        ),
        stored=await _stored(visit, found) if tab is ReaderTab.ORIGINAL else None,
        changes=changes,
        diffs=await render_diffs([each.diff for each in changes[1]], side=side) if changes else [],
        side=side,
    )


@router.get("/read/original", response_model=None)
async def original(
    visit: ReaderVisit, url: Text, source: Text = "", generation: Generation = None
) -> Response:
    found = await _read(visit, url, source, generation)
    stored = await read_response_of(visit.database, visit.settings, found.document)
    return response_file(stored.body, f"page-{found.document.id}.bin")


@router.get("/read/picture", response_model=None)
async def picture(
    visit: ReaderVisit, url: Text, source: Text = "", generation: Generation = None
) -> Response:
    """The picture that was stored with a rendered page."""
    found = await _read(visit, url, source, generation)
    stored = await read_response_of(visit.database, visit.settings, found.document)
    if not stored.picture:
        raise NotFound("no picture of this page is stored")
    return Response(stored.picture, media_type="image/png")


async def _read(visit: WebVisit, url: str, source: str, generation: int | None) -> ReadPage:
    return await read_page(
        visit.database,
        url,
        source_id=source or None,
        generation=generation if source else None,
        user_id=visit.caller.sees_only,
    )


def _version_of(versions: list[PageVersion], number: int) -> PageVersion | None:
    return next((each for each in versions if each.first <= number <= each.last), None)


async def _stored(visit: WebVisit, found: ReadPage) -> ShownResponse | None:
    """The archived response; None if the archive no longer has it."""
    try:
        return shown_response(
            await read_response_of(visit.database, visit.settings, found.document)
        )
    except (ArchiveError, NotFound):
        return None


async def _changes(
    visit: WebVisit, found: ReadPage, versions: list[PageVersion], old: int | None
) -> tuple[PageVersion, list[SectionChange]] | None:
    """The older version of a page that is compared, and what differs from it."""
    older = [each for each in versions if each.last < found.document.generation_number]
    chosen = _version_of(older, old) if old else None
    if (before := chosen or next(iter(older), None)) is None:
        return None
    document = found.document
    earlier = await _read(visit, document.url, document.source_id, before.last)
    return before, await compare_sections(earlier.sections, found.sections)


async def _found(
    visit: WebVisit, filters: dict[str, str], cursor: str | None, prefers: str | None
) -> SearchPage | None:
    if not filters["q"]:
        return None
    request = SearchRequest(
        query=filters["q"],
        source=filters["source"] or None,
        path=filters["path"] or None,
        language=filters["language"] or None,
        kind=SectionKind(filters["kind"]) if filters["kind"] in list(SectionKind) else None,
        prefers=prefers,
        user_id=visit.caller.sees_only,
        limit=HITS,
        cursor=cursor,
    )
    return await search_sections(visit.database, request, visit.engine, visit.embedder)


def _reader_url(hit: Hit) -> str:
    place = {"url": hit.url, "source": hit.source_id, "section": str(hit.section_id)}
    return f"/read?{urlencode(place)}#s-{hit.section_id}"


UrlText = Annotated[str, Query(max_length=10_000)]
JobName = Annotated[str, Query(max_length=100)]


@page(router, "/explain")
async def explain(visit: ReaderVisit, url: UrlText = "", job: JobName = "") -> WebPage:
    url, job = url.strip(), job.strip()
    found, crawl, problem = None, None, None
    try:
        if url:
            found = await visit.explain(url, job or None)
            crawl = await visit.queue.get(found.job_id) if found.job_id else None
    except (InvalidInput, NotFound) as error:
        problem = error
    at = datetime.now(UTC)
    return WebPage(
        "explain.html", url=url, job=job, found=found, crawl=crawl, at=at, problem=problem
    )
