"""Products leave for files and come back as they were; killed anywhere, none is lost."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from analytics.archive_rows import add_unseen, count, everything
from analytics.killing import kill_after
from analytics.lake_rows import ids_in
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.archive.objects import open_bucket
from forager.db.database import Database
from forager.errors import ForagerError, InvalidInput, NotFound
from forager.images.files import IMAGE_FILES
from forager.products import archiving
from forager.products.archiving import archive_folder, archive_products, restore_products
from forager.row_files import load_pyarrow
from forager.settings import Settings
from products.rows import add_product
from support.sql import execute

PROCESS = Path(__file__).with_name("archiving_process.py")


async def test_there_and_back(database: Database, settings: Settings) -> None:
    for number in range(5):
        await add_unseen(database, number)
    seen = await add_product(database, 99)
    before = await everything(database)
    gone = await archive_products(database, settings, batch=2)
    assert (gone.products, gone.prices, gone.images, len(gone.files)) == (5, 20, 5, 3)
    assert all(Path(path).parent == archive_folder(settings) for path in gone.files)
    assert await count(database, "products") == 1
    assert await count(database, "price_history") == 1
    back = [await restore_products(database, settings, path) for path in gone.files]
    assert sum(each.products for each in back) == 5
    assert sum(each.prices for each in back) == 20
    assert await everything(database) == before
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT DISTINCT status, content_hash FROM images")
        assert await cursor.fetchall() == [("pending", None)]
    # a second time there is nothing to do
    again = await restore_products(database, settings, gone.files[0])
    assert (again.products, again.prices, again.skipped) == (0, 0, 2)
    # new rows get numbers of their own
    assert await add_product(database, 100) > seen


async def test_names_of_new_files_and_folders_are_synced(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[Path, set[str]] = {}
    sync_to_disk = os.fsync

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            synced[path] = {each.name for each in path.iterdir()}
        sync_to_disk(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    await add_unseen(database, 1)
    await sync(database, settings)
    [file] = (await archive_products(database, settings)).files
    assert {"archived-products", "lake"} <= synced[settings.home]
    assert Path(file).name in synced[archive_folder(settings)]
    assert "manifest.json" in synced[lake_folder(settings)]


async def test_there_and_back_in_an_object_store(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_unseen(database, 1)
    before = await everything(database)
    bucket = open_bucket("memory:///", kind=IMAGE_FILES)
    monkeypatch.setattr(archiving, "image_files_at", lambda _: bucket)
    remote = settings.model_copy(update={"archive_url": "s3://bucket/forager"})
    [name] = (await archive_products(database, remote)).files
    assert name.startswith("archived-products/")
    assert not archive_folder(remote).exists()
    assert (await restore_products(database, remote, name)).products == 1
    assert await everything(database) == before
    with pytest.raises(NotFound):
        await restore_products(database, remote, "archived-products/0.parquet")


async def test_who_was_seen_stays(database: Database, settings: Settings) -> None:
    await add_product(database, 1)
    gone = await archive_products(database, settings)
    assert (gone.products, gone.files) == (0, ())
    assert await count(database, "products") == 1
    with pytest.raises(InvalidInput, match="days"):
        await archive_products(database, settings, days=0)


async def test_a_product_that_is_back_is_left_alone(database: Database, settings: Settings) -> None:
    await add_unseen(database, 1)
    [file] = (await archive_products(database, settings)).files
    await execute(database, "DELETE FROM crawl_tasks")
    new = await add_product(database, 1)
    before = await everything(database)
    back = await restore_products(database, settings, file)
    assert (back.products, back.prices, back.skipped) == (0, 0, 1)
    assert await everything(database) == before
    assert await count(database, "products") == 1
    assert new


async def test_a_task_or_a_domain_may_be_gone(database: Database, settings: Settings) -> None:
    await add_unseen(database, 1)
    [file] = (await archive_products(database, settings)).files
    await execute(database, "DELETE FROM crawl_tasks")
    assert (await restore_products(database, settings, file)).products == 1
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT crawl_task_id FROM products")
        assert await cursor.fetchall() == [(None,)]
        await connection.execute("DELETE FROM products")
        await connection.execute("DELETE FROM domains")
    back = await restore_products(database, settings, file)
    assert (back.products, back.skipped) == (0, 1)


async def test_nothing_is_deleted_that_was_not_verified(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_unseen(database, 1)
    before = await everything(database)

    def lose(_: Path) -> None:
        """A disk that keeps something else."""
        for path in archive_folder(settings).iterdir():
            parquet = load_pyarrow("pyarrow.parquet")
            table = parquet.ParquetFile(path).read()
            parquet.write_table(table.slice(1), path)

    monkeypatch.setattr(archiving, "sync_folder", lose)
    with pytest.raises(ForagerError, match="does not hold"):
        await archive_products(database, settings)
    assert await everything(database) == before


async def test_the_lake_has_it_first(database: Database, settings: Settings) -> None:
    await sync(database, settings)
    product_id = await add_unseen(database, 1)
    assert (await archive_products(database, settings)).products == 1
    assert ids_in(lake_folder(settings), "products") == [product_id]
    # the price of this moment waits for its moment; those of long ago do not
    assert len(ids_in(lake_folder(settings), "price_history")) >= 3


async def test_killed_anywhere_none_is_lost(
    database: Database, database_url: str, settings: Settings
) -> None:
    for number in range(12):
        await add_unseen(database, number)
    before = await everything(database)
    for steps in (0, 1, 2):
        await kill_after(steps, PROCESS, database_url, settings.home, "1")
    async with asyncio.timeout(60):
        # what the killed one held is let go of by the server in a moment
        while await count(database, "products"):
            await archive_products(database, settings, batch=5)
    for path in sorted(archive_folder(settings).glob("*.parquet")):
        await restore_products(database, settings, path)
    assert await everything(database) == before


async def test_what_was_restored_stays(database: Database, settings: Settings) -> None:
    await add_unseen(database, 1)
    [file] = (await archive_products(database, settings)).files
    await restore_products(database, settings, file)
    assert (await archive_products(database, settings)).products == 0
    await execute(database, "UPDATE products SET restored_at = now() - interval '181 days'")
    assert (await archive_products(database, settings)).products == 1


async def test_other_files_are_refused(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    other = tmp_path / "other.parquet"
    with pytest.raises(InvalidInput, match="not a file of archived products"):
        await restore_products(database, settings, other)
    other.write_bytes(b"PAR1 and nothing")
    with pytest.raises(InvalidInput, match="not a file of archived products"):
        await restore_products(database, settings, other)
