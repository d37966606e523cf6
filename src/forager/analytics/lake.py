"""The lake's folder: who may write to it, its files, and what a killed sync left there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forager.analytics.manifest import Manifest
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings

FOLDER = "lake"
SUFFIX = ".parquet"


def lake_folder(settings: Settings) -> Path:
    return settings.home / FOLDER


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lake for one process; a killed one lets go of it by dying."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise ForagerError(f"{folder} cannot be used: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotAllowed(
                "another sync writes to the lake", hint="Wait until it is done."
            ) from None
        yield


def place_for(folder: Path, dataset: str, month: str, number: int) -> Path:
    """Where a file belongs; its folder is there afterwards, also after a power cut."""
    place = folder / dataset / f"month={month}"
    if not place.is_dir():
        place.mkdir(parents=True)
        for parent in (place.parent, folder):
            sync_folder(parent)
    return place / f"{number:08}{SUFFIX}"


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as lasting as the files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_strays(folder: Path, manifest: Manifest) -> int:
    """Delete files that no manifest names: a killed sync wrote them; how many there were."""
    known = {file.path for file in manifest.files} | manifest.superseded.keys()
    strays = [
        path
        for pattern in (f"*/month=*/*{SUFFIX}", "*/month=*/.*.part")
        for path in folder.glob(pattern)
        if str(path.relative_to(folder)) not in known
    ]
    for path in strays:
        path.unlink(missing_ok=True)
    return len(strays)
