"""Bring the lake up to date: copy what is new, and rewrite the months that changed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from forager.analytics import store
from forager.analytics.clickhouse import load_driver
from forager.analytics.dataset import BY_NAME, DATASETS, PAGES, Dataset
from forager.analytics.engine import require_engine, rewrite_months
from forager.analytics.lake import LakeState, lake_folder, read_state, sole_writer, write_state
from forager.analytics.loading import ChangedMonth, load
from forager.db.database import Database
from forager.db.rows import select_now
from forager.errors import NotAllowed
from forager.services.service import Service
from forager.settings import Settings

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# Rows are dated at the start of their transaction, and are visible at its end. Each sync copies
# the rows of this time again, so that the rows of a transaction that long are not missed.
OVERLAP = timedelta(days=1)
# one statement copies the rows of this time, because its snapshot delays vacuum
SLICE = timedelta(days=1)
# CSV on its way to a dataset
ROWS = ".rows-"

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result of a sync: new rows by dataset, and the time of the copy.

    `loaded` rows were sent to the ClickHouse server; without one it is None.
    """

    rows: dict[str, int]
    files: int
    complete_until: datetime
    folder: Path
    loaded: int | None


async def sync(
    database: Database, settings: Settings, progress: Progress = lambda _: None
) -> SyncResult:
    """Copy new rows to the lake. If it is killed, the next run copies the same time again."""
    require_engine()
    if settings.clickhouse_url is not None:
        load_driver()
    folder = lake_folder(settings)
    with sole_writer(folder):
        state = await _opened(database, folder)
        since = max(BEGINNING, state.complete_until - OVERLAP)
        until = await database.run(select_now)
        found = await _rewrite(database, folder, since, until, progress)
        months = [
            ChangedMonth(BY_NAME[dataset], name, month["rows"], month["changed"])
            for dataset, changed in found.items()
            for name, month in changed.items()
        ]
        state = LakeState(state.database, until)
        loaded = None
        if settings.clickhouse_url is not None:
            loaded = await load(settings.clickhouse_url, folder, state, months)
        write_state(folder, state)
    rows = {name: sum(each["new"] for each in found[name].values()) for name in found}
    return SyncResult(rows, len(months), until, folder, loaded)


def sync_services(database: Database, settings: Settings) -> list[Service]:
    """The background sync, if it is enabled."""
    if settings.analytics_sync_every is None:
        return []

    async def run_once() -> int:
        return sum((await sync(database, settings)).rows.values())

    every = settings.analytics_sync_every
    return [Service(name="analytics sync", every=every, step=run_once, first_within=every)]


async def _opened(database: Database, folder: Path) -> LakeState:
    identity = await database.run(store.select_identity)
    state = read_state(folder) or LakeState(identity, BEGINNING)
    if state.database != identity:
        raise NotAllowed(
            f"the lake in {folder} was made from another database",
            hint="Move the folder away to begin a new lake.",
        )
    await asyncio.to_thread(_tidy, folder)
    return state


def _tidy(folder: Path) -> None:
    """Delete the rows that a killed sync left, and the manifest of an earlier version."""
    for path in folder.glob(f"{ROWS}*"):
        shutil.rmtree(path)
    (folder / "manifest.json").unlink(missing_ok=True)


async def _rewrite(
    database: Database, folder: Path, since: datetime, until: datetime, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Copy the rows of a time to files, and add these to the months."""
    with TemporaryDirectory(dir=folder, prefix=ROWS) as name:
        files = {dataset.name: Path(name) / dataset.name for dataset in DATASETS}
        for dataset in DATASETS:
            with files[dataset.name].open("wb") as file:
                await _copy(database, dataset, file, since, until)
                progress(file.tell())
        return await rewrite_months(files, folder)


async def _copy(
    database: Database, dataset: Dataset, file: BinaryIO, since: datetime, until: datetime
) -> None:
    is_first = since == BEGINNING
    start = await database.run(store.select_first, dataset) if is_first else since
    for begin, end in _slices(start or until, until):
        async with database.connection() as connection:
            await store.copy_rows(connection, dataset, file, since=begin, until=end)
    if dataset is PAGES:
        await _copy_site_pages(database, file, since, until)


def _slices(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    while since < until:
        end = min(since + SLICE, until)
        yield since, end
        since = end


async def _copy_site_pages(
    database: Database, file: BinaryIO, since: datetime, until: datetime
) -> None:
    """Pages of site crawls have no index by time, which every commit of a crawl would pay for."""
    for job in await database.run(store.select_jobs, since=since):
        async with database.connection() as connection:
            await store.copy_pages(connection, file, job=job, since=since, until=until)
