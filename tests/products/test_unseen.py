"""Products that were not seen for a long time are exported and deleted, and only they."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forager.archive.objects import open_bucket
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.images.files import IMAGE_FILES
from forager.products import unseen
from forager.products.unseen import archive_folder, archive_unseen, delete_unseen, unseen_services
from forager.services.supervisor import running
from forager.settings import Settings, load_settings
from forager.settings.values import DAY
from products.rows import add_product
from support.sql import execute
from support.waiting import eventually

AFTER = 180 * DAY


async def add_unseen(database: Database, number: int) -> int:
    """A product of long ago that a visit did not find today."""
    product_id = await add_product(database, number)
    await execute(
        database,
        "UPDATE products SET last_seen_at = now() - interval '181 days' WHERE id = %s RETURNING 1",
        product_id,
    )
    return product_id


async def remaining(database: Database) -> list[int]:
    return [row[0] for row in await execute(database, "SELECT id FROM products ORDER BY id")]


def archived(settings: Settings) -> list[dict[str, Any]]:
    files = sorted(archive_folder(settings).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    "state",
    [
        "status = 'pending', completed_at = NULL",
        "status = 'completed', completed_at = now() - interval '181 days'",
    ],
)
async def test_a_product_that_waits_for_a_visit_stays(
    database: Database, settings: Settings, state: str
) -> None:
    """The workers were down for half a year: without visits, no product is known to be gone."""
    product_id = await add_unseen(database, 1)
    await execute(database, f"UPDATE crawl_tasks SET {state} RETURNING 1".encode())
    await execute(
        database,
        "UPDATE products p SET last_seen_at = coalesce(t.completed_at, p.last_seen_at)"
        " FROM crawl_tasks t WHERE t.id = p.crawl_task_id RETURNING 1",
    )
    assert await archive_unseen(database, settings, AFTER) == 0
    assert await remaining(database) == [product_id]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE crawl_tasks SET status = 'failed' WHERE url LIKE '%/1' RETURNING 1",
        "UPDATE crawl_tasks SET completed_at = now() RETURNING 1",
        "DELETE FROM crawl_tasks RETURNING 1",
    ],
)
async def test_a_product_that_is_gone_is_exported_and_deleted(
    database: Database, settings: Settings, change: str
) -> None:
    product_id = await add_unseen(database, 1)
    seen = await add_product(database, 2)
    await execute(database, change.encode())
    assert await archive_unseen(database, settings, AFTER) == 1
    assert await remaining(database) == [seen]
    [row] = archived(settings)
    [price] = json.loads(row["price_history"])
    assert (row["id"], row["url"], price["price"]) == (product_id, "https://shop.example/p/1", 10)


async def test_what_was_seen_meanwhile_is_not_deleted(database: Database) -> None:
    ids = [await add_unseen(database, number) for number in range(3)]
    await execute(
        database, "UPDATE products SET last_seen_at = now() WHERE id = %s RETURNING 1", ids[1]
    )
    since = datetime.now(UTC) - timedelta(days=180)
    assert await delete_unseen(database, ids, since) == 2
    assert await remaining(database) == [ids[1]]


async def test_nothing_is_deleted_before_its_file_is_stored(
    database: Database, settings: Settings
) -> None:
    product_id = await add_unseen(database, 1)
    settings.home.mkdir(parents=True, exist_ok=True)
    archive_folder(settings).write_text("in the way")
    with pytest.raises(OSError, match="File exists"):
        await archive_unseen(database, settings, AFTER)
    assert await remaining(database) == [product_id]


async def test_files_go_to_the_object_store_of_the_archive(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_unseen(database, 1)
    bucket = open_bucket("memory:///", kind=IMAGE_FILES)
    stored: list[str] = []
    put = bucket.put_all

    async def note(path: str, data: bytes) -> None:
        stored.append(path)
        await put(path, data)

    monkeypatch.setattr(bucket, "put_all", note)
    monkeypatch.setattr(unseen, "image_files_at", lambda _: bucket)
    remote = settings.model_copy(update={"archive_url": "s3://bucket/forager"})
    assert await archive_unseen(database, remote, AFTER) == 1
    assert not archive_folder(remote).exists()
    assert json.loads(await bucket.read_all(stored[0]))["name"] == "Product 1"


async def test_the_service_runs_soon_after_the_start(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unseen_services(database, settings) == []
    await add_unseen(database, 1)
    monkeypatch.setattr(unseen, "FIRST", 0.0)

    async def none_left() -> bool:
        return await remaining(database) == []

    given = settings.model_copy(update={"product_archive_after": AFTER})
    async with running(unseen_services(database, given)):
        await eventually(none_left)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("180d", 180 * DAY), ("26w", 182 * DAY), (" 36H ", 1.5 * DAY), ("off", None)],
)
def test_the_setting(text: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().product_archive_after is None
    monkeypatch.setenv("FORAGER_PRODUCT_ARCHIVE_AFTER", text)
    assert load_settings().product_archive_after == seconds


@pytest.mark.parametrize("text", ["180", "soon", "1h", "-3d", "٣d", "99999999d"])
def test_values_that_are_no_period(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_PRODUCT_ARCHIVE_AFTER", text)
    with pytest.raises(InvalidInput, match=r"(?i)product_archive_after"):
        load_settings()
