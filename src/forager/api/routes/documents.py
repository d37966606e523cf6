"""Read and search published pages, and explain URLs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query
from pydantic import Field

from forager.api.actions import HintText
from forager.api.limits import Cursor, Limit, Listed, listed
from forager.api.models import LARGEST_INT, PlainText, Time, View
from forager.api.models.sources import CarriedPage, Number
from forager.api.services import Here, Reader
from forager.crawl.explain import explanation
from forager.crawl.explain.explanation import explain as explain_url
from forager.crawl.explain.outlook import Answer
from forager.documents.page import DocumentRow, SectionRow
from forager.documents.reader import (
    ReadPage,
    as_markdown,
    list_documents,
    read_page,
    read_path,
    section_of,
)
from forager.documents.search import SearchRequest, hit
from forager.documents.search import search as search_sections
from forager.documents.search.hit import MAX_HITS, SectionKind, preferred_language

_NOT_SHOWN = ("extractor_version", "generation_id", "generation_number")


class Document(View, row=DocumentRow, hidden=_NOT_SHOWN):
    """One version of a page of a source."""

    source: str = Field(validation_alias="source_id")
    content_hash: str = Field(description="Of the extracted content, in hexadecimal.")
    carried_since: Time | None = Field(
        description="Since when the page fails; null if it is as the server sends it."
    )
    carried_reason: str | None = Field(description="Why it fails.", examples=["http_500"])
    carried_times: int | None = Field(description="Refreshes in a row in which it failed.")

    @classmethod
    def of(cls, row: DocumentRow) -> Document:
        values = {name: getattr(row, name) for name in row.__slots__}
        return cls.model_validate({**values, "content_hash": row.content_hash.hex()})


class Section(View, row=SectionRow):
    """A heading with its text; `parent_id` makes a tree of them."""


class Sections(View):
    document: Document
    items: list[Section]

    @classmethod
    def of(cls, page: ReadPage) -> Sections:
        return cls(document=Document.of(page.document), items=_sections(page.sections))


class Reading(View):
    """A page, or a section of it with everything below."""

    document: Document
    duplicate: str | None = Field(
        description="The requested URL, if it is a duplicate of this page."
    )
    markdown: str
    sections: list[Section]

    @classmethod
    def build(cls, page: ReadPage, sections: list[SectionRow]) -> Reading:
        return cls(
            document=Document.of(page.document),
            duplicate=page.duplicate,
            markdown=as_markdown(sections),
            sections=_sections(sections),
        )


class FurtherSection(View, row=hit.FurtherSection):
    """Another section of a page that was found."""


class Hit(View, row=hit.Hit):
    """A page by its best section. All texts are plain, even if they look like HTML."""

    highlights: list[tuple[int, int]] = Field(
        description="Beginnings and ends of what matched, as offsets into the snippet."
    )
    source: str = Field(validation_alias="source_id")
    generation: int = Field(description="Number of the generation it was found in.")
    missing: list[str] = Field(description="Words of the query that the section does not have.")
    sections: list[FurtherSection] = Field(description="Further sections of the page that match.")
    more_sections: int = Field(description="How many further sections of the page match.")
    repeats: int = Field(description="Sections on other pages that say the same.")


class SearchAnswer(View):
    """Hits, best first."""

    items: list[Hit]
    total: int = Field(description="Pages that match; if `capped`, at least this many.")
    capped: bool = Field(description="Too many sections match, so only some were ranked.")
    next_cursor: str | None
    note: str | None = Field(description="About the answer, such as what was relaxed.")
    suggestion: str | None = Field(description="The query as it may have been meant.")
    facets: dict[str, dict[str, int]] = Field(
        description="Number of pages by `source`, `language` and `kind`."
    )


class Step(View):
    url: str
    via: str


class Check(View):
    name: str = Field(examples=["address", "scope", "robots", "host", "budget"])
    answer: Answer
    words: str


class Outlook(View):
    """What would happen if a URL were asked for now; nothing is fetched to find out."""

    answer: Answer = Field(description="That of the check which decides.")
    words: str
    checks: list[Check] = Field(description="In the order in which a crawl makes them.")
    domain: str | None = Field(description="Under which its host is known.")


class PastFate(View, row=explanation.PastFate):
    """How one crawl has settled a URL."""


class TrackedAs(View, row=explanation.TrackedAs):
    """The task that keeps a URL fresh, and why it does not run now."""

    why: HintText


class NearDuplicates(View):
    """Pages that say nearly the same."""

    pages: int = Field(description="How many.")
    urls: list[str] = Field(description="The first few.")


class Explanation(View):
    """The outcome of a URL, why, and what would happen now."""

    url: str
    normalised: str
    steps: list[str] = Field(description="What was done to the URL as it was given.")
    job_id: UUID | None
    verdict: str
    reason: str | None
    words: str
    duplicate_of: str | None
    carried_over: CarriedPage | None = Field(
        description="It failed in this crawl, which keeps the version before."
    )
    http_status: int | None
    depth: int | None
    attempts: int | None
    rendering: str | None = Field(
        description="Whether the page was rendered in a browser, and why; null: it is no page."
    )
    near_duplicates: NearDuplicates | None = Field(
        description="Pages of the same crawl with nearly the same text, which are kept as well."
    )
    found_by: list[Step] = Field(description="From a start of the crawl to this URL.")
    outlook: Outlook = Field(description="If it were asked for now, judged as this crawl would.")
    history: list[PastFate] = Field(description="In the newest crawls, the newest first.")
    task: TrackedAs | None = Field(description="Null: it is not tracked as a product's page.")


def _sections(rows: list[SectionRow]) -> list[Section]:
    return [Section.model_validate(row) for row in rows]


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
