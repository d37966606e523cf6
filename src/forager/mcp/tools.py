"""The tools: each parses its arguments, calls one service, and shapes the answer."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field

from forager.access.caller import Scope
from forager.crawl.admission import start_crawl, start_refresh
from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.options import crawl_options
from forager.crawl.reports.report import CrawlReport, crawl_report
from forager.db.cursor import Page
from forager.documents import sources
from forager.documents.diff import diff_generations
from forager.documents.reader import ReadPage, as_markdown, section_of, sections_of
from forager.documents.reader import read_page as find_page
from forager.documents.search import SearchRequest, search
from forager.documents.source_lookup import find_by_name, summaries_of
from forager.errors import InvalidInput, NotFound
from forager.extract.markdown.links import LinkStyle
from forager.jobs.lifecycle import FINISHED, Status
from forager.mcp import views
from forager.mcp.call import Call
from forager.mcp.passages import passages
from forager.mcp.text import (
    DEFAULT_TOKENS,
    MAX_TOKENS,
    MIN_TOKENS,
    SEARCH_TOKENS,
    fenced_lines,
    fitting,
    more_of,
    numbered_lines,
    one_line,
    window,
)
from forager.settings.values import LARGEST_INT, PlainText

# of a call that waits for a crawl: below the time-out of common clients
MAX_WAIT = 50
POLL_SECONDS = 1.0
MAX_DIFF_PAGES = 200

Words = Annotated[PlainText, Field(min_length=1, max_length=2000)]
Url = Annotated[PlainText, Field(min_length=1, max_length=8000)]
Name = Annotated[PlainText, Field(min_length=1, max_length=500)]
AnySource = Annotated[
    Name | None, Field(description="From list_sources; `python` includes `python@3.13`.")
]
Number = Annotated[int, Field(ge=1, le=LARGEST_INT)]
Version = Annotated[Name | None, Field(description="Version of the source.")]
Versions = Annotated[
    PlainText | None, Field(max_length=100, description="Such as 3.12, >=3.10,<3.13 or 3.x.")
]
Generation = Annotated[
    Number | None, Field(description="Number of an older generation of `source`.")
]
JobId = Annotated[
    PlainText, Field(min_length=1, max_length=40, description="Job ID or a unique prefix.")
]
Limit = Annotated[int, Field(ge=1, le=50)]
Cursor = Annotated[
    PlainText | None, Field(description="From an earlier answer.", max_length=10_000)
]
FromLine = Annotated[int, Field(ge=1, le=LARGEST_INT, description="Continue at this line.")]
MaxTokens = Annotated[int, Field(ge=MIN_TOKENS, le=MAX_TOKENS, description="Length of the answer.")]
Wait = Annotated[int, Field(ge=0, le=MAX_WAIT, description="Wait up to this long.")]
Patterns = Annotated[
    list[Annotated[PlainText, Field(max_length=2000)]],
    Field(max_length=100, description="URL patterns, such as */api/*."),
]


# --- documents ---------------------------------------------------------------------------------


async def search_docs(
    call: Call,
    query: Annotated[Words, Field(description='Words, "exact phrases", identifiers, -without.')],
    source: AnySource = None,
    version: Versions = None,
    generation: Generation = None,
    path: Annotated[PlainText | None, Field(description="Only below this path.")] = None,
    limit: Limit = 8,
    cursor: Cursor = None,
    max_tokens: MaxTokens = SEARCH_TOKENS,
) -> str:
    """Search the crawled documentation; returns the text of the best sections with URLs to cite."""
    request = SearchRequest(
        query=query,
        source=source,
        version=version,
        generation=generation,
        path=path,
        user_id=call.caller.sees_only,
        limit=limit,
        cursor=cursor,
    )
    page = await search(
        call.services.database, request, call.services.engine, call.services.embedder
    )
    first = page.offset + 1
    sections = await sections_of(call.services.database, [hit.document_id for hit in page.items])
    shown = passages(page.items, sections, first, max_tokens)
    total = f"{'at least ' if page.capped else ''}{page.total}"
    last = page.offset + len(page.items)
    lines = [f"Results {first}-{last} of {total}." if shown else "No results."]
    notes = [page.note or "", f"Did you mean {page.suggestion}?" if page.suggestion else ""]
    lines += fenced_lines([*(one_line(note) for note in notes if note), *shown])
    if shown:
        lines.append("Text that is cut or missing: read_section(url).")
    if page.next_cursor:
        lines.append(f'More results: the same call with cursor="{page.next_cursor}"')
    return "\n".join(lines)


async def read_page(
    call: Call,
    url: Url,
    source: AnySource = None,
    version: Version = None,
    generation: Generation = None,
    from_line: FromLine = 1,
    max_tokens: MaxTokens = DEFAULT_TOKENS,
    absolute_links: bool = False,
) -> str:
    """Read a crawled page as markdown; a long one begins with its table of contents."""
    page = await _page(
        call, url, _labeled(source, version), generation, absolute_links=absolute_links
    )
    lines = numbered_lines(as_markdown(page.sections))
    shown = window(lines, from_line, max_tokens)
    answer = fenced_lines(views.citation(page))
    if from_line == 1 and shown.last < shown.total:
        headings = fitting(views.contents(page.sections), max_tokens // 3)
        answer += ["Contents (for read_section):", *fenced_lines(headings)]
        shown = window(lines, from_line, max_tokens - max_tokens // 3)
    call_again = f'read_page(url="{url}"{_of_generation(page, generation)}'
    return "\n".join([*answer, shown.note(call_again), *fenced_lines(shown.lines)])


async def read_section(
    call: Call,
    url: Annotated[Url, Field(description="A page; its #anchor names the section.")],
    section: Annotated[
        PlainText | None,
        Field(max_length=2000, description="Anchor, heading, defined name or section_id."),
    ] = None,
    source: AnySource = None,
    version: Version = None,
    generation: Generation = None,
    from_line: FromLine = 1,
    max_tokens: MaxTokens = DEFAULT_TOKENS,
    absolute_links: bool = False,
) -> str:
    """Read one section of a crawled page, with the sections below it."""
    address, _, anchor = url.partition("#")
    wanted = section or anchor
    if not wanted:
        raise InvalidInput("no section is named", hint="Give `section`, or a URL with #anchor.")
    page = await _page(
        call, address, _labeled(source, version), generation, absolute_links=absolute_links
    )
    ids = [each for each in page.sections if str(each.id) == wanted]
    found = ids or section_of(page, wanted)
    shown = window(numbered_lines(as_markdown(found)), from_line, max_tokens)
    of_generation = _of_generation(page, generation)
    call_again = f'read_section(url="{address}", section="{wanted}"{of_generation}'
    return "\n".join(
        [*fenced_lines(views.citation(page)), shown.note(call_again), *fenced_lines(shown.lines)]
    )


async def list_sources(
    call: Call,
    name: Annotated[
        Name | None, Field(description="Name of a library; typos are tolerated.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> str:
    """List what was crawled: sources with their versions, contents, pages and freshness."""
    database, owner = call.services.database, call.caller.sees_only
    if name is not None:
        found = await find_by_name(database, name, user_id=owner, limit=limit)
        page = Page(found, None)
    else:
        page = await sources.list_sources(database, user_id=owner, cursor=cursor, limit=limit)
    about = await summaries_of(database, page.items)
    listed = [views.source_line(source, about.get(source.id, "")) for source in page.items]
    lines = [*fenced_lines(listed), *more_of(page.next_cursor)]
    if not lines and name is not None:
        return "No source has such a name. list_sources() lists all; crawl_site adds one."
    return "\n".join(lines) or "There are no sources yet; crawl_site adds one."


async def source_changes(
    call: Call,
    source: Name,
    since_generation: Annotated[
        Number | None, Field(description="Default: the generation before.")
    ] = None,
    since: Annotated[
        AwareDatetime | None, Field(description="Compare with what was published at this time.")
    ] = None,
    against: Annotated[
        Name | None, Field(description="Compare with this version or source, such as 3.12.")
    ] = None,
    page: Annotated[Url | None, Field(description="Only this page: its URL or path.")] = None,
    section: Annotated[
        PlainText | None, Field(max_length=2000, description="Only this section of the page.")
    ] = None,
    from_line: FromLine = 1,
    max_tokens: MaxTokens = DEFAULT_TOKENS,
) -> str:
    """Show what changed in a source, or between two versions of it; sections as diffs."""
    database, owner = call.services.database, call.caller.sees_only
    named = await call.services.get_source(source)
    if against is not None:
        against = (await sources.get_other_source(database, named, against, owner=owner)).id
    old = since_generation
    if since is not None and old is None:
        old = await _generation_at(call, against or named.id, since)
    diff = await diff_generations(
        database,
        named.id,
        old,
        against=against,
        page=page,
        section=section,
        with_sections=True,
        limit=MAX_DIFF_PAGES,
    )
    shown = window(numbered_lines(views.diff_text(diff)), from_line, max_tokens)
    same = {"source": named.id, "against": against, "page": page, "section": section}
    again = ", ".join(f'{name}="{value}"' for name, value in same.items() if value)
    note = shown.note(f"source_changes({again}, since_generation={diff.old}")
    return "\n".join([views.diff_title(diff), note, *fenced_lines(shown.lines)])


async def explain_url(call: Call, url: Url, job_id: JobId | None = None) -> str:
    """Explain what the crawl did with a URL, why, and whether it would be fetched now."""
    found = await call.services.explain(url, job_id)
    return "\n".join(fenced_lines([views.explanation_text(found)]))


# --- crawls ------------------------------------------------------------------------------------


async def crawl_site(
    call: Call,
    url: Annotated[Url | None, Field(description="Where to start; not for a refresh.")] = None,
    source: Annotated[
        Name | None, Field(description="Name of the source; alone, refreshes that source.")
    ] = None,
    version: Annotated[Name | None, Field(description="Version of the source.")] = None,
    scope: ScopeMode | None = None,
    include: Patterns = [],  # noqa: B006 - a default in the schema, never changed
    exclude: Patterns = [],  # noqa: B006
    max_pages: Annotated[int | None, Field(ge=1, le=LARGEST_INT)] = None,
    max_depth: Annotated[int | None, Field(ge=0, le=10_000)] = None,
    wait_seconds: Wait = 0,
) -> str:
    """Crawl a site into a source, or refresh a source. Returns the job's id at once.

    A source that is being crawled already answers with that job. Follow it with job_status.
    """
    call.caller.require(Scope.OPERATE)
    name = _labeled(source, version)
    context = call.services.context
    if url is not None:
        given = {"scope": scope, "max_pages": max_pages, "max_depth": max_depth}
        payload = {key: value for key, value in given.items() if value is not None}
        options = crawl_options({"urls": [url], "include": include, "exclude": exclude, **payload})
        asked = await start_crawl(context, options, source=name)
    elif name is not None:
        found = await call.services.get_source(name)
        asked = await start_refresh(context, found)
    else:
        raise InvalidInput("there is nothing to crawl", hint="Give `url`, or `source` to refresh.")
    if call.host.crawls is not None and asked.job.status is not Status.PAUSED:
        call.host.crawls.start(asked.job.id)
    begun = "Started" if asked.created else "Already in progress"
    report = await _follow(call, asked.job.id, wait_seconds)
    return f"{begun}. {views.job_text(report)}"


async def job_status(call: Call, job_id: JobId, wait_seconds: Wait = 0) -> str:
    """Show how far a crawl is, and what it has published."""
    job = await call.services.find_job(job_id)
    return views.job_text(await _follow(call, job.id, wait_seconds))


async def _follow(call: Call, job_id: UUID, seconds: int) -> CrawlReport:
    """The report of a crawl when it has ended or the time is up; progress until then."""
    deadline = time.monotonic() + seconds
    while True:
        report = await crawl_report(call.services.database, call.services.queue, job_id)
        ledger = report.ledger
        settled = ledger.discovered - ledger.pending
        message = f"{report.job.shown_status}: {ledger.pages} pages, {ledger.pending} pending"
        await call.report_progress(settled, max(1, ledger.discovered), message)
        over = report.job.status in FINISHED or report.job.status is Status.PAUSED
        if over or time.monotonic() >= deadline:
            return report
        await asyncio.sleep(POLL_SECONDS)


# --- shared ------------------------------------------------------------------------------------


def _labeled(source: str | None, version: str | None) -> str | None:
    if version is None:
        return source
    if source is None:
        raise InvalidInput("a version belongs to a source", hint="Give `source` as well.")
    return f"{source}@{version}"


async def _page(
    call: Call, url: str, source: str | None, generation: int | None, *, absolute_links: bool
) -> ReadPage:
    page = await find_page(
        call.services.database,
        url,
        source_id=source,
        generation=generation,
        user_id=call.caller.sees_only,
    )
    return page.with_links(LinkStyle.ABSOLUTE if absolute_links else LinkStyle.RELATIVE)


def _of_generation(page: ReadPage, generation: int | None) -> str:
    """Arguments that a call for more of the same page needs."""
    if generation is None:
        return ""
    return f', source="{page.document.source_id}", generation={generation}'


async def _generation_at(call: Call, source: str, at: datetime) -> int:
    """The generation that readers saw at a time."""
    page = await sources.list_generations(call.services.database, source, limit=100)
    for generation in page.items:
        if generation.published_at is not None and generation.published_at <= at:
            return generation.number
    raise NotFound(f"nothing of {source} that was published by then is kept")
