"""The stored image of a product, for whoever wants to look at it."""

from __future__ import annotations

from forager.db.database import Database
from forager.errors import NotFound
from forager.hints import Hint, action
from forager.images.files import open_image_files
from forager.images.store import images as store
from forager.images.store.images import StoredImage
from forager.products.lookup import find_product
from forager.settings import Settings


async def find_image(database: Database, product_id: int, position: int) -> StoredImage:
    """The image at a place of a product's page, if its file is stored."""
    async with database.connection() as connection:
        found = await store.select_stored(connection, product_id, position)
    if found is None:
        raise NotFound(
            f"there is no stored image {position} of product {product_id}",
            hint=Hint("{} lists its images.", action("products show", product_id)),
        )
    return found


async def read_image(settings: Settings, image: StoredImage) -> bytes:
    return await open_image_files(settings).read(image.path)


async def image_of(database: Database, settings: Settings, which: str, position: int) -> bytes:
    """The file of an image of a product that is named by its id or URL."""
    async with database.connection() as connection:
        product_id = await find_product(connection, which)
    return await read_image(settings, await find_image(database, product_id, position))
