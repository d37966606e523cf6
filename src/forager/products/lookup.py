"""Find a product by its ID or URL, and its stored images."""

from __future__ import annotations

from collections.abc import Sequence

from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_hash
from forager.extract.urls import Refusal, normalize
from forager.hints import Hint, action
from forager.images.files import open_image_files
from forager.images.writer import StoredImage, select_stored, select_thumbnails
from forager.products.store import products as store
from forager.products.store.products import select_attempts
from forager.settings import Settings

__all__ = ["select_attempts"]

_LARGEST_ID = 2**63 - 1


async def find_product(connection: Connection, which: str) -> int:
    """The id of an existing product."""
    text = which.strip()
    if text.isascii() and text.isdigit():
        product_id = int(text[:20])
        if product_id > _LARGEST_ID or not await store.product_exists(connection, product_id):
            raise unknown_product(which)
        return product_id
    address = normalize(text)
    if isinstance(address, Refusal):
        raise InvalidInput(f"{text[:200]!r} is neither the id nor the URL of a product")
    found = await store.select_product_id(connection, url_hash(address))
    return found if found is not None else await _not_yet(connection, which, address)


async def _not_yet(connection: Connection, which: str, address: str) -> int:
    status = await store.select_task_status(connection, url_hash(address))
    if status is None:
        raise unknown_product(which)
    raise NotFound(
        f"{address} is tracked, but no product was read from it yet; its task is {status}",
        hint=Hint("{} shows its attempts.", action("tasks show", address)),
    )


def unknown_product(which: str) -> NotFound:
    return NotFound(
        f"there is no product {which[:200]}",
        hint=Hint(
            "{} lists products, {} adds more.", action("products list"), action("products track")
        ),
    )


async def find_image(database: Database, product_id: int, position: int) -> StoredImage:
    """A stored image of a product by its position."""
    found = await database.run(select_stored, product_id, position)
    if found is None:
        raise NotFound(
            f"there is no stored image {position} of product {product_id}",
            hint=Hint("{} lists its images.", action("products show", product_id)),
        )
    return found


async def thumbnails(database: Database, product_ids: Sequence[int]) -> dict[int, int]:
    return await database.run(select_thumbnails, product_ids)


async def read_image(settings: Settings, image: StoredImage) -> bytes:
    return await open_image_files(settings).read_all(image.path)


async def image_of(database: Database, settings: Settings, which: str, position: int) -> bytes:
    product_id = await database.run(find_product, which)
    return await read_image(settings, await find_image(database, product_id, position))
