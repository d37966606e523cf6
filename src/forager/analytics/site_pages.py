"""Pages of site crawls for the lake.

They have no index by time, which every commit of a crawl would pay for. So the pages of a time are
found by going once through the jobs that were busy in it, key by key: a pass. How far it came is
in the manifest; an interrupted pass is resumed over the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from forager.analytics import store
from forager.analytics.dataset import PAGES
from forager.analytics.files import copy_table, write_months
from forager.analytics.lake import Manifest, Pass, write_manifest
from forager.db.database import Database


async def sync_site_pages(
    database: Database,
    folder: Path,
    manifest: Manifest,
    horizon: datetime,
    *,
    chunk: int,
    progress: Callable[[int], None],
) -> Manifest:
    """Copy all that was settled before the horizon; what a killed sync began comes first."""
    while manifest.site.until is not None or manifest.site.since < horizon:
        if manifest.site.until is None:
            manifest = replace(manifest, site=replace(manifest.site, until=horizon))
        copy = partial(_copy, database, manifest.site, chunk)
        table, place = await copy_table(PAGES, copy)
        manifest = await asyncio.to_thread(_add, folder, replace(manifest, site=place), table)
        if table is not None:
            progress(table.num_rows)
    return manifest


async def _copy(database: Database, place: Pass, chunk: int, file: BinaryIO) -> Pass:
    """Copy the next keys, of as many jobs as needed; return the new place of the pass."""
    assert place.until is not None
    left = chunk
    while left:
        async with database.connection() as connection:
            job = await store.select_next_job(connection, since=place.since, job=UUID(place.job))
            if job is None:
                return Pass(since=place.until)
            after = bytes.fromhex(place.key) if str(job) == place.job else b""
            last, count = await store.select_keys(connection, job, after=after, limit=left)
            if last is not None:
                await store.copy_pages(
                    connection, file,
                    job=job, after=after, last=last, since=place.since, until=place.until,
                )  # fmt: skip
        left -= count
        place = replace(place, job=str(job), key=last.hex()) if last else _past(place, job)
    return place


def _past(place: Pass, job: UUID) -> Pass:
    """Behind a job; there is none with the largest number."""
    return replace(place, job=str(UUID(int=job.int + 1)), key="")


def _add(folder: Path, manifest: Manifest, table: Any) -> Manifest:
    """Write the rows, then the manifest that names them and says how far the pass came."""
    if table is not None:
        table = table.sort_by([("at", "ascending"), ("id", "ascending")])
        manifest = manifest.with_files(write_months(folder, PAGES, manifest.next_file, table))
    write_manifest(folder, manifest)
    return manifest
