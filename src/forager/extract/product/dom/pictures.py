"""The pictures of the product that the page shows, where nothing names them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forager.extract.product.dom.view import View
from forager.extract.product.elements import Element
from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.images import gallery, looks_like_photo
from forager.extract.product.wording import alike

_SOURCES = ("data-zoom-image", "data-large", "data-large_image", "data-original", "data-src", "src")
_GALLERY = re.compile(r"gallery|product|main|zoom|hero|primary|media|photo|image", re.IGNORECASE)
_NEAR = 500
_SMALL = 60


def picture_facts(view: View) -> Iterator[Fact]:
    found = [
        (url, element.attributes.get("alt"))
        for element in view.elements.images[:400]
        if _belongs(element, view) and (url := _address(element, view))
    ]
    if images := gallery(found):
        yield Fact(FieldName.IMAGES, images[:20], 0.4, "dom:img")


def _address(element: Element, view: View) -> str | None:
    for name in _SOURCES:
        value = element.attributes.get(name)
        if value and not value.startswith("data:") and looks_like_photo(value):
            return view.page.absolute(value)
    return None


def _belongs(element: Element, view: View) -> bool:
    if view.distance(element) > _NEAR or _is_small(element):
        return False
    if view.surroundings.of(element.node).elsewhere:
        return False
    names = f"{element.attributes.get('class') or ''} {element.attributes.get('id') or ''}"
    heading = view.page.titles[0] if view.page.titles else None
    return bool(_GALLERY.search(names)) or alike(element.attributes.get("alt"), heading) > 0.6


def _is_small(element: Element) -> bool:
    sizes = (element.attributes.get("width"), element.attributes.get("height"))
    return any(size and size.isdecimal() and int(size[:6]) < _SMALL for size in sizes)
