"""Bring the lake up to date: read what is new, write it to files, replace the manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from forager.analytics import store
from forager.analytics.dataset import DATASETS, PAGES, Dataset
from forager.analytics.files import copy_table, last_position, read_file, write_file, write_months
from forager.analytics.lake import (
    LakeFile,
    Manifest,
    Pass,
    lake_folder,
    read_manifest,
    remove_strays,
    sole_writer,
    write_manifest,
)
from forager.analytics.loading import load
from forager.db.database import Database
from forager.errors import NotAllowed
from forager.row_files import load_pyarrow
from forager.services.service import Service
from forager.settings import Settings

# rows in memory at a time, and in one file at most
CHUNK = 200_000

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Synced:
    """The result of a sync: new rows by dataset, and the time before which nothing is missing.

    `loaded` rows were sent to the ClickHouse server; without one it is None.
    """

    rows: dict[str, int]
    files: int
    complete_until: datetime
    folder: Path
    loaded: int | None


async def sync(
    database: Database,
    settings: Settings,
    progress: Progress = lambda _: None,
    *,
    chunk: int = CHUNK,
) -> Synced:
    """Copy new rows to the lake. If it is killed, the next run resumes after the last chunk."""
    load_pyarrow("pyarrow")  # fails before anything is created
    folder = lake_folder(settings)
    with sole_writer(folder):
        manifest = await _opened(database, folder)
        horizon = await _horizon(database)
        had = _rows_of(manifest)
        for dataset in DATASETS:
            manifest = await _sync(database, folder, manifest, dataset, horizon, chunk, progress)
        manifest = await _sync_site_pages(database, folder, manifest, horizon, chunk, progress)
        rows = {name: count - had[name] for name, count in _rows_of(manifest).items()}
        manifest = await asyncio.to_thread(_finish, folder, manifest, horizon)
        loaded = None
        if settings.clickhouse_url is not None:
            loaded = await load(settings.clickhouse_url, folder, manifest, progress)
    return Synced(rows, len(manifest.files), horizon, folder, loaded)


def sync_services(database: Database, settings: Settings) -> list[Service]:
    """The background sync, if it is enabled."""
    if settings.analytics_sync_every is None:
        return []

    async def run_once() -> int:
        return sum((await sync(database, settings)).rows.values())

    every = settings.analytics_sync_every
    return [Service(name="analytics sync", every=every, step=run_once, first_within=every)]


async def _opened(database: Database, folder: Path) -> Manifest:
    identity = await database.run(store.select_identity)
    manifest = read_manifest(folder) or Manifest(identity)
    if manifest.database != identity:
        raise NotAllowed(
            f"the lake in {folder} was made from another database",
            hint="Move the folder away to begin a new lake.",
        )
    manifest = forgotten(manifest, datetime.now(UTC))
    write_manifest(folder, manifest)
    remove_strays(folder, manifest)
    return manifest


async def _horizon(database: Database) -> datetime:
    """Read before the rows: every transaction committed by now is visible to later queries."""
    horizon, hidden = await database.run(store.select_horizon)
    if hidden:
        raise NotAllowed(
            "sessions of other users are open in the database, and what they write is hidden",
            hint="Let an administrator run: GRANT pg_read_all_stats TO the user of Forager.",
        )
    return horizon


async def _sync(
    database: Database,
    folder: Path,
    manifest: Manifest,
    dataset: Dataset,
    horizon: datetime,
    chunk: int,
    progress: Progress,
) -> Manifest:
    while True:
        position = manifest.position(dataset.name)
        after = (position.at, position.id)
        async with database.connection() as connection:
            copy = partial(
                store.copy_rows, connection, dataset, after=after, before=horizon, limit=chunk
            )
            table, _ = await copy_table(dataset, copy)
        if table is None:
            return manifest
        positions = manifest.positions | {dataset.name: last_position(table)}
        manifest = replace(manifest, positions=positions)
        manifest = await asyncio.to_thread(_add, folder, manifest, dataset, table)
        progress(table.num_rows)
        if table.num_rows < chunk:
            return manifest


def _add(folder: Path, manifest: Manifest, dataset: Dataset, table: Any) -> Manifest:
    """Write the rows, then the manifest that names them and their position: that is the commit."""
    files = write_months(folder, dataset, manifest.next_file, table) if table is not None else ()
    manifest = replace(
        manifest, files=manifest.files + files, next_file=manifest.next_file + len(files)
    )
    write_manifest(folder, manifest)
    return manifest


# --- pages of site crawls ------------------------------------------------------------------------
#
# They have no index by time, which every commit of a crawl would pay for. So the pages of a period
# are found by one pass through the jobs that were active in it, key by key. The manifest records
# the position of the pass; an interrupted pass is resumed over the same period.


async def _sync_site_pages(
    database: Database,
    folder: Path,
    manifest: Manifest,
    horizon: datetime,
    chunk: int,
    progress: Progress,
) -> Manifest:
    """Copy all pages that were settled before the horizon; an interrupted pass comes first."""
    while manifest.site.until is not None or manifest.site.since < horizon:
        site = manifest.site if manifest.site.until else replace(manifest.site, until=horizon)
        table, site = await copy_table(PAGES, partial(_copy_pages, database, site, chunk))
        if table is not None:
            table = table.sort_by([("at", "ascending"), ("id", "ascending")])
        manifest = replace(manifest, site=site)
        manifest = await asyncio.to_thread(_add, folder, manifest, PAGES, table)
        if table is not None:
            progress(table.num_rows)
    return manifest


async def _copy_pages(database: Database, site: Pass, chunk: int, file: BinaryIO) -> Pass:
    """Copy the next keys, of as many jobs as needed; return the new position of the pass."""
    assert site.until is not None
    left = chunk
    while left:
        async with database.connection() as connection:
            job = await store.select_next_job(connection, since=site.since, job=UUID(site.job))
            if job is None:
                return Pass(since=site.until)
            after = bytes.fromhex(site.key) if str(job) == site.job else b""
            last, count = await store.select_keys(connection, job, after=after, limit=left)
            if last is not None:
                await store.copy_pages(
                    connection, file,
                    job=job, after=after, last=last, since=site.since, until=site.until,
                )  # fmt: skip
        left -= count
        if last is not None:
            site = replace(site, job=str(job), key=last.hex())
        else:  # the job has no more pages
            site = replace(site, job=str(UUID(int=job.int + 1)), key="")
    return site


def _finish(folder: Path, manifest: Manifest, horizon: datetime) -> Manifest:
    for files in list(crowded(manifest)):
        manifest = merged(folder, manifest, files, datetime.now(UTC))
    manifest = replace(manifest, complete_until=horizon)
    write_manifest(folder, manifest)
    return manifest


def _rows_of(manifest: Manifest) -> dict[str, int]:
    return {
        dataset.name: sum(file.rows for file in manifest.of(dataset.name)) for dataset in DATASETS
    }


# files of one month; with more, all small ones are merged
MOST_FILES = 24
LARGE_ROWS = 1_000_000
# longer than any question may take
KEPT = timedelta(hours=1)


def crowded(manifest: Manifest) -> Iterator[tuple[LakeFile, ...]]:
    """Files that should become one."""

    def month_of(file: LakeFile) -> tuple[str, str]:
        return file.dataset, file.month

    for _, group in groupby(sorted(manifest.files, key=month_of), month_of):
        small = [file for file in group if file.rows < LARGE_ROWS]
        if len(small) > MOST_FILES:
            yield from _runs(small)


def _runs(small: list[LakeFile]) -> Iterator[tuple[LakeFile, ...]]:
    """One after the other, as they came, until they are a large one together."""
    run: list[LakeFile] = []
    for file in small:
        run.append(file)
        if sum(each.rows for each in run) >= LARGE_ROWS:
            yield tuple(run)
            run = []
    if len(run) > 1:
        yield tuple(run)


def merged(
    folder: Path, manifest: Manifest, files: tuple[LakeFile, ...], now: datetime
) -> Manifest:
    """The manifest with one file instead of several, which stay until no query reads them."""
    dataset = next(each for each in DATASETS if each.name == files[0].dataset)
    tables = (table for file in files for table in read_file(dataset, folder / file.path))
    whole = write_file(folder, dataset, files[0].month, manifest.next_file, tables)
    whole = replace(whole, parts=tuple(file.path for file in files))
    rest = tuple(file for file in manifest.files if file not in files)
    return replace(
        manifest,
        files=(*rest, whole),
        next_file=manifest.next_file + 1,
        superseded=manifest.superseded | {file.path: now for file in files},
    )


def forgotten(manifest: Manifest, now: datetime) -> Manifest:
    """The manifest without files that were merged long ago, which are strays from then on."""
    kept = {path: since for path, since in manifest.superseded.items() if since > now - KEPT}
    return replace(manifest, superseded=kept)
