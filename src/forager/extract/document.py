"""One page in, its document out: title, language, markdown and sections of its main content.

What makes a document is imported by its first page: most processes only pass documents on, and
should not wait for it when they start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forager.extract.directives import DEFAULT_AGENT
from forager.extract.kinds import ContentKind

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

    from forager.extract.content.repeated import RepeatedBlocks
    from forager.extract.page import Headers, PageFacts
    from forager.extract.sections import Section

# Raised whenever the same page would give another document: documents of an older version are
# made anew, even where the server says that the page has not changed.
EXTRACTOR_VERSION = 6


def extractor_version(digest: str = "") -> str:
    """The version that a document is stored with: the extractor's, and what it had learned."""
    return f"{EXTRACTOR_VERSION}-{digest}" if digest else str(EXTRACTOR_VERSION)


@dataclass(frozen=True, slots=True)
class RemovedBlock:
    """A block that is not part of the document, and why."""

    text: str
    element: str
    reason: str


@dataclass(frozen=True, slots=True)
class Document:
    """What a page says, without what surrounds it. Everything cut short says so in `truncated`."""

    title: str
    language: str | None
    markdown: str
    sections: tuple[Section, ...]
    # of title and markdown, links within the page unresolved: menus, dates and nonces around them
    # do not count, nor does the URL under which the page was found
    content_hash: bytes
    extractor_version: str
    chosen_by: str  # how the main content was found, for people
    truncated: tuple[str, ...] = ()
    fallbacks: int = 0  # better-named candidates for the main content that held too little
    removed: tuple[RemovedBlock, ...] = ()  # only of documents that are to be explained


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one response says: the crawl's facts, and the document where there is one."""

    facts: PageFacts
    document: Document | None


def extract_reading(
    body: bytes,
    url: str,
    content_type: str | None = None,
    headers: Headers = (),
    agent: str = DEFAULT_AGENT,
    repeated: RepeatedBlocks | None = None,
    *,
    explain: bool = False,
) -> Reading:
    """Facts and document of one response, from one parse.

    `repeated` is what the pages of its source have in common. With `explain`, the document says
    what was removed.
    """
    from forager.extract.page import read_page

    facts, content = read_page(body, url, content_type, headers, agent)
    if content is None:
        return Reading(facts, None)
    base = facts.base_url or facts.url
    document = extract_document(
        content,
        base,
        facts.kind,
        title=facts.title,
        language=facts.language,
        repeated=repeated,
        explain=explain,
    )
    return Reading(facts, document)


def extract_document(
    content: str | LexborHTMLParser,
    url: str,
    kind: ContentKind = ContentKind.HTML,
    *,
    title: str | None = None,
    language: str | None = None,
    repeated: RepeatedBlocks | None = None,
    explain: bool = False,
) -> Document | None:
    """The document of a page, or None where it has no content.

    HTML may come as text or as a tree, which is changed: no node of it may be used afterwards.
    Links are made absolute against `url`.
    """
    from forager.extract.composition import from_text, from_tree

    if kind in (ContentKind.HTML, ContentKind.XHTML):
        return from_tree(content, url, title, language, repeated, explain=explain)
    assert isinstance(content, str), "only HTML has a tree"
    return from_text(content, url, kind, title, language, repeated)
