"""Audit of one page: the document that was extracted, compared with the tree of the page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from forager.extract.content.repeated import RepeatedBlocks
from forager.extract.decode import decode
from forager.extract.document import extract_reading
from forager.extract.kinds import ContentKind
from forager.extract.losses import NO_LOSSES, Losses, count_losses
from forager.extract.markup import cut_hostile_markup
from forager.extract.page import Headers
from forager.extract.sections import Section

MIN_KEPT_SHARE = 0.2
LARGE_SECTION_BYTES = 20 * 1024
# menus and footers by standard names: their text and headings belong to the site
_BOILERPLATE = (
    "script, style, template, noscript, svg, nav, footer, aside, dialog, [hidden],"
    " [role=navigation], [role=banner], [role=contentinfo], [role=search], [aria-hidden=true]"
)
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"\]\([^\s()]*+\)")


@dataclass(frozen=True, slots=True)
class PageAudit:
    """The result of extracting a page. Lengths count letters and digits."""

    url: str
    visible: int  # visible text of the page, without menus and footers
    kept: int  # text of the document
    headings: int
    lost_headings: tuple[str, ...]  # headings that the document does not have
    sections: int
    large_sections: tuple[str, ...]  # headings of sections over LARGE_SECTION_BYTES
    chosen_by: str  # how the main content was found
    fallbacks: int  # candidates for the main content that had too little text
    losses: Losses = NO_LOSSES

    @property
    def is_empty(self) -> bool:
        return self.visible > 0 and self.kept == 0

    @property
    def kept_share(self) -> float:
        return min(1.0, self.kept / self.visible) if self.visible else 1.0

    @property
    def is_gutted(self) -> bool:
        return self.kept_share < MIN_KEPT_SHARE


def audit_page(
    body: bytes,
    url: str,
    content_type: str | None = None,
    headers: Headers = (),
    repeated: RepeatedBlocks | None = None,
) -> PageAudit:
    """Extract a page and compare the document with the visible page."""
    reading = extract_reading(body, url, content_type, headers, repeated=repeated, explain=True)
    document = reading.document
    sections = document.sections if document else ()
    visible, losses = reading.facts.text_length, NO_LOSSES
    headings: list[str] = []
    if reading.facts.kind in (ContentKind.HTML, ContentKind.XHTML):
        html = cut_hostile_markup(decode(body, content_type).text)[0]
        losses = count_losses(html, reading)
        visible, headings = _page(html)
    return PageAudit(
        url=url,
        visible=visible,
        kept=sum(_length(f"{section.heading} {section.content}") for section in sections),
        headings=len(headings),
        lost_headings=tuple(_lost(headings, sections, document.title if document else "")),
        sections=len(sections),
        large_sections=tuple(
            section.heading
            for section in sections
            if len(section.content.encode()) > LARGE_SECTION_BYTES
        ),
        chosen_by=document.chosen_by if document else "",
        fallbacks=document.fallbacks if document else 0,
        losses=losses,
    )


def _page(html: str) -> tuple[int, list[str]]:
    """The length of a page's text, and its headings."""
    tree = LexborHTMLParser(html)
    for node in tree.css(_BOILERPLATE):
        node.decompose()
    headings = (" ".join(node.text().split()) for node in tree.css(_HEADINGS))
    text = tree.body.text() if tree.body is not None else ""
    return _length(text), [heading for heading in headings if _WORD.search(heading)]


def _lost(headings: list[str], sections: Sequence[Section], title: str) -> Iterator[str]:
    """The headings that are neither those of sections nor in their text; titles may be repeated."""
    titles = {_words(title), *(_words(section.heading) for section in sections[:1])}
    have = Counter(_words(section.heading) for section in sections)
    others = []
    for heading in headings:
        if have[words := _words(heading)] > 0:
            have[words] -= 1
        elif words not in titles:
            others.append((heading, words))
    text = _words("".join(section.content for section in sections)) if others else ""
    for heading, words in others:
        similar = (h for h, n in have.items() if n > 0 and h and (words in h or _is_rest(h, words)))
        if (found := next(similar, None)) is not None:
            have[found] -= 1
        elif words not in text:
            yield heading


def _is_rest(heading: str, words: str) -> bool:
    """Whether a heading is left of the words without labels and buttons at one end or inside."""
    if heading in words:
        return True
    places = range(1, len(heading))
    return any(words.startswith(heading[:at]) and words.endswith(heading[at:]) for at in places)


def _words(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()


def _length(text: str) -> int:
    return sum(map(len, _WORD.findall(_TARGET.sub("]", text))))
