"""Opens a folder or an archive."""

from __future__ import annotations

import asyncio
from pathlib import Path

from forager.errors import ErrorKind, GiveUp, error_text
from forager.fetch.files.archive import open_archive
from forager.fetch.files.folder import Folder
from forager.fetch.files.tree import FileTree


async def open_folder(path: Path) -> FileTree:
    """A folder or an archive. Raise GiveUp if it cannot be read."""
    return await asyncio.to_thread(_open, path)


def _open(path: Path) -> FileTree:
    try:
        return Folder(path) if path.is_dir() else _archive(path)
    except OSError as error:
        raise GiveUp(error_text(error), kind=ErrorKind.NOT_ALLOWED) from None


def _archive(path: Path) -> FileTree:
    if not path.is_file():
        raise GiveUp(f"{path} is neither a folder nor a file", kind=ErrorKind.NOT_ALLOWED)
    return open_archive(path)
