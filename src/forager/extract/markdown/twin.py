"""The markdown twin of a page: the same page as markdown, which its site offers beside the HTML.

It is read instead of converted HTML if it says the same, and keeps the address and the anchors of
the page that people open.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from forager.extract.document import OF_MARKDOWN, Document
from forager.extract.markdown.links import absolute_links
from forager.extract.sections import CONTINUED, Section

# a twin has at least these shares of the words of its page, of its different words, and of its
# headings
LEAST_WORDS = 0.7
LEAST_SAME_WORDS = 0.6
LEAST_HEADINGS = 0.6
# a page of fewer words says too little to recognize its twin
FEW_WORDS = 20
FEW_HEADINGS = 3
_TWIN = re.compile(r"\.(?:md|mdx|markdown)(?:\.txt)?$", re.IGNORECASE)
_PAGE = re.compile(r"(?:\.x?html?|/(?:index\.x?html?)?)?", re.IGNORECASE)
_TARGET = re.compile(r"\]\([^)\s]*")
_WORD = re.compile(r"\w{2,}")
_NOT_IN_KEYS = re.compile(r"[\W_]+")

# heading, anchor and further anchors of a section
Outline = Sequence[tuple[str, str | None, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class TwinOf:
    """The page that a twin is read for, as far as its document is made from it."""

    url: str
    title: str | None
    language: str | None
    outline: Outline
    links: Sequence[str] = ()  # other pages that it leads to


@dataclass(frozen=True, slots=True)
class TwinShape:
    """How the addresses of pages and their twins differ: by their ends."""

    page: str
    twin: str

    @classmethod
    def of(cls, page: str, twin: str) -> TwinShape | None:
        """The shape of one page and its twin; None if they differ in more than their ends."""
        pairs = enumerate(zip(page, twin, strict=False))
        alike = next((at for at, (a, b) in pairs if a != b), min(len(page), len(twin)))
        same = page[:alike].rstrip("./")
        shape = cls(page[len(same) :], twin[len(same) :])
        is_usual = _PAGE.fullmatch(shape.page) and _TWIN.search(shape.twin)
        return shape if is_usual and "?" not in page + twin else None

    def twin_of(self, page: str) -> str:
        return page.removesuffix(self.page) + self.twin

    def page_of(self, url: str) -> str | None:
        """The page of a twin; None if a URL is not that of a twin."""
        address, mark, anchor = url.partition("#")
        if not address.endswith(self.twin):
            return None
        stem = address[: -len(self.twin)]
        folder, slash, name = stem.rpartition("/")
        if name == "index" and self.page in ("", "/"):
            return f"{folder}{slash}{mark}{anchor}"
        return f"{stem}{self.page}{mark}{anchor}"


def page_end(page: str) -> str:
    """The end of an address that its twin has not, as far as the address tells."""
    return next((end for end in ("/", ".html", ".htm") if page.endswith(end)), "")


def usual_twins(page: str) -> list[str]:
    """Where sites usually have the twin of a page, by its address."""
    address = page.partition("#")[0]
    if "?" in address:
        return []
    if address.endswith("/"):
        above = address[:-1]
        own = [] if above.count("/") < 3 else [f"{above}.md"]
        return [*own, f"{address}index.md", f"{address}index.html.md"]
    if address.endswith(".html"):
        return [f"{address.removesuffix('.html')}.md", f"{address}.md"]
    return [f"{address}.md"]


def usual_pages(twin: str) -> list[str]:
    """The addresses that the page of a twin usually has; none if it is not named like a twin."""
    stem = _TWIN.sub("", twin)
    if stem == twin:
        return []
    folder = [stem.removesuffix("index")] if stem.endswith("/index") else []
    return [*folder, stem, f"{stem}/", f"{stem}.html", f"{stem}.htm"]


def outline_of(sections: Sequence[Section]) -> Outline:
    """The headings of a page with their anchors."""
    return [(each.heading, each.anchor, each.anchors) for each in sections if _is_named(each)]


def has_little_text(page: Sequence[Section]) -> bool:
    return len(_words(page)) < FEW_WORDS


def difference(page: Sequence[Section], twin: Sequence[Section]) -> str | None:
    """Why a text is not the twin of a page; None if it is."""
    words, others = _words(page), _words(twin)
    if len(others) < LEAST_WORDS * len(words):
        return f"it has {len(others)} words, and the page {len(words)}"
    different = set(words)
    if len(different & set(others)) < LEAST_SAME_WORDS * len(different):
        return "it says something else"
    headings = {_key(each.heading) for each in page if _is_named(each)}
    same = headings & {_key(each.heading) for each in twin}
    if len(headings) >= FEW_HEADINGS and len(same) < LEAST_HEADINGS * len(headings):
        return f"it has {len(same)} of the {len(headings)} headings of the page"
    return None


def as_page(document: Document, twin: str, of: TwinOf) -> Document:
    """The document of a twin with the anchors of its page, and links to pages instead of twins."""
    page, shape, links = of.url, TwinShape.of(of.url, twin), frozenset(of.links)

    def page_of(url: str) -> str:
        address, mark, anchor = url.partition("#")
        if address == twin:
            return f"{page}{mark}{anchor}"
        linked = next((other for other in usual_pages(address) if other in links), None)
        if linked is not None:
            return f"{linked}{mark}{anchor}"
        return (shape and shape.page_of(url)) or url

    anchors: dict[str, deque[tuple[str | None, Sequence[str]]]] = defaultdict(deque)
    for heading, anchor, more in of.outline:
        anchors[_key(heading)].append((anchor, more))
    sections: list[Section] = []
    for section in document.sections:
        found: tuple[str | None, Sequence[str]] = (None, ())
        if section.level == CONTINUED and section.parent is not None:
            found = (sections[section.parent].anchor, ())
        elif _is_named(section) and (known := anchors.get(_key(section.heading))):
            found = known.popleft()
        content = absolute_links(section.content, twin, page_of)
        sections.append(replace(section, content=content, anchor=found[0], anchors=tuple(found[1])))
    title = of.title or page if document.title == twin else document.title
    said = repr([(each.heading, each.content, each.anchor) for each in sections])
    return replace(
        document,
        title=title,
        language=of.language or document.language,
        sections=tuple(sections),
        content_hash=sha256(f"{title}\0{said}".encode("utf-8", "replace")).digest(),
        extractor_version=document.extractor_version + OF_MARKDOWN,
        chosen_by="markdown of the site",
    )


def _is_named(section: Section) -> bool:
    return 0 < section.level < CONTINUED


def _words(sections: Sequence[Section]) -> list[str]:
    text = "\n".join(f"{each.heading}\n{_TARGET.sub(']', each.content)}" for each in sections)
    return _WORD.findall(text.casefold())


def _key(heading: str) -> str:
    return _NOT_IN_KEYS.sub(" ", heading.casefold()).strip()
