"""The document of a page: title, language, markdown and sections of its main content.

The modules that extract are imported with the first page: most processes only pass documents on,
and should start fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forager.extract.directives import DEFAULT_AGENT

if TYPE_CHECKING:
    from forager.extract.content.repeated import RepeatedBlocks
    from forager.extract.markdown.tokens import Tokens
    from forager.extract.page import Headers, PageFacts
    from forager.extract.sections import Section

# Raised whenever the same page would give another document: documents of an older version are
# extracted again, even where the server says that the page has not changed.
EXTRACTOR_VERSION = 12


def extractor_version(digest: str = "") -> str:
    """The version that a document is stored with: the extractor's, and that of learned blocks."""
    return f"{EXTRACTOR_VERSION}-{digest}" if digest else str(EXTRACTOR_VERSION)


# the end of the version of a document that was read from markdown of the site
OF_MARKDOWN = "+markdown"

MAX_EXCERPT = 200  # characters of a removed block that reports show


@dataclass(frozen=True, slots=True)
class RemovedBlock:
    """A text that is not part of the document, and why; `count` is how often the page has it."""

    text: str
    element: str
    reason: str
    count: int = 1

    @property
    def excerpt(self) -> str:
        return self.text[:MAX_EXCERPT]


@dataclass(frozen=True, slots=True)
class Document:
    """The main content of a page. `truncated` names everything that was cut short."""

    title: str
    language: str | None
    markdown: str
    sections: tuple[Section, ...]
    # of title and markdown, with links within the page unresolved: neither menus, dates and nonces
    # around them nor the URL of the page count
    content_hash: bytes
    extractor_version: str
    chosen_by: str  # how the main content was found, for reports
    truncated: tuple[str, ...] = ()
    fallbacks: int = 0  # better-named candidates for the main content that had too little text
    removed: tuple[RemovedBlock, ...] = ()  # only of documents that are to be explained


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """The facts of one response, and its document if it has one."""

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
    on_tokens: Callable[[Tokens], None] | None = None,
) -> ExtractedPage:
    """Facts and document of one response, from one parse.

    `repeated` are the blocks that the pages of its source have in common. With `explain`, the
    document lists what was removed. `on_tokens` is called with the tokens of an HTML page before
    anything is removed.
    """
    from forager.extract.composition import extract_document
    from forager.extract.generators import default_language
    from forager.extract.page import read_page

    facts, content = read_page(body, url, content_type, headers, agent)
    if content is None:
        return ExtractedPage(facts, None)
    document = extract_document(
        content,
        facts.base_url or facts.url,
        facts.kind,
        title=facts.title,
        language=facts.language,
        repeated=repeated,
        code_language=default_language(facts.generator),
        explain=explain,
        on_tokens=on_tokens,
    )
    return ExtractedPage(facts, document)
