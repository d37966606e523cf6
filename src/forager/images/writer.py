"""Records the images of products, as their pages show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forager.db.database import Connection
from forager.extract.keys import url_hash
from forager.extract.product.product import ProductImage
from forager.extract.text import storable
from forager.extract.urls import Refusal, normalize
from forager.images.store import images as store
from forager.images.store.images import ShownImage, StoredImage, select_stored, select_thumbnails

__all__ = ["StoredImage", "select_stored", "select_thumbnails"]

MAX_ALT = 1000
RENEWED_AFTER = 30 * 86400.0


async def record_images(
    connection: Connection, seen: Mapping[int, Sequence[ProductImage]], *, limit: int
) -> None:
    """Store the images of products, in the order of their pages, and delete all others.

    Part of the transaction of the caller, which has locked the products. Files are deleted later.
    """
    shown = [image for product_id in seen for image in _shown(product_id, seen[product_id], limit)]
    await store.replace_images(connection, list(seen), shown)
    await renew_images(connection, list(seen))


async def renew_images(connection: Connection, product_ids: Sequence[int]) -> None:
    """Fetch images again that were fetched long ago: they may have changed at their URL."""
    await store.renew_old(connection, product_ids, seconds=RENEWED_AFTER)


def _shown(product_id: int, images: Sequence[ProductImage], limit: int) -> Iterator[ShownImage]:
    known: set[bytes] = set()
    for image in images:
        url = normalize(image.url)
        if len(known) == limit:
            return
        if isinstance(url, Refusal) or (key := url_hash(url)) in known:
            continue
        yield ShownImage(
            product_id=product_id,
            url=url,
            url_hash=key,
            alt_text=storable(image.alt)[:MAX_ALT] if image.alt else None,
            image_type=image.role.value,
            position=len(known),
        )
        known.add(key)
