"""Pictures of a product: absolute addresses, each picture once, the main one first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from forager.extract.product.page import ProductPage
from forager.extract.product.record import ImageRole, ProductImage
from forager.extract.product.wording import line_of

MAX_IMAGES = 50
_MAX_ALT = 500
_NOT_A_PHOTO = re.compile(
    r"(?:^|[/_.-])(?:logo|icon|sprite|pixel|spacer|blank|placeholder|loading|loader|avatar|badge"
    r"|flag|no-?image|noimage|transparent|1x1|default|grey-pixel)(?:[/_.-]|$)|\.svg(?:$|\?)|\.gif",
    re.IGNORECASE,
)
# sizes are written into addresses in many ways, and all sizes are one picture
_SIZE = re.compile(r"[._-](?:\d{2,4}x\d{0,4}|_?[A-Z]{2}\d{2,4}_?|thumb|small|medium|large|grande)")


def images_of(value: Any, page: ProductPage) -> tuple[ProductImage, ...]:
    """The pictures of a property of an item: an address, an object, or a list of them."""
    return gallery((url, None) for url in _addresses(value, page))


def gallery(found: Iterable[tuple[str, str | None]]) -> tuple[ProductImage, ...]:
    """Each picture once, in the order given: the first is the main one."""
    kept: dict[str, ProductImage] = {}
    for url, alt in found:
        key = _SIZE.sub("", url.partition("?")[0].rpartition("://")[2])
        if key not in kept and len(kept) < MAX_IMAGES:
            role = ImageRole.GALLERY if kept else ImageRole.PRIMARY
            kept[key] = ProductImage(url, line_of(alt, _MAX_ALT), role)
    return tuple(kept.values())


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
