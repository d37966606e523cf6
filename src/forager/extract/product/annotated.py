"""Microdata and RDFa: items in attributes of elements, as nested dictionaries.

Both have the shape of JSON-LD, so that one reader serves all three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from selectolax.lexbor import LexborNode

from forager.extract.product.elements import Element

Item = dict[str, Any]
# properties whose items are other products than the page's
_OTHERS = frozenset(
    ["isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "isConsumableFor", "hasVariant",
     "model", "isVariantOf", "itemReviewed"]
)  # fmt: skip
_MAX_CLIMB = 200
_MAX_TEXT = 70_000


class Dialect(NamedTuple):
    """The attributes that open an item, name its type and name a property of it."""

    scope: str
    kind: str
    name: str


MICRODATA = Dialect("itemscope", "itemtype", "itemprop")
RDFA = Dialect("typeof", "typeof", "property")


def read_annotations(elements: Iterable[Element], dialect: Dialect) -> tuple[list[Item], Item]:
    """The items of a page without those of other products, and the properties without an item.

    Elements come in document order, so an owner precedes its properties.
    """
    scopes: dict[int, Item] = {}
    top: list[Item] = []
    orphans: Item = {}
    owner_of = _owner_finder(scopes)
    for element in elements:
        order, node, attributes = element.order, element.node, element.attributes
        opened: Item | None = None
        if dialect.scope in attributes:
            opened = {"@type": _types(attributes.get(dialect.kind)), "@order": order}
            if attributes.get("itemid"):
                opened["@id"] = attributes["itemid"]
        owner = owner_of(node)
        if names := (attributes.get(dialect.name) or "").split():
            value = opened if opened is not None else _value(node, attributes)
            _add(owner if owner is not None else orphans, names, value)
        if opened is not None:
            scopes[node.mem_id] = opened
            if _OTHERS.isdisjoint(names):
                top.append(opened)
    return top, orphans


def _owner_finder(scopes: dict[int, Item]) -> Callable[[LexborNode], Item | None]:
    known: dict[int, Item | None] = {}

    def owner_of(node: LexborNode) -> Item | None:
        path: list[int] = []
        owner: Item | None = None
        parent = node.parent
        while parent is not None and len(path) < _MAX_CLIMB:
            mem = parent.mem_id
            if mem in scopes:
                owner = scopes[mem]
                break
            if mem in known:
                owner = known[mem]
                break
            path.append(mem)
            parent = parent.parent
        known.update(dict.fromkeys(path, owner))
        return owner

    return owner_of


def _types(value: str | None) -> list[str]:
    return [
        part.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1] for part in (value or "").split()
    ]


def _add(owner: Item, names: list[str], value: Any) -> None:
    for name in names[:5]:
        short = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
        if short in owner:
            known = owner[short]
            if isinstance(known, list):
                known.append(value)
            else:
                owner[short] = [known, value]
        else:
            owner[short] = value


_ADDRESSES = {"a": "href", "link": "href", "area": "href", "img": "src", "source": "src",
              "iframe": "src", "object": "data", "time": "datetime", "data": "value",
              "meter": "value", "input": "value"}  # fmt: skip


def _value(node: LexborNode, attributes: Any) -> str:
    content = attributes.get("content")
    if content is not None:
        return str(content)
    tag = node.tag or ""
    if name := _ADDRESSES.get(tag):
        value = attributes.get(name) or attributes.get("data-src")
        # an anchor with text or a described image is a name as often as it is an address
        if tag == "a":
            return _anchor_text(node) or str(value or "")
        if value:
            return str(value)
    return node.text(separator=" ").strip()[:_MAX_TEXT]


def _anchor_text(node: LexborNode) -> str:
    if text := node.text(separator=" ").strip():
        return text[:_MAX_TEXT]
    image = node.css_first("img[alt]")
    return (image.attributes.get("alt") or "").strip() if image is not None else ""
