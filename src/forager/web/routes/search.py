"""Search, the reader, and the explanation of a URL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Header, Query

from forager.crawl.explain.explanation import explain as explain_url
from forager.documents.reader import read_page
from forager.documents.search import Hit, SearchPage, SearchRequest, SectionKind
from forager.documents.search import search as search_sections
from forager.documents.search.hit import preferred_language
from forager.documents.sources import list_sources
from forager.errors import InvalidInput, NotFound
from forager.web.formats import highlighted
from forager.web.page import Page, new_router, page
from forager.web.visit import Reads, Visit

router = new_router()

HITS = 20
# sources that are offered in the list; others can be reached from their own page
MAX_SOURCES = 200
# of the table of contents of a page
MAX_CONTENTS = 200
DEEPEST = 4

Text = Annotated[str, Query(max_length=2000)]
Cursor = Annotated[str | None, Query(max_length=60_000)]


@page(router, "/search")
async def search(
    visit: Reads,
    q: Text = "",
    source: Text = "",
    path: Text = "",
    language: Text = "",
    kind: Text = "",
    cursor: Cursor = None,
    accept_language: Annotated[str | None, Header()] = None,
) -> Page:
    known = await list_sources(
        visit.here.database, user_id=visit.caller.sees_only, limit=MAX_SOURCES
    )
    filters = {"q": q.strip(), "source": source, "path": path, "language": language, "kind": kind}
    found = await _found(visit, filters, cursor, preferred_language(accept_language))
    return Page(
        "search.html",
        {
            **filters,
            "wanted_path": path,
            "sources": [each.id for each in known.items],
            "found": found,
            "hits": [
                (hit, highlighted(hit.snippet, hit.highlights), _reading(hit))
                for hit in (found.items if found else [])
            ],
            "facets": _facets(found, filters) if found else [],
            "suggestion_url": _url(filters, q=found.suggestion)
            if found and found.suggestion
            else None,
            "next_url": _url(filters, cursor=found.next_cursor)
            if found and found.next_cursor
            else None,
        },
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


@page(router, "/read")
async def read(
    visit: Reads,
    url: Text,
    source: Text = "",
    section: Text = "",
    format: Literal["page", "markdown"] = "page",
) -> Page:
    found = await read_page(
        visit.here.database, url, source_id=source or None, user_id=visit.caller.sees_only
    )
    # deeper headings are on the page, but would make the contents longer than most screens
    headings = [each for each in found.sections if each.heading and 0 < each.level < DEEPEST]
    return Page(
        "read.html",
        {"page": found, "section": section, "format": format, "contents": headings[:MAX_CONTENTS]},
    )


async def _found(
    visit: Visit, filters: dict[str, str], cursor: str | None, prefers: str | None
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
    return await search_sections(
        visit.here.database, request, visit.here.engine, visit.here.embedder
    )


def _reading(hit: Hit) -> str:
    place = {"url": hit.url, "source": hit.source_id, "section": str(hit.section_id)}
    return f"/read?{urlencode(place)}#s-{hit.section_id}"


UrlText = Annotated[str, Query(max_length=10_000)]
JobName = Annotated[str, Query(max_length=100)]


@page(router, "/explain")
async def explain(visit: Reads, url: UrlText = "", job: JobName = "") -> Page:
    values: dict[str, object] = {"url": url.strip(), "job": job.strip(), "trouble": None}
    if not url.strip():
        return Page("explain.html", {**values, "found": None})
    try:
        return Page("explain.html", {**values, **await _explained(visit, url.strip(), job.strip())})
    except (InvalidInput, NotFound) as error:
        return Page("explain.html", {**values, "found": None, "trouble": error})


async def _explained(visit: Visit, url: str, job: str) -> dict[str, object]:
    here, owner = visit.here, visit.caller.sees_only
    chosen = await here.job_of(visit.caller, await here.queue.resolve(job)) if job else None
    found = await explain_url(
        here.database, here.queue, url, job_id=chosen.id if chosen else None, user_id=owner
    )
    crawl = await here.queue.get(found.job_id) if found.job_id else None
    return {"found": found, "crawl": crawl, "at": datetime.now(UTC)}
