"""Archiving of products that were not seen for a long time, and their restoration."""

from __future__ import annotations

import asyncio
import io
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from forager.analytics.lake import SUFFIX, lake_folder, read_manifest
from forager.analytics.sync import sync
from forager.archive.local import sync_folder, whole_file
from forager.archive.options import archive_options
from forager.db.database import Connection, Database
from forager.errors import ForagerError, InvalidInput
from forager.hints import Hint, action
from forager.images.files import image_files_at
from forager.index.kind import PRODUCTS
from forager.index.store import enqueue_rows
from forager.logs import get_logger
from forager.products.store import archiving as store
from forager.products.store.archiving import TABLES, Row
from forager.row_files import load_pyarrow
from forager.services.service import Service
from forager.settings import Settings
from forager.settings.values import DAY

DEFAULT_DAYS = 180.0
FOLDER = "archived-products"
# products in one file and one transaction
BATCH = 500

# the file of an image may have been deleted: it is fetched again
_UNFETCHED_IMAGE: dict[str, Any] = {
    "status": "pending", "image_path": None, "content_hash": None, "fetched_at": None,
    "attempts": 0, "problem": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moved:
    """The number of products, prices and images that were archived or restored.

    `skipped` products exist already, or another product has their URL, or their domain is gone.
    """

    products: int
    prices: int
    images: int
    skipped: int
    # local paths, or names in the object store
    files: tuple[str, ...]


# locks the next products after an id
Lock = Callable[..., Awaitable[list[int]]]


def archive_folder(settings: Settings) -> Path:
    return settings.home / FOLDER


async def archive_products(
    database: Database,
    settings: Settings,
    *,
    days: float = DEFAULT_DAYS,
    batch: int = BATCH,
    progress: Callable[[int], None] = lambda _: None,
) -> Moved:
    """Move products not seen for this many days to files, with their prices.

    A batch is deleted in the transaction that read it, after its file is on the disk and was read
    back. Killed before the commit, everything is still there, and the file is one too many.
    """
    if not days > 0:
        raise InvalidInput("days must be more than 0")
    await prepare_archiving(database, settings)
    lock = partial(store.lock_unseen, seconds=days * DAY, limit=batch)
    return await archive_range(database, settings, lock, progress=progress)


async def prepare_archiving(database: Database, settings: Settings) -> None:
    """Copy products to the lake, if there is one, before they are archived."""
    load_pyarrow("pyarrow")
    if read_manifest(lake_folder(settings)) is not None:
        await sync(database, settings)


async def archive_range(
    database: Database,
    settings: Settings,
    lock: Lock,
    *,
    after: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Moved:
    """Archive the products after an id that the lock finds, until it finds no more."""
    counts: Counter[str] = Counter()
    files: list[str] = []
    while True:
        async with database.transaction() as connection:
            ids = await lock(connection, after=after)
            if not ids:
                return _moved(counts, 0, files)
            rows = await store.select_rows(connection, ids)
            files.append(await _write(settings, rows))
            if await store.delete_products(connection, ids) != len(ids):
                raise ForagerError("other products were deleted than were archived")
            await enqueue_rows(connection, PRODUCTS, ids)
        counts.update(row.table for row in rows)
        after = ids[-1]
        progress(len(ids))


async def restore_products(database: Database, settings: Settings, path: str | Path) -> Moved:
    """Restore the products of one file with their IDs and prices, all or none.

    A path that is not a file here is looked up in the object store of the archive.
    """
    options = archive_options(settings)
    if options.in_bucket and not await asyncio.to_thread(Path(path).exists):
        data = await image_files_at(options.place).read_all(str(path))
    else:
        data = await asyncio.to_thread(_read_file, Path(path))
    rows = await asyncio.to_thread(_parse, data, str(path))
    counts: Counter[str] = Counter()
    async with database.transaction() as connection:
        products = await _with_domains(connection, rows["products"])
        back = set(await _insert(connection, "products", products))
        await store.mark_restored(connection, sorted(back))
        counts["products"] = len(back)
        await enqueue_rows(connection, PRODUCTS, sorted(back))
        for table in TABLES[1:]:
            wanted = [row for row in rows[table] if row["product_id"] in back]
            counts[table] = len(await _insert(connection, table, wanted))
    return _moved(counts, len(rows["products"]) - len(back), [str(path)])


def _moved(counts: Counter[str], skipped: int, files: Sequence[str]) -> Moved:
    products, prices, images = counts["products"], counts["price_history"], counts["images"]
    return Moved(products, prices, images, skipped, tuple(files))


async def _with_domains(
    connection: Connection, products: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Products whose domain exists; without their task if that does not."""
    domains = await store.select_known(connection, "domains", [p["domain_id"] for p in products])
    wanted = [p["crawl_task_id"] for p in products if p["crawl_task_id"] is not None]
    tasks = await store.select_known(connection, "crawl_tasks", wanted)
    return [
        p if p["crawl_task_id"] in tasks else p | {"crawl_task_id": None}
        for p in products
        if p["domain_id"] in domains
    ]


async def _insert(connection: Connection, table: str, rows: list[dict[str, Any]]) -> list[int]:
    if not rows:
        return []
    if table == "images":
        rows = [row | _UNFETCHED_IMAGE for row in rows]
    # columns that are newer than the file get their defaults
    columns = sorted(await store.select_columns(connection, table) & rows[0].keys())
    return await store.insert_rows(connection, table, columns, rows)


async def _write(settings: Settings, rows: Sequence[Row]) -> str:
    """Write a file next to the archive, in the object store or locally, and read it back."""
    name = f"{datetime.now(UTC):%Y-%m-%d}-{rows[0].id:012}-{uuid4().hex[:8]}{SUFFIX}"
    data = await asyncio.to_thread(_serialize, rows)
    options = archive_options(settings)
    if options.in_bucket:
        path = f"{FOLDER}/{name}"
        files = image_files_at(options.place)
        await files.put_all(path, data)
        stored = await files.read_all(path)
    else:
        path = str(archive_folder(settings) / name)
        stored = await asyncio.to_thread(_write_file, Path(path), data)
    if stored != data:
        raise ForagerError(f"{path} does not hold what was written to it")
    return path


def _serialize(rows: Sequence[Row]) -> bytes:
    table = load_pyarrow("pyarrow").Table.from_pylist([asdict(row) for row in rows])
    file = io.BytesIO()
    load_pyarrow("pyarrow.parquet").write_table(table, file, compression="zstd")
    return file.getvalue()


def _write_file(path: Path, data: bytes) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, overwrite=False) as file:
        file.write(data)
    sync_folder(path.parent.parent)  # which may be new there
    return path.read_bytes()


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(str(path), error) from None


def _parse(data: bytes, path: str) -> dict[str, list[dict[str, Any]]]:
    parquet, arrow = load_pyarrow("pyarrow.parquet"), load_pyarrow("pyarrow")
    try:
        rows = parquet.ParquetFile(io.BytesIO(data)).read(["table", "row"]).to_pylist()
        return {
            table: [orjson.loads(row["row"]) for row in rows if row["table"] == table]
            for table in TABLES
        }
    except (OSError, arrow.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{path} is not a file of archived products: {error}",
        hint=Hint("{} lists the files that it writes.", action("products archive")),
    )


log = get_logger("products")

INTERVAL = 6 * 3600.0
# bounds the wait for the first run, so that it also happens if workers are restarted every day
FIRST = 900.0
# products that one statement checks, and statements of one run: the time of the last visit is in
# no index, because every visit would have to update it
RANGE = 20_000
RANGES = 200


class ProductArchiver:
    """Checks some products in each run, and continues after them in the next.

    A restart loses the position: a random first one gives all products their turn.
    """

    def __init__(
        self, database: Database, settings: Settings, *, ids: int = RANGE, ranges: int = RANGES
    ) -> None:
        self._database = database
        self._settings = settings
        self._ids = ids
        self._ranges = ranges
        self._after: int | None = None
        self._is_prepared = False

    def services(self) -> list[Service]:
        """The service, unless archiving is disabled."""
        if self._settings.product_archive_after is None:
            return []
        return [
            Service(
                name="product archiving", every=INTERVAL, step=self.run_once, first_within=FIRST
            )
        ]

    async def run_once(self) -> int:
        """Archive the due ones of the next products; returns how many."""
        archived = 0
        self._is_prepared = False
        start = after = await self._anywhere() if self._after is None else self._after
        is_round = False
        for _ in range(self._ranges):
            last = await self._database.run(store.select_last_id, after=after, limit=self._ids)
            if is_round and (last is None or after >= start):
                break
            if last is None:
                is_round, after = True, 0
                continue
            archived += await self._archive(after, last)
            after = self._after = last
        self._after = after
        if archived:
            folder = archive_folder(self._settings)
            log.info(
                "products not seen for long were archived", products=archived, folder=str(folder)
            )
        return archived

    async def _anywhere(self) -> int:
        ids = await self._database.run(store.select_ids)
        return 0 if ids is None else random.randrange(ids[0] - 1, ids[1])  # noqa: S311

    async def _archive(self, after: int, last: int) -> int:
        assert self._settings.product_archive_after is not None
        lock = partial(
            store.lock_unseen,
            seconds=self._settings.product_archive_after, limit=BATCH, until=last, given_up=True,
        )  # fmt: skip
        async with self._database.transaction() as connection:
            if not await lock(connection, after=after):
                return 0
        if not self._is_prepared:
            await prepare_archiving(self._database, self._settings)
            self._is_prepared = True
        moved = await archive_range(self._database, self._settings, lock, after=after)
        return moved.products
