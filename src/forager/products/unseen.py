"""Products that were not seen for a long time: exported to files, then deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

from forager.archive.local import sync_folder, whole_file
from forager.archive.options import archive_options
from forager.db.database import Database
from forager.images.files import image_files_at
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.logs import get_logger
from forager.products.export import ProductExport, ProductsExportFormat, export_portions
from forager.products.filters import Filters
from forager.products.store import lists as store
from forager.row_files import DrainableFile, JsonLines, Row
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("products")

FOLDER = "archived-products"
INTERVAL = 6 * 3600.0
# bounds the wait for the first run, so that it also happens if workers are restarted every day
FIRST = 900.0
# products of one statement
BATCH = 1_000


def archive_folder(settings: Settings) -> Path:
    return settings.home / FOLDER


def unseen_services(database: Database, settings: Settings) -> list[Service]:
    """The background service, if it is enabled."""
    if settings.product_archive_after is None:
        return []
    step = partial(archive_unseen, database, settings, settings.product_archive_after)
    return [Service(name="product archiving", every=INTERVAL, step=step, first_within=FIRST)]


async def archive_unseen(database: Database, settings: Settings, seconds: float) -> int:
    """Export products not seen for this long as JSON lines, then delete them; return how many.

    A portion is deleted after its file is stored. If the process is killed in between, the next
    run exports these products again.
    """
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    wanted = ProductExport(
        ProductsExportFormat.JSONL, Filters(not_seen_since=since), columns=("all",)
    )
    deleted = 0
    async for rows in export_portions(database, wanted):
        await _store(settings, rows)
        deleted += await delete_unseen(database, [row["id"] for row in rows], since)
    if deleted:
        log.info("unseen products were archived", products=deleted)
    return deleted


async def delete_unseen(database: Database, ids: Sequence[int], since: datetime) -> int:
    """Delete those of the products that are still unseen; return how many."""
    deleted = 0
    for start in range(0, len(ids), BATCH):
        async with database.transaction() as connection:
            gone = await store.delete_unseen(connection, ids[start : start + BATCH], since)
            await enqueue_rows(connection, PRODUCTS, gone)
        deleted += len(gone)
    return deleted


async def _store(settings: Settings, rows: Sequence[Row]) -> None:
    """Write a file next to the archive, in the object store or locally."""
    gathered = DrainableFile()
    JsonLines(gathered).write(rows)
    name = f"{datetime.now(UTC):%Y-%m-%d}-{rows[0]['id']:012}-{uuid4().hex[:8]}.jsonl"
    options = archive_options(settings)
    if options.in_bucket:
        await image_files_at(options.place).put_all(f"{FOLDER}/{name}", gathered.take())
    else:
        await asyncio.to_thread(_write, archive_folder(settings) / name, gathered.take())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, overwrite=False) as file:
        file.write(data)
    sync_folder(path.parent.parent)  # the folder may be new
