"""The archive: whether what the database refers to is there, and whether more will fit."""

from __future__ import annotations

import shutil

from forager.archive import store as archive_store
from forager.archive.options import archive_options
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.doctor import store
from forager.doctor.check import Check, fail, failed_with, ok, warn
from forager.doctor.machine import LITTLE_SPACE, NO_SPACE, gigabytes, nearest_folder
from forager.doctor.storage import archive_folder
from forager.errors import ForagerError, NotFound
from forager.settings import Settings

SAMPLE = 50
NAMED = 3


def check_archive_space(settings: Settings) -> Check:
    try:
        folder = archive_folder(settings)
    except ForagerError as error:
        return failed_with("archive space", error)
    if folder is None:
        return ok("archive space", "in a bucket")
    free = shutil.disk_usage(nearest_folder(folder)).free
    finding = f"{gigabytes(free)} free at {folder}"
    if free < NO_SPACE:
        return fail("archive space", finding, "Free some space, or forager archive prune.")
    if free < LITTLE_SPACE:
        advice = "Set archive_max_mb or archive_max_age_days, or free some space soon."
        return warn("archive space", finding, advice)
    return ok("archive space", finding)


async def check_archive(database: Database, settings: Settings) -> Check:
    """A sample: all of it is what `forager archive verify` reads."""
    async with database.connection() as connection:
        number = await store.count_segments(connection)
        names = await store.select_segment_sample(connection, SAMPLE)
    try:
        absent = await _absent(database, archive_options(settings).open(), names)
    except ForagerError as error:
        return failed_with("archive", error)
    if absent:
        return fail(
            "archive",
            f"{len(absent)} of {len(names)} segments that were looked for are not there:"
            f" {', '.join(absent[:NAMED])}",
            "Restore them from a backup, then run forager archive verify.",
        )
    return ok("archive", f"{number} segments; the {len(names)} looked for are there")


async def _absent(database: Database, storage: Storage, names: list[str]) -> list[str]:
    absent = []
    for name in names:
        try:
            await storage.size(name)
        except NotFound:
            if await _is_kept(database, name):
                absent.append(name)
    return absent


async def _is_kept(database: Database, name: str) -> bool:
    """Not if a clean-up has deleted it just now."""
    async with database.connection() as connection:
        row = await archive_store.select_segment(connection, name)
    return row is not None and row.going_at is None
