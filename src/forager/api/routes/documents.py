"""Read and search published pages, and explain URLs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query
from pydantic import Field, WithJsonSchema

from forager.api.actions import HintText
from forager.api.limits import Cursor, Listed, Paged, Url, listed
from forager.api.models import LARGEST_INT, Hexadecimal, PlainText, Time, View
from forager.api.routes.sources import CarriedPage, Number
from forager.api.services import Reads
from forager.crawl.explain import explanation, outlook
from forager.crawl.explain.outlook import Answer
from forager.crawl.settlement import PastOutcome
from forager.documents.page import DocumentRow, SectionRow
from forager.documents.reader import as_markdown, list_documents, read_page, read_path, section_of
from forager.documents.search import SearchRequest, hit
from forager.documents.search import search as search_sections
from forager.documents.search.hit import MAX_HITS, SectionKind, preferred_language

_NOT_SHOWN = ("extractor_version", "generation_id", "generation_number")


class Document(View, row=DocumentRow, hidden=_NOT_SHOWN):
    """One version of a page of a source."""

    source: str = Field(validation_alias="source_id")
    content_hash: Hexadecimal = Field(description="Hash of the extracted content, in hexadecimal.")
    carried_since: Time | None = Field(
        description="Time since which the page fails; null if it does not."
    )
    carried_reason: str | None = Field(description="Why it fails.", examples=["http_500"])
    carried_times: int | None = Field(description="Refreshes in a row in which it failed.")


class Section(View, row=SectionRow):
    """A heading with its text; `parent_id` makes a tree of them."""


class Sections(View):
    document: Document
    items: list[Section] = Field(validation_alias="sections")


class Reading(View):
    """A page, or a section of it with everything below."""

    document: Document
    duplicate: str | None = Field(
        description="The requested URL, if it is a duplicate of this page."
    )
    markdown: str
    sections: list[Section]


class FurtherSection(View, row=hit.FurtherSection):
    """Another section of a page that was found."""


class Hit(View, row=hit.Hit):
    """A page with its best section. All texts are plain text, even if they look like HTML."""

    highlights: list[tuple[int, int]] = Field(
        description="Start and end offsets of the matches in the snippet."
    )
    source: str = Field(validation_alias="source_id")
    generation: int = Field(description="Number of the generation it was found in.")
    missing: list[str] = Field(description="Words of the query that the section does not contain.")
    sections: list[FurtherSection] = Field(description="Further sections of the page that match.")
    more_sections: int = Field(description="Number of further sections of the page that match.")
    repeats: int = Field(description="Sections on other pages with the same text.")


class SearchAnswer(View):
    """Hits, best first."""

    items: list[Hit]
    total: int = Field(description="Pages that match; if `capped`, at least this many.")
    capped: bool = Field(description="Too many sections match, so only some were ranked.")
    next_cursor: str | None
    note: str | None = Field(description="Notes about the result, such as relaxed conditions.")
    suggestion: str | None = Field(description="Suggested correction of the query.")
    facets: dict[str, dict[str, int]] = Field(
        description="Number of pages by `source`, `language` and `kind`."
    )


class Step(View, row=explanation.Step):
    pass


class Check(View, row=outlook.Check):
    name: str = Field(examples=["address", "scope", "robots", "host", "budget"])


class Outlook(View, row=outlook.Outlook):
    """Whether a URL would be fetched now. Nothing is fetched to find out."""

    answer: Answer = Field(description="Result of the check that decides.")
    checks: list[Check] = Field(description="Checks in the order of a crawl.")
    domain: str | None = Field(description="Domain of the URL.")


class PastFate(View, row=PastOutcome):
    """The outcome of a URL in one crawl."""


class TrackedAs(View, row=explanation.TrackedAs):
    """The task that tracks a URL, and why it is not running now."""

    why: HintText


class NearDuplicates(View):
    """Pages with nearly the same text."""

    pages: int = Field(description="Number of pages.")
    urls: list[str] = Field(description="The first few.")


class Explanation(View):
    """The outcome of a URL, why, and what would happen now."""

    url: str
    normalised: str
    steps: list[str] = Field(description="How the given URL was normalized.")
    job_id: UUID | None
    verdict: str
    reason: str | None
    words: str
    duplicate_of: str | None
    carried_over: CarriedPage | None = Field(
        description="The page failed in this crawl, and its previous version stays published."
    )
    http_status: int | None
    depth: int | None
    attempts: int | None
    rendering: str | None = Field(
        description="Whether the page was rendered in a browser, and why; null: not a page."
    )
    near_duplicates: NearDuplicates | None = Field(
        description="Pages of the same crawl with nearly the same text, which are kept as well."
    )
    found_by: list[Step] = Field(description="From a start of the crawl to this URL.")
    outlook: Outlook = Field(description="Whether this crawl would fetch the URL now.")
    history: list[PastFate] = Field(description="Outcomes in the latest crawls, newest first.")
    task: TrackedAs | None = Field(description="Null: the URL is not tracked.")


router = APIRouter()

SourceName = Annotated[PlainText, Query(min_length=1, max_length=500)]
AnySource = Annotated[PlainText | None, Query(min_length=1, max_length=500)]
PathText = Annotated[PlainText, Query(max_length=8000)]


@router.get("/documents", tags=["documents"])
async def documents(
    source: SourceName,
    here: Reads,
    paging: Paged,
    path: Annotated[PathText, Query(description="Only paths with this prefix.")] = "",
) -> Listed[Document]:
    """List the published pages of a source by path; a cursor stays in its generation."""
    await here.get_source(source)
    page = await list_documents(here.database, source, path=path, **paging)
    return listed(page, Document.of)


@router.get("/documents/read", tags=["documents"])
async def read(
    url: Url,
    here: Reads,
    source: AnySource = None,
    generation: Annotated[
        int | None, Query(ge=1, le=LARGEST_INT, description="Number of a generation of the source.")
    ] = None,
    section: Annotated[
        PlainText | None,
        Query(max_length=2000, description="Only this section: its anchor, heading or name."),
    ] = None,
) -> Reading:
    """Read a published page as markdown and sections; without a source, the latest copy."""
    page = await read_page(
        here.database, url, source_id=source, generation=generation, user_id=here.caller.sees_only
    )
    sections = page.sections if section is None else section_of(page, section)
    return Reading.of(page, sections=sections, markdown=as_markdown(sections))


@router.get("/sections", tags=["documents"])
async def sections(
    source: SourceName,
    path: Annotated[PathText, Query(description="Full path of the page.")],
    here: Reads,
) -> Sections:
    """List the sections of a published page, by source and path."""
    await here.get_source(source)
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
    here: Reads,
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
        str | None, Header(description="Preferred language, ranked first.")
    ] = None,
) -> SearchAnswer:
    """Search published pages. The source `python` includes `python@3.13`."""
    request = SearchRequest(
        query=q,
        source=source,
        generation=generation,
        path=path,
        language=language,
        kind=kind,
        prefers=preferred_language(accept_language),
        user_id=here.caller.sees_only,
        limit=limit,
        cursor=cursor,
    )
    found = await search_sections(here.database, request, here.engine, here.embedder)
    return SearchAnswer.of(found)


@router.get("/explain", tags=["search"])
async def explain(
    url: Url,
    here: Reads,
    job_id: Annotated[
        PlainText | None,
        Query(description="Only in this crawl: the ID of its job, or the beginning of it."),
        WithJsonSchema({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}),
    ] = None,
) -> Explanation:
    """Explain the outcome of a URL in a job, by default the latest that contains it."""
    return Explanation.of(await here.explain(url, job_id))
