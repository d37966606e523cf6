"""Read and search published pages, and explain URLs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query

from forager.api.models.documents import (
    Document,
    Explanation,
    Reading,
    SearchAnswer,
    Sections,
)
from forager.api.models.sources import Number
from forager.api.models.values import LARGEST_INT, PlainText
from forager.api.paging import Cursor, Limit, Listed, listed
from forager.api.services import Here, Reader
from forager.crawl.explain.explanation import explain as explain_url
from forager.documents.reader import list_documents, read_page, read_path, section_of
from forager.documents.search import SearchRequest
from forager.documents.search import search as search_sections
from forager.documents.search.hit import MAX_HITS, SectionKind, preferred_language

router = APIRouter()

SourceName = Annotated[PlainText, Query(min_length=1, max_length=500)]
AnySource = Annotated[PlainText | None, Query(min_length=1, max_length=500)]
PathText = Annotated[PlainText, Query(max_length=8000)]
Url = Annotated[PlainText, Query(min_length=1, max_length=8000, examples=["https://example.org/"])]


@router.get("/documents", tags=["documents"])
async def documents(
    source: SourceName,
    here: Here,
    caller: Reader,
    path: Annotated[PathText, Query(description="Only paths that begin like this.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listed[Document]:
    """The published pages of a source by path; a cursor stays in its generation."""
    await here.source_of(caller, source)
    page = await list_documents(here.database, source, path=path, cursor=cursor, limit=limit)
    return listed(page, Document.of)


@router.get("/documents/read", tags=["documents"])
async def read(
    url: Url,
    here: Here,
    caller: Reader,
    source: AnySource = None,
    generation: Annotated[
        int | None,
        Query(ge=1, le=LARGEST_INT, description="Number of a generation of the source."),
    ] = None,
    section: Annotated[
        PlainText | None,
        Query(max_length=2000, description="Only this section: its anchor, heading or name."),
    ] = None,
) -> Reading:
    """A published page as markdown and sections; without a source, the copy fetched last."""
    page = await read_page(
        here.database, url, source_id=source, generation=generation, user_id=caller.sees_only
    )
    sections = page.sections if section is None else section_of(page, section)
    return Reading.build(page, sections)


@router.get("/sections", tags=["documents"])
async def sections(
    source: SourceName,
    path: Annotated[PathText, Query(description="The whole path of a page.")],
    here: Here,
    caller: Reader,
) -> Sections:
    """The sections of a published page, by the source and the path of the page."""
    await here.source_of(caller, source)
    return Sections.of(await read_path(here.database, source, path))


@router.get("/search", tags=["search"])
async def search(
    q: Annotated[
        PlainText,
        Query(
            max_length=2000,
            description='Words, "exact phrases", identifiers, -without, one or another.',
            examples=["connection pool"],
        ),
    ],
    here: Here,
    caller: Reader,
    source: AnySource = None,
    generation: Annotated[
        Number | None, Query(description="Search this generation of the source.")
    ] = None,
    path: Annotated[PathText | None, Query(description="Only below this path.")] = None,
    language: Annotated[
        PlainText | None,
        Query(max_length=35, description="Only pages in this language.", examples=["en"]),
    ] = None,
    kind: Annotated[SectionKind | None, Query(description="Only sections of this kind.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 10,
    cursor: Cursor = None,
    accept_language: Annotated[
        str | None, Header(description="The reader's language, which comes first.")
    ] = None,
) -> SearchAnswer:
    """Published pages by their best sections. The source `python` includes `python@3.13`."""
    request = SearchRequest(
        query=q,
        source=source,
        generation=generation,
        path=path,
        language=language,
        kind=kind,
        prefers=preferred_language(accept_language),
        user_id=caller.sees_only,
        limit=limit,
        cursor=cursor,
    )
    return SearchAnswer.model_validate(
        await search_sections(here.database, request, here.engine, here.embedder)
    )


@router.get("/explain", tags=["search"])
async def explain(
    url: Url,
    here: Here,
    caller: Reader,
    job_id: Annotated[UUID | None, Query(description="In this crawl.")] = None,
) -> Explanation:
    """Explain the outcome of a URL in a job, by default the latest that contains it."""
    if job_id is not None:
        await here.job_of(caller, job_id)
    found = await explain_url(
        here.database, here.queue, url, job_id=job_id, user_id=caller.sees_only
    )
    return Explanation.of(found)
