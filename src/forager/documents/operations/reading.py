"""Operations that read and search published pages. Their commands print text for people."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from forager.documents.operations.models import Document
from forager.documents.operations.sources import Number, PathText, SourceId, find_source
from forager.documents.page import SectionRow
from forager.documents.reader import (
    as_markdown,
    read_page,
    read_path,
    requested_sections,
    with_links,
)
from forager.documents.search import SearchRequest, hit
from forager.documents.search import search as search_sections
from forager.documents.search.embedding import embedder_of
from forager.documents.search.hit import MAX_HITS, SectionKind, preferred_language
from forager.extract.markdown.links import LinkStyle
from forager.operations.models import PlainText, ResponseModel, Url
from forager.operations.operation import Context, Cursor, Group

reading = Group("", "Published pages.", page="Search")

OfSource = Annotated[
    PlainText, Field(min_length=1, max_length=500, description="Only of this source.")
]
OldNumber = Annotated[Number, Field(description="Number of an older generation of the source.")]
SectionName = Annotated[
    PlainText, Field(max_length=2000, description="Only this section: its anchor, heading or name.")
]
Links = Annotated[LinkStyle, Field(description="How links to pages of the same host are written.")]
FullPath = Annotated[PathText, Field(description="Full path of the page.")]
Words = Annotated[
    PlainText,
    Field(
        max_length=2000,
        description='Words, "exact phrases", identifiers, -without, one or another.',
        examples=["connection pool"],
    ),
]
MaxHits = Annotated[int, Field(ge=1, le=MAX_HITS, description="Maximum number of hits.")]


_ABOUT_SECTION = {
    "parent_id": "ID of the section above.",
    "level": "Level of the heading, from 1.",
    "content": "Text of the section as markdown.",
    "anchors": "Further anchors of the section.",
}


class Section(ResponseModel, row=SectionRow, about=_ABOUT_SECTION):
    """A heading with its text; `parent_id` makes a tree of them."""


class Sections(ResponseModel):
    """The sections of a page."""

    document: Document
    items: list[Section] = Field(
        description="Sections in the order of the page.", validation_alias="sections"
    )


class PageReading(ResponseModel):
    """A page, or a section of it with everything below."""

    document: Document
    duplicate: str | None = Field(
        description="The requested URL, if it is a duplicate of this page."
    )
    markdown: str = Field(description="Text as markdown.")
    sections: list[Section] = Field(description="Sections of the page.")


class FurtherSection(ResponseModel, row=hit.FurtherSection, thing="section"):
    """Another section of a page that was found."""


_ABOUT_HIT = {
    "snippet": "Excerpt that matches.",
    "score": "Relevance; higher is better.",
    "document_id": "ID of the page.",
}


class Hit(ResponseModel, row=hit.Hit, about=_ABOUT_HIT, thing="section"):
    """A page with its best section. All texts are plain text, even if they look like HTML."""

    highlights: list[tuple[int, int]] = Field(
        description="Start and end offsets of the matches in the snippet."
    )
    source: str = Field(description="Name of the source.", validation_alias="source_id")
    generation: int = Field(description="Number of the generation it was found in.")
    missing: list[str] = Field(description="Words of the query that the section does not contain.")
    sections: list[FurtherSection] = Field(description="Further sections of the page that match.")
    more_sections: int = Field(description="Number of further sections of the page that match.")
    repeats: int = Field(description="Sections on other pages with the same text.")


class SearchAnswer(ResponseModel):
    """Hits, best first."""

    items: list[Hit] = Field(description="Pages that match, the best first.")
    total: int = Field(description="Pages that match; if `capped`, at least this many.")
    capped: bool = Field(description="Too many sections match, so only some were ranked.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last page.")
    note: str | None = Field(description="Notes about the result, such as relaxed conditions.")
    suggestion: str | None = Field(description="Suggested correction of the query.")
    facets: dict[str, dict[str, int]] = Field(
        description="Number of pages by `source`, `language` and `kind`."
    )


@reading.operation("read", "GET /documents/read", tag="documents", command=False)
async def read(
    context: Context,
    url: Url,
    source: OfSource | None = None,
    generation: OldNumber | None = None,
    section: SectionName | None = None,
    links: Links = LinkStyle.ABSOLUTE,
) -> PageReading:
    """Read a published page as markdown and sections; without a source, the latest copy.

    A URL with an anchor reads the section with that anchor.
    """
    page = await read_page(
        context.database, url, source_id=source, generation=generation, user_id=context.owner
    )
    sections = requested_sections(page, url, section)
    sections = with_links(sections, page.document.url, links)
    return PageReading.of(page, sections=sections, markdown=as_markdown(sections))


@reading.operation("read", "GET /sections", tag="documents", command=False)
async def sections(context: Context, source: SourceId, path: FullPath) -> Sections:
    """List the sections of a published page, by source and path."""
    named = await find_source(context, source)
    return Sections.of(await read_path(context.database, named.id, path))


class SearchFilters(BaseModel):
    """The pages that are searched."""

    source: OfSource | None = Field(
        default=None, description="Only in this source; `python` includes `python@3.13`."
    )
    version: PlainText | None = Field(
        default=None,
        max_length=100,
        description="Only these versions of the source, such as 3.12 or >=3.10,<3.13.",
        examples=["3.12"],
    )
    generation: Number | None = Field(
        default=None, description="Search this generation of the source."
    )
    path: PathText | None = Field(
        default=None, description="Only pages whose path has this prefix."
    )
    language: PlainText | None = Field(
        default=None, max_length=35, description="Only pages in this language.", examples=["en"]
    )
    kind: SectionKind | None = Field(
        default=None,
        description="Only sections that define a name (definition) or list links (listing).",
    )


@reading.operation("search", "GET /search", tag="search", command=False)
async def search(
    context: Context, q: Words, wanted: SearchFilters, limit: MaxHits = 10, cursor: Cursor = None
) -> SearchAnswer:
    """Search published pages. The source `python` includes `python@3.13`.

    Pages in the language of the header `Accept-Language` are ranked first.
    """
    request = SearchRequest(
        query=q,
        **wanted.model_dump(),
        prefers=preferred_language(context.language),
        user_id=context.owner,
        limit=limit,
        cursor=cursor,
    )
    embedder = embedder_of(context.settings)
    return SearchAnswer.of(
        await search_sections(context.database, request, context.engine, embedder)
    )
