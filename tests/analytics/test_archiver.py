"""Products are archived automatically once they are no longer visited, and only then."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from analytics.archive_rows import add_unseen, count, everything
from analytics.killing import kill_after
from analytics.lake_rows import ids_in
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.products import archiving
from forager.products import archiving as archiver
from forager.products.archiving import ProductArchiver, archive_folder, restore_products
from forager.services.supervisor import running
from forager.settings import Settings, load_settings
from forager.settings.values import DAY
from products.rows import add_product
from support.sql import execute
from support.waiting import eventually

PROCESS = Path(__file__).with_name("archiver_process.py")


async def set_tasks(database: Database, what: str) -> None:
    await execute(database, f"UPDATE crawl_tasks SET {what}".encode())


async def test_who_waits_for_a_visit_stays(database: Database, settings: Settings) -> None:
    """The workers were down for half a year: without visits, no product is known to be gone."""
    await add_unseen(database, 1)
    archiver = ProductArchiver(database, settings)
    for state in (
        "status = 'pending', completed_at = NULL",
        "status = 'completed', completed_at = now() - interval '181 days',"
        " next_crawl_at = now() - interval '180 days'",
    ):
        await set_tasks(database, state)
        await execute(
            database,
            "UPDATE products p SET last_seen_at = coalesce(t.completed_at, p.last_seen_at)"
            " FROM crawl_tasks t WHERE t.id = p.crawl_task_id",
        )
        assert await archiver.run_once() == 0
    assert await count(database, "products") == 1


@pytest.mark.parametrize(
    "what",
    [
        "status = 'failed'",
        "status = 'completed', completed_at = now(), next_crawl_at = now() + interval '1 day'",
    ],
)
async def test_who_was_looked_for_in_vain_goes(
    database: Database, settings: Settings, what: str
) -> None:
    await add_unseen(database, 1)
    seen = await add_product(database, 2)
    before = await everything(database)
    await set_tasks(database, what)
    assert await ProductArchiver(database, settings).run_once() == 1
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT id FROM products")
        assert await cursor.fetchall() == [(seen,)]
    [file] = archive_folder(settings).iterdir()
    assert (await restore_products(database, settings, file)).products == 1
    assert await everything(database) == before
    # and it stays, although it has not been visited since
    assert await ProductArchiver(database, settings).run_once() == 0


async def test_who_nobody_looks_for_any_more_goes(database: Database, settings: Settings) -> None:
    await add_unseen(database, 1)
    await execute(database, "DELETE FROM crawl_tasks")
    assert await ProductArchiver(database, settings).run_once() == 1


async def test_in_steps_and_round_again(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        await add_unseen(database, number)
    await set_tasks(database, "status = 'failed'")
    monkeypatch.setattr(random, "randrange", lambda first, _: first)
    archiver = ProductArchiver(database, settings, ids=2, ranges=2)
    assert [await archiver.run_once() for _ in range(3)] == [4, 3, 0]
    await add_unseen(database, 8)
    await set_tasks(database, "status = 'failed'")
    assert await archiver.run_once() == 1


async def test_started_anew_it_begins_anywhere(database: Database, settings: Settings) -> None:
    """Runs that end before the end of the table, each in a separate process."""
    for number in range(4):
        await add_unseen(database, number)
    await set_tasks(database, "status = 'failed'")
    async with database.connection() as connection:
        # a run that begins with the first ones finds none
        await connection.execute(
            "UPDATE products SET last_seen_at = now()"
            " WHERE id IN (SELECT id FROM products ORDER BY id LIMIT 2)"
        )
    async with asyncio.timeout(60):
        while await count(database, "products") > 2:
            await ProductArchiver(database, settings, ids=1, ranges=1).run_once()


async def test_one_look_goes_round_once(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await add_unseen(database, number)
    await set_tasks(database, "status = 'failed'")
    monkeypatch.setattr(random, "randrange", lambda _, last: last - 2)
    assert await ProductArchiver(database, settings, ids=2).run_once() == 5


async def test_it_looks_soon_after_the_start(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_unseen(database, 1)
    await set_tasks(database, "status = 'failed'")
    monkeypatch.setattr(archiver, "FIRST", 0.0)

    async def none_left() -> bool:
        return await count(database, "products") == 0

    async with running(ProductArchiver(database, settings).services()):
        await eventually(none_left)


async def test_the_lake_has_it_first(database: Database, settings: Settings) -> None:
    await sync(database, settings)
    product_id = await add_unseen(database, 1)
    await set_tasks(database, "status = 'failed'")
    assert await ProductArchiver(database, settings).run_once() == 1
    assert ids_in(lake_folder(settings), "products") == [product_id]


async def test_without_the_library_nothing_is_lost(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_unseen(database, 1)
    await set_tasks(database, "status = 'failed'")

    def missing(_: str) -> None:
        raise InvalidInput("Parquet files need pyarrow, which is not installed")

    monkeypatch.setattr(archiving, "load_pyarrow", missing)
    with pytest.raises(InvalidInput, match="pyarrow"):
        await ProductArchiver(database, settings).run_once()
    assert await count(database, "products") == 1


def test_switched_off_it_is_no_service(database: Database, settings: Settings) -> None:
    off = settings.model_copy(update={"product_archive_after": None})
    assert ProductArchiver(database, off).services() == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("180d", 180 * DAY), ("26w", 182 * DAY), (" 36H ", 1.5 * DAY)]
)
def test_how_long_is_written(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_PRODUCT_ARCHIVE_AFTER", text)
    assert load_settings().product_archive_after == seconds


def test_off_and_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().product_archive_after == 180 * DAY
    monkeypatch.setenv("FORAGER_PRODUCT_ARCHIVE_AFTER", "off")
    assert load_settings().product_archive_after is None


@pytest.mark.parametrize("text", ["180", "soon", "1h", "-3d", "٣d", "99999999d"])
def test_what_is_no_length(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_PRODUCT_ARCHIVE_AFTER", text)
    with pytest.raises(InvalidInput, match=r"(?i)product_archive_after"):
        load_settings()


async def test_killed_anywhere_none_is_lost(
    database: Database, database_url: str, settings: Settings
) -> None:
    """Killed after a file was written, and after its products were deleted."""
    for number in range(8):
        await add_unseen(database, number)
    await set_tasks(database, "status = 'failed'")
    before = await everything(database)
    for steps in (1, 2, 1):
        await kill_after(steps, PROCESS, database_url, settings.home)
    async with asyncio.timeout(60):
        # what the killed one held is let go of by the server in a moment
        while await count(database, "products"):
            await ProductArchiver(database, settings).run_once()
    for path in sorted(archive_folder(settings).glob("*.parquet")):
        await restore_products(database, settings, path)
    assert await everything(database) == before
