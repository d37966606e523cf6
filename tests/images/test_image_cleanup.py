"""Crashes and clean-up leave no file without a reference and no reference without a file."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

from forager.db.database import Database
from forager.extract.product.product import ProductImage
from forager.images.files import delete_unused_files, image_path
from forager.images.store import images as store
from forager.images.writer import record_images
from images.image_shop import Shop, picture
from products.rows import insert_domain
from servers.site import Page
from support.waiting import lock_waited_for


async def test_a_kill_between_file_and_reference_leaves_no_dangling_reference(
    shop: Shop, database_url: str
) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    environment = {
        **os.environ,
        "FORAGER_HOME": str(shop.settings.home),
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_LOG_LEVEL": "critical",
    }
    script = Path(__file__).with_name("image_fetcher_process.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    assert await process.wait() == -9

    assert len(shop.stored) == 1
    assert (await shop.row())["status"] == "pending"
    # as if what the dead one held had run out: its lease, and its share of the host
    await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.execute("DELETE FROM domain_permits")
    await shop.fetch()
    assert (await shop.row())["status"] == "stored"
    assert len(shop.stored) == 1


async def test_files_without_references_are_deleted_after_a_while(shop: Shop) -> None:
    shop.site.pages |= {"/a.jpg": Page(picture()), "/b.jpg": Page(picture(color=9))}
    product = await shop.show(1, "/a.jpg", "/b.jpg")
    await shop.fetch()
    delete = partial(delete_unused_files, shop.database, shop.settings)
    assert await delete() == 0
    image = ProductImage(f"http://{shop.domain}/b.jpg")
    async with shop.database.transaction() as connection:
        await record_images(connection, {product: (image,)}, limit=10)

    assert await delete() == 0  # a writer may be about to refer to it
    await shop.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
    assert await delete() == 1
    assert len(shop.stored) == 1
    assert (await shop.row())["status"] == "stored"


async def test_a_file_that_is_going_is_not_referred_to(shop: Shop) -> None:
    data = picture()
    shop.site.pages["/a.jpg"] = Page(data)
    await shop.show(1, "/a.jpg")
    await shop.execute(
        f"""
        INSERT INTO image_files (content_hash, path, media_type, width, height, file_size, going_at)
        VALUES ('\\x{sha256(data).hexdigest()}', '{image_path(sha256(data).digest(), "jpg")}',
                'image/jpeg', 64, 48, {len(data)}, now())
        """
    )
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["waits"]) == ("pending", True)

    # the clean-up that died is gone on with, and the image can be had again
    assert await delete_unused_files(shop.database, shop.settings) == 1
    await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.fetch()
    assert (await shop.row())["status"] == "stored"


async def test_a_fetcher_frozen_during_a_deletion_does_not_refer_to_the_file(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    new = store.NewFile(b"1" * 32, image_path(b"1" * 32, "jpg"), "image/jpeg", 1, 1, 1)
    async with shop.database.connection() as connection:
        before = await store.touch_file(connection, new)
        assert before is not None
        await connection.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
        assert await delete_unused_files(shop.database, shop.settings) == 1
        # another writer has started with the same content, and has not written it yet
        after = await store.touch_file(connection, new)
        assert after is not None
        assert await store.refer(connection, [1], before) == 0


async def test_a_clean_up_waits_for_transactions_that_add_references(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    new = store.NewFile(b"1" * 32, image_path(b"1" * 32, "jpg"), "image/jpeg", 1, 1, 1)
    async with shop.database.connection() as connection:
        key = await store.touch_file(connection, new)
        assert key is not None
        await connection.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
    async with shop.database.connection() as connection, connection.transaction():
        cursor = await connection.execute("SELECT id FROM images")
        row = await cursor.fetchone()
        assert row is not None
        assert await store.refer(connection, [row[0]], key) == 1
        cleaning = asyncio.create_task(delete_unused_files(shop.database, shop.settings))
        await lock_waited_for(shop.database)
    assert await cleaning == 0


async def test_a_domain_without_products_has_no_images(database: Database) -> None:
    async with database.connection() as connection:
        await insert_domain(connection)
        assert await store.claim_images(connection, limit=10, lease_seconds=60) == []
