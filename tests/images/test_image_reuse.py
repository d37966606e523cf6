"""A file is stored once, used again while it is recent, and replaced when the image changed."""

from __future__ import annotations

from hashlib import sha256

from forager.extract.product.product import ProductImage
from forager.images.files import open_image_files
from forager.images.writer import record_images
from forager.products.lookup import find_image
from forager.products.service import show_product
from forager.products.writer import touch_unchanged
from images.image_shop import Shop, picture
from products.rows import add_product
from servers.site import Page


async def test_an_image_is_fetched_measured_and_stored(shop: Shop) -> None:
    data = picture(size=(120, 80))
    shop.site.pages["/a.jpg"] = Page(data)
    await shop.show(1, "/a.jpg")

    assert await shop.fetch() == 1

    row = await shop.row()
    digest = sha256(data).hexdigest()
    assert row == {
        "status": "stored",
        "problem": None,
        "width": 120,
        "height": 80,
        "file_size": len(data),
        "image_path": f"images/{digest[:2]}/{digest[2:4]}/{digest}.jpg",
        "attempts": 1,
        "waits": True,
    }
    assert await open_image_files(shop.settings).read_all(row["image_path"]) == data
    assert await shop.fetch() == 0


async def test_the_same_content_at_two_addresses_is_one_file(shop: Shop) -> None:
    data = picture("PNG")
    shop.site.pages |= {"/a.png": Page(data), "/b.jpg": Page(data)}
    await shop.show(1, "/a.png", "/b.jpg")
    await shop.fetch()

    first, second = await shop.rows()
    assert first["image_path"] == second["image_path"]
    assert first["image_path"].endswith(".png")
    assert len(shop.stored) == 1


async def test_one_address_of_many_products_is_fetched_once(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.show(2, "/a.jpg")
    await shop.fetch()
    await shop.show(3, "/a.jpg")
    await shop.fetch()

    assert [row["status"] for row in await shop.rows()] == ["stored"] * 3
    assert shop.site.hits["/a.jpg"] == 1


async def test_a_reused_file_is_as_old_as_the_one_it_was_taken_from(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    product = await shop.show(2, "/a.jpg")
    # listed long ago, and given the file of the other just now
    await shop.execute("UPDATE images SET created_at = now() - interval '40 days'")
    await shop.fetch()
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0

    await shop.execute("UPDATE images SET fetched_at = fetched_at - interval '31 days'")
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 1
    assert shop.site.hits["/a.jpg"] == 2


async def test_files_that_were_reused_do_not_keep_others_from_looking(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    for number in (2, 3):
        await shop.execute("UPDATE images SET fetched_at = fetched_at - interval '13 hours'")
        await shop.show(number, "/a.jpg")
        await shop.fetch()

    assert shop.site.hits["/a.jpg"] == 2


async def test_an_address_is_asked_again_when_its_file_is_not_recent(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    await shop.execute("UPDATE images SET fetched_at = now() - interval '2 days'")
    shop.site.pages["/a.jpg"] = Page(picture(color=1))
    await shop.show(2, "/a.jpg")
    await shop.fetch()

    assert shop.site.hits["/a.jpg"] == 2
    assert len(shop.stored) == 2


async def test_a_file_does_not_cross_to_a_domain_with_other_terms(shop: Shop) -> None:
    """A file from a private address is not reused for a domain that may not reach it."""
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    product = await add_product(shop.database, 2, domain="other.example")
    image = ProductImage(f"http://{shop.domain}/a.jpg")
    async with shop.database.transaction() as connection:
        await record_images(connection, {product: (image,)}, limit=100)
    await shop.fetch()

    first, second = await shop.rows()
    assert (first["status"], second["status"]) == ("stored", "refused")
    assert second["image_path"] is None
    assert "loopback" in second["problem"]


LONG_AGO = "UPDATE images SET fetched_at = now() - interval '31 days'"


async def test_a_picture_that_changed_where_it_is_replaces_the_old_one(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    product = await shop.show(1, "/a.jpg")
    await shop.fetch()
    before = await shop.row()
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0
    await shop.execute(LONG_AGO)
    shop.site.pages["/a.jpg"] = Page(picture(size=(30, 20)))
    await shop.show_again(product, "/a.jpg")
    # until it is there, the old one is shown
    assert (await find_image(shop.database, product, 0)).path == before["image_path"]
    assert (await show_product(shop.database, str(product))).images[0].status == "stored"
    assert await shop.fetch() == 1
    after = await shop.row()
    assert (after["status"], after["width"], after["height"]) == ("stored", 30, 20)
    assert after["image_path"] != before["image_path"]


async def test_a_picture_that_is_gone_is_kept(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    product = await shop.show(1, "/a.jpg")
    await shop.fetch()
    before = await shop.row()
    await shop.execute(LONG_AGO)
    shop.site.pages["/a.jpg"] = Page(b"", "404 Not Found")
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 1
    after = await shop.row()
    assert (after["status"], after["image_path"]) == ("stored", before["image_path"])
    assert "404" in after["problem"]
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0


async def test_pictures_of_a_page_that_did_not_change_are_renewed_too(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    await shop.execute(LONG_AGO)
    async with shop.database.transaction() as connection:
        cursor = await connection.execute("SELECT crawl_task_id FROM products")
        await touch_unchanged(connection, [row[0] for row in await cursor.fetchall()])
    assert await shop.fetch() == 1
    assert shop.site.hits["/a.jpg"] == 2
