"""Pictures of a product: absolute addresses, each picture once, the main one first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from forager.extract.product.dom.view import DomView
from forager.extract.product.elements import Element
from forager.extract.product.page import ProductPage
from forager.extract.product.product import Fact, FieldName, ImageRole, ProductImage
from forager.extract.product.wording import alike, line_of

MAX_IMAGES = 50
_MAX_ALT = 500
_NOT_A_PHOTO = re.compile(
    r"(?:^|[/_.-])(?:logo|icon|sprite|pixel|spacer|blank|placeholder|loading|loader|avatar|badge"
    r"|flag|no-?image|noimage|transparent|1x1|default|grey-pixel)(?:[/_.-]|$)|\.svg(?:$|\?)|\.gif",
    re.IGNORECASE,
)
# sizes are written into addresses in many ways, and all sizes are one picture
_SIZE = re.compile(r"[._-](?:\d{2,4}x\d{0,4}|_?[A-Z]{2}\d{2,4}_?|thumb|small|medium|large|grande)")
# a small version at a separate address, such as /thumbs/1.jpg
_THUMBNAIL = re.compile(r"[/._-]thumb(?:nail)?s?(?=[/._-])", re.IGNORECASE)


def images_of(value: Any, page: ProductPage) -> tuple[ProductImage, ...]:
    """The pictures of a property of an item: an address, an object, or a list of them."""
    return gallery((url, None) for url in _addresses(value, page))


def gallery(found: Iterable[tuple[str, str | None]]) -> tuple[ProductImage, ...]:
    """Each picture once, in the order given: the first is the main one."""
    kept: dict[str, ProductImage] = {}
    for url, alt in found:
        key = _SIZE.sub("", url.partition("?")[0].rpartition("://")[2])
        if key not in kept and len(kept) < MAX_IMAGES:
            role = _role(url) if kept else ImageRole.PRIMARY
            kept[key] = ProductImage(url, line_of(alt, _MAX_ALT), role)
    return tuple(kept.values())


def _role(url: str) -> ImageRole:
    return ImageRole.THUMBNAIL if _THUMBNAIL.search(url) else ImageRole.GALLERY


def looks_like_photo(url: str) -> bool:
    return not _NOT_A_PHOTO.search(url)


def _addresses(value: Any, page: ProductPage) -> Iterator[str]:
    waiting = [value]
    for each in waiting:
        if isinstance(each, list):
            waiting.extend(each[: 4 * MAX_IMAGES])
        elif isinstance(each, dict):
            waiting.append(each.get("contentUrl") or each.get("url") or each.get("@id"))
        elif isinstance(each, str) and each and (url := page.absolute(each)):
            yield url
        if len(waiting) > 10 * MAX_IMAGES:
            return


_SOURCES = ("data-zoom-image", "data-large", "data-large_image", "data-original", "data-src", "src")
_GALLERY = re.compile(r"gallery|product|main|zoom|hero|primary|media|photo|image", re.IGNORECASE)
_NEAR = 500
_SMALL = 60


def picture_facts(view: DomView) -> Iterator[Fact]:
    found = [
        (url, element.attributes.get("alt"))
        for element in view.elements.images[:400]
        if _belongs(element, view) and (url := _address(element, view))
    ]
    if images := gallery(found):
        yield Fact(FieldName.IMAGES, images[:20], 0.4, "dom:img")


def _address(element: Element, view: DomView) -> str | None:
    attributes = element.attributes
    for name in _SOURCES:
        value = attributes.get(name)
        if value and not value.startswith("data:") and looks_like_photo(value):
            return view.page.absolute(value)
    return None


def _belongs(element: Element, view: DomView) -> bool:
    if view.distance(element) > _NEAR or _is_small(element):
        return False
    if view.surroundings.of(element.node).elsewhere:
        return False
    attributes = element.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    heading = view.page.titles[0] if view.page.titles else None
    return bool(_GALLERY.search(names)) or alike(attributes.get("alt"), heading) > 0.6


def _is_small(element: Element) -> bool:
    attributes = element.attributes
    sizes = (attributes.get("width"), attributes.get("height"))
    return any(size and size.isdecimal() and int(size[:6]) < _SMALL for size in sizes)
