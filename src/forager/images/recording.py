"""Records the images of a product, as its page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forager.db.database import Connection
from forager.extract.keys import url_hash
from forager.extract.product.record import ProductImage
from forager.extract.text import storable
from forager.extract.urls import Refusal, normalise
from forager.images.store import images as store
from forager.images.store.images import ShownImage

MAX_ALT = 1000
RENEWED_AFTER = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class SeenImages:
    """The images of one product, in the order of its page."""

    product_id: int
    images: tuple[ProductImage, ...]


async def record_images(connection: Connection, seen: Sequence[SeenImages], *, limit: int) -> None:
    """List what products show now, and forget what they do not; files are deleted elsewhere.

    Part of the caller's transaction, which holds the products' rows; fetches nothing.
    """
    if seen:
        shown = [image for product in seen for image in _shown(product, limit)]
        ids = [product.product_id for product in seen]
        await store.replace_images(connection, ids, shown)
        await renew_images(connection, ids)


async def renew_images(connection: Connection, product_ids: Sequence[int]) -> None:
    """A picture may change where it is: one that was fetched long ago is fetched again."""
    await store.renew_old(connection, product_ids, seconds=RENEWED_AFTER)


def _shown(seen: SeenImages, limit: int) -> Iterator[ShownImage]:
    known: set[bytes] = set()
    for image in seen.images:
        url = normalise(image.url)
        if len(known) == limit:
            return
        if isinstance(url, Refusal) or (key := url_hash(url)) in known:
            continue
        yield ShownImage(
            product_id=seen.product_id,
            url=url,
            url_hash=key,
            alt_text=storable(image.alt)[:MAX_ALT] if image.alt else None,
            image_type=image.role.value,
            position=len(known),
        )
        known.add(key)
