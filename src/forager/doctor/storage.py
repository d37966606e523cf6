"""The storage: whether pages and images can be kept where the settings say."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from forager.analytics.clickhouse import connected
from forager.analytics.loading import complete_until
from forager.archive.options import archive_options
from forager.archive.storage import local_folder
from forager.doctor.check import Check, fail, failed_with, ok, warn
from forager.doctor.machine import nearest_folder
from forager.errors import ForagerError
from forager.images.files import FOLDER, ImageFiles, image_path, open_image_files
from forager.settings import Settings
from forager.settings.values import masked_url

BUCKET_LIMIT = 20.0
OTHER_PLACE = "Make it writable, or set archive_url to another place."


async def check_storage(settings: Settings) -> Check:
    try:
        folder = archive_folder(settings)
        if folder is not None:
            return _check_folders(folder)
        place = masked_url(str(archive_options(settings).place))
        return await _check_bucket(place, open_image_files(settings))
    except ForagerError as error:
        return failed_with("storage", error)


def archive_folder(settings: Settings) -> Path | None:
    """None for a bucket."""
    return local_folder(archive_options(settings).place)


def _check_folders(archive: Path) -> Check:
    """Folders that are not there yet are not made by looking."""
    for folder in (archive, archive / FOLDER):
        try:
            # a try, because permissions alone do not tell of read-only file systems
            with tempfile.TemporaryFile(dir=nearest_folder(folder)):
                pass
        except OSError as error:
            return fail("storage", f"{folder} cannot be written: {error.strerror}", OTHER_PLACE)
    return ok("storage", f"pages and images can be written to {archive}")


async def _check_bucket(name: str, files: ImageFiles) -> Check:
    path = image_path(os.urandom(32), "bin")
    try:
        async with asyncio.timeout(BUCKET_LIMIT):
            await files.write(path, b"doctor")
            await files.delete(path)
    except TimeoutError:
        return fail("storage", f"{name} does not answer within {BUCKET_LIMIT:g} s", OTHER_PLACE)
    return ok("storage", f"pages and images can be written to {name}")


async def check_clickhouse(settings: Settings) -> Check:
    assert settings.clickhouse_url is not None
    try:
        async with connected(settings.clickhouse_url) as server:
            until = await complete_until(server)
    except ForagerError as error:
        return failed_with("clickhouse", error)
    if until is None:
        return warn("clickhouse", "nothing was loaded yet", "Run forager analytics sync.")
    return ok("clickhouse", f"loaded, with everything before {until:%Y-%m-%d %H:%M} UTC")
