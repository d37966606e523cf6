"""Search, the reader, and the explanation of a URL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query

from forager.crawl.explain.explanation import explain as explain_url
from forager.documents.reader import read_page
from forager.documents.search import SearchRequest
from forager.documents.search.hit import Hit, SearchPage
from forager.documents.search.service import search as search_sections
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
    visit: Reads, q: Text = "", source: Text = "", path: Text = "", cursor: Cursor = None
) -> Page:
    known = await list_sources(
        visit.here.database, user_id=visit.caller.sees_only, limit=MAX_SOURCES
    )
    found = await _found(visit, q.strip(), source, path, cursor)
    more = {"q": q, "source": source, "path": path}
    return Page(
        "search.html",
        {
            "q": q.strip(),
            "source": source,
            "wanted_path": path,
            "sources": [each.id for each in known.items],
            "found": found,
            "hits": [
                (hit, highlighted(hit.snippet, hit.highlights), _reading(hit))
                for hit in (found.hits if found else [])
            ],
            "next_url": f"/search?{urlencode({**more, 'cursor': found.next_cursor})}"
            if found and found.next_cursor
            else None,
        },
    )


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
    visit: Visit, text: str, source: str, path: str, cursor: str | None
) -> SearchPage | None:
    if not text:
        return None
    request = SearchRequest(
        query=text,
        source=source or None,
        path=path or None,
        user_id=visit.caller.sees_only,
        limit=HITS,
        cursor=cursor,
    )
    return await search_sections(visit.here.database, request, visit.here.engine)


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
