"""What extraction kept of one page and what it lost, checked against the page's own tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from forager.extract.decode import decode
from forager.extract.document import Document, Reading, extract_reading
from forager.extract.kinds import ContentKind
from forager.extract.markup import cut_hostile_markup
from forager.extract.page import Headers

MIN_KEPT_SHARE = 0.2
MAX_SECTION_BYTES = 20 * 1024
# headings in these belong to the site and not to the page
_FURNITURE = (
    "script, style, template, noscript, svg, nav, footer, aside, dialog, [hidden],"
    " [role=navigation], [role=banner], [role=contentinfo], [role=search], [aria-hidden=true]"
)
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_WORD = re.compile(r"\w+")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PageAudit:
    """How a page came through extraction. Lengths count characters without white space."""

    url: str
    visible: int  # text that a reader of the page sees
    kept: int  # text of the document
    headings: int  # of the page, those of menus and footers left out
    lost_headings: tuple[str, ...]  # headings that no section has
    sections: int
    large_sections: tuple[str, ...]  # headings of sections over MAX_SECTION_BYTES
    chosen_by: str
    fallbacks: int  # candidates for the main content that were given up

    @property
    def empty(self) -> bool:
        return self.visible > 0 and self.kept == 0

    @property
    def gutted(self) -> bool:
        """Whether less of the text was kept than menus and footers explain."""
        return self.kept < MIN_KEPT_SHARE * self.visible


def audit_page(
    body: bytes, url: str, content_type: str | None = None, headers: Headers = ()
) -> PageAudit:
    """Extract a page and compare the document with what the page shows."""
    reading = extract_reading(body, url, content_type, headers)
    headings = list(_page_headings(body, content_type, reading))
    document = reading.document
    return PageAudit(
        url=url,
        visible=reading.facts.text_length,
        kept=_length(document),
        headings=len(headings),
        lost_headings=tuple(_lost(headings, document)),
        sections=len(document.sections) if document else 0,
        large_sections=tuple(_large(document)),
        chosen_by=document.chosen_by if document else "",
        fallbacks=document.fallbacks if document else 0,
    )


def _page_headings(body: bytes, content_type: str | None, reading: Reading) -> Iterator[str]:
    if reading.facts.kind not in (ContentKind.HTML, ContentKind.XHTML):
        return
    tree = LexborHTMLParser(cut_hostile_markup(decode(body, content_type).text)[0])
    for node in tree.css(_FURNITURE):
        node.decompose()
    for node in tree.css(_HEADINGS):
        text = " ".join(node.text().split())
        if _WORD.search(text):
            yield text


def _lost(headings: list[str], document: Document | None) -> Iterator[str]:
    """The headings that no section has; signs and links beside their words do not matter."""
    have = Counter(_words(section.heading) for section in document.sections) if document else None
    for heading in headings:
        words = _words(heading)
        if not have or not (found := _find(have, words)):
            yield heading
        else:
            have[found] -= 1


def _find(have: Counter[str], words: str) -> str | None:
    if have[words] > 0:
        return words
    similar = (h for h, n in have.items() if n > 0 and h and (h in words or words in h))
    return next(similar, None)


def _words(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()


def _length(document: Document | None) -> int:
    if document is None:
        return 0
    text = "".join(f"{section.heading}{section.content}" for section in document.sections)
    return len(_BLANKS.sub("", _TARGET.sub("]", text)))


_TARGET = re.compile(r"\]\([^\s()]*+\)")


def _large(document: Document | None) -> Iterator[str]:
    for section in document.sections if document else ():
        if len(section.content.encode()) > MAX_SECTION_BYTES:
            yield section.heading
