"""The archive and its storage: whether segments exist, and whether more can be written."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from forager.analytics.clickhouse import connected
from forager.analytics.loading import complete_until
from forager.archive import store as archive_store
from forager.archive.options import archive_options
from forager.archive.storage import Storage, local_folder
from forager.db.database import Database
from forager.doctor import store
from forager.doctor.check import Verdict, check, fail, warn
from forager.doctor.machine import LITTLE_SPACE, NO_SPACE, gigabytes, nearest_folder
from forager.errors import NotFound
from forager.images.files import FOLDER, image_path, open_image_files
from forager.settings import Settings
from forager.settings.values import masked_url

SAMPLE = 50
NAMED = 3


@check("archive space", "A full disk stops every commit; no data is lost, but all work stops.")
def check_archive_space(settings: Settings) -> Verdict:
    folder = archive_folder(settings)
    if folder is None:
        return "in a bucket"
    free = shutil.disk_usage(nearest_folder(folder)).free
    finding = f"{gigabytes(free)} free at {folder}"
    if free < NO_SPACE:
        return fail(finding, "Free some space, or forager archive prune.")
    if free < LITTLE_SPACE:
        advice = "Set archive_max_mb or archive_max_age_days, or free some space soon."
        return warn(finding, advice)
    return finding


@check("archive", "Missing responses can be neither replayed nor exported.")
async def check_archive(database: Database, settings: Settings) -> Verdict:
    """A sample: all of it is what `forager archive verify` reads."""
    async with database.connection() as connection:
        number = await store.count_segments(connection)
        names = await store.select_segment_sample(connection, SAMPLE)
    absent = await _absent(database, archive_options(settings).open(), names)
    if absent:
        return fail(
            f"{len(absent)} of {len(names)} segments that were looked for are not there:"
            f" {', '.join(absent[:NAMED])}",
            "Restore them from a backup, then run forager archive verify.",
        )
    return f"{number} segments; the {len(names)} looked for are there"


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
    row = await database.run(archive_store.select_segment, name)
    return row is not None and row.going_at is None


BUCKET_LIMIT = 20.0
OTHER_PLACE = "Make it writable, or set archive_url to another place."


@check("storage", "A page is committed only after its response is in the archive.")
async def check_storage(settings: Settings) -> Verdict:
    folder = archive_folder(settings)
    if folder is not None:
        return _check_folders(folder)
    place = masked_url(str(archive_options(settings).place))
    return await _check_bucket(place, open_image_files(settings))


def archive_folder(settings: Settings) -> Path | None:
    """None for a bucket."""
    return local_folder(archive_options(settings).place)


def _check_folders(archive: Path) -> Verdict:
    """Folders that are not there yet are not made by looking."""
    for folder in (archive, archive / FOLDER):
        try:
            # written for a test: permissions alone do not show read-only file systems
            with tempfile.TemporaryFile(dir=nearest_folder(folder)):
                pass
        except OSError as error:
            return fail(f"{folder} cannot be written: {error.strerror}", OTHER_PLACE)
    return f"pages and images can be written to {archive}"


async def _check_bucket(name: str, files: Storage) -> Verdict:
    path = image_path(os.urandom(32), "bin")
    try:
        async with asyncio.timeout(BUCKET_LIMIT):
            await files.put_all(path, b"doctor")
            await files.delete(path)
    except TimeoutError:
        return fail(f"{name} does not answer within {BUCKET_LIMIT:g} s", OTHER_PLACE)
    return f"pages and images can be written to {name}"


@check("clickhouse", "Queries are answered from the data on the server, without newer rows.")
async def check_clickhouse(_database: Database, settings: Settings) -> Verdict:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        until = await complete_until(server)
    if until is None:
        return warn("nothing was loaded yet", "Run forager analytics sync.")
    return f"loaded, with everything before {until:%Y-%m-%d %H:%M} UTC"
