"""The elements of a page that say something about it, collected in one walk of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from forager.extract.links import Hrefs, add_href, is_page_link
from forager.extract.text import clip, collapse

# one selector, because every query walks the whole tree
_INTERESTING = (
    "a[href], area[href], iframe[src], frame[src], link[href], base[href],"
    " meta[content], title, h1, noscript, noframes, script[src]"
)
_MAX_KEPT = 100  # of the kinds of which a real page has a few
_MAX_HEADING = 200

Attributes = Mapping[str, str | None]
_Kept = TypeVar("_Kept")


@dataclass(slots=True)
class Elements:
    """What `collect_elements` found; nothing is resolved yet, since `<base>` may come late."""

    hrefs: Hrefs = field(default_factory=dict)
    base: str | None = None
    canonicals: list[str] = field(default_factory=list)
    metas: list[Attributes] = field(default_factory=list)
    html_lang: str | None = None
    title: LexborNode | None = None
    headings: list[LexborNode] = field(default_factory=list)
    noscripts: list[LexborNode] = field(default_factory=list)
    scripts: int = 0

    def heading_texts(self) -> tuple[str, ...]:
        return tuple(clip(collapse(node.text()), _MAX_HEADING)[0] for node in self.headings)


def collect_elements(tree: LexborHTMLParser) -> Elements:
    found = Elements()
    if tree.root is not None:
        found.html_lang = tree.root.attributes.get("lang")
    for node in tree.css(_INTERESTING):
        tag = node.tag
        if tag in ("a", "area"):
            attributes = node.attributes
            add_href(found.hrefs, attributes["href"], attributes.get("rel"))
        elif tag in ("iframe", "frame"):
            add_href(found.hrefs, node.attributes["src"])
        else:
            _collect_rare(found, tag or "", node)
    return found


def _collect_rare(found: Elements, tag: str, node: LexborNode) -> None:
    if tag == "link":
        _collect_link(found, node.attributes)
    elif tag == "meta":
        _keep(found.metas, node.attributes)
    elif tag == "title":
        # pictures have titles too
        if found.title is None and node.parent is not None and node.parent.tag != "svg":
            found.title = node
    elif tag == "base":
        if found.base is None:
            found.base = node.attributes["href"]
    elif tag == "h1":
        _keep(found.headings, node)
    elif tag == "noscript":
        _keep(found.noscripts, node)
    elif tag == "noframes":
        _collect_noframes(found, node)
    else:
        found.scripts += 1


def _collect_noframes(found: Elements, node: LexborNode) -> None:
    """The links of a page for browsers without frames, which the parser takes for text."""
    for link in LexborHTMLParser(node.text()).css("a[href]"):
        add_href(found.hrefs, link.attributes["href"], link.attributes.get("rel"))


def _collect_link(found: Elements, attributes: Attributes) -> None:
    href = attributes["href"]
    if href and "canonical" in (attributes.get("rel") or "").lower().split():
        _keep(found.canonicals, href)
    elif is_page_link(attributes):
        add_href(found.hrefs, href)


def _keep(kept: list[_Kept], item: _Kept) -> None:
    if len(kept) < _MAX_KEPT:
        kept.append(item)
