"""A product's images are those its page shows."""

from __future__ import annotations

from typing import Any

from forager.db.database import Database
from forager.extract.product.product import ImageRole, ProductImage
from forager.images.writer import record_images
from products.rows import add_product
from support.sql import execute

ONE = ProductImage("https://cdn.example/1.jpg", "One", ImageRole.PRIMARY)
TWO = ProductImage("https://cdn.example/2.jpg")


async def record(
    database: Database, product_id: int, *images: ProductImage, limit: int = 10
) -> None:
    async with database.transaction() as connection:
        await record_images(connection, {product_id: images}, limit=limit)


async def listed(database: Database, product_id: int) -> list[tuple[Any, ...]]:
    return await execute(
        database,
        """
            SELECT image_url, alt_text, image_type, position, status
              FROM images WHERE product_id = %s ORDER BY position
            """,
        product_id,
    )


async def test_images_are_listed_in_order_and_once(database: Database) -> None:
    product = await add_product(database, 1)

    await record(database, product, ONE, TWO, ProductImage(ONE.url + "#again"))

    assert await listed(database, product) == [
        (ONE.url, "One", "primary", 0, "pending"),
        (TWO.url, None, "gallery", 1, "pending"),
    ]


async def test_what_is_not_shown_any_more_is_forgotten(database: Database) -> None:
    product, other = await add_product(database, 1), await add_product(database, 2)
    await record(database, product, ONE, TWO)
    await record(database, other, ONE)
    await execute(database, "UPDATE images SET status = 'refused', problem = 'not an image'")

    await record(database, product, TWO)

    assert await listed(database, product) == [(TWO.url, None, "gallery", 0, "refused")]
    assert len(await listed(database, other)) == 1
    await record(database, product)
    assert await listed(database, product) == []


async def test_only_so_many_are_listed(database: Database) -> None:
    product = await add_product(database, 1)
    images = [ProductImage(f"https://cdn.example/{number}.jpg") for number in range(9)]

    await record(database, product, *images, limit=4)

    assert [row[3] for row in await listed(database, product)] == [0, 1, 2, 3]
    await record(database, product, *images, limit=0)
    assert await listed(database, product) == []


async def test_what_is_no_web_address_is_left_out(database: Database) -> None:
    product = await add_product(database, 1)
    urls = ["data:image/png;base64,AAAA", "javascript:alert(1)", "/relative.png", "https://", ""]

    await record(database, product, *map(ProductImage, urls), TWO)

    assert await listed(database, product) == [(TWO.url, None, "gallery", 0, "pending")]


async def test_alt_texts_are_made_storable(database: Database) -> None:
    product = await add_product(database, 1)

    await record(database, product, ProductImage(ONE.url, "\0" + "x" * 5000 + "\ud800"))

    assert (await listed(database, product))[0][1] == "x" * 1000
