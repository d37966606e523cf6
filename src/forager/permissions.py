"""Files and folders that only their owner can open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
# reading and writing of group and others; passing through a folder shows nothing of it
_OF_OTHERS = 0o066


def make_private_folder(folder: Path) -> None:
    """Create the folder for its owner alone; an existing one stays as it is."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that is created can be opened by its owner alone."""
    return os.open(path, flags, PRIVATE_FILE)


def is_open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & _OF_OTHERS)


@contextmanager
def private_umask() -> Iterator[None]:
    """Create files for their owner alone; the umask holds for the whole process."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
