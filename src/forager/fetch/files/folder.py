"""A folder of this machine, or an archive in one."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

from forager.errors import ErrorKind, GiveUp, error_text
from forager.fetch.files.archive import open_archive
from forager.fetch.files.tree import (
    MAX_DEPTH,
    MAX_FILES,
    FileContent,
    FileTree,
    content_version,
    too_large,
    too_many,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe that replaces a file between the checks must not block
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# a file may change again within the resolution of its times; some file systems store seconds
_FINE, _COARSE = 0.1, 2.5


class Folder:
    """Reads below one open folder, name by name, so that no symbolic link is ever followed."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._root)

    def paths(self) -> list[str]:
        found: list[str] = []
        walk = os.fwalk(".", dir_fd=self._root, follow_symlinks=False)
        for place, folders, names, descriptor in walk:
            prefix = place.removeprefix(".").removeprefix("/")
            depth = prefix.count("/") + 2
            folders[:] = sorted(n for n in folders if n[0] != "." and depth < MAX_DEPTH)
            found += [
                f"{prefix}/{name}" if prefix else name
                for name in sorted(names)
                if name[0] != "." and "\\" not in name and _is_regular(name, descriptor)
            ]
            if len(found) > MAX_FILES:
                raise too_many()
        return found

    def version(self, path: str) -> str | None:
        try:
            descriptor = self._open(path)
        except (OSError, GiveUp):
            return None
        try:
            return _version(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def read(self, path: str, limit: int) -> FileContent:
        try:
            descriptor = self._open(path)
        except OSError as error:
            raise GiveUp(error_text(error), kind=ErrorKind.NOT_ALLOWED) from None
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if before.st_size > limit:
                raise too_large(limit)
            body = file.read(limit + 1)
            after = os.fstat(descriptor)
        if len(body) > limit:
            raise too_large(limit)
        version = _version(after)
        if version is None or version != _version(before):
            version = content_version(body)
        return FileContent(body, version)

    def _open(self, path: str) -> int:
        *folders, name = path.split("/")
        current = self._root
        try:
            for each in folders:
                inner = os.open(each, _FOLDER, dir_fd=current)
                if current != self._root:
                    os.close(current)
                current = inner
            # opening a device can have effects
            if not _is_regular(name, current):
                raise GiveUp("it is not a file", kind=ErrorKind.NOT_ALLOWED)
            descriptor = os.open(name, _FILE, dir_fd=current)
        finally:
            if current != self._root:
                os.close(current)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise GiveUp("it is not a file", kind=ErrorKind.NOT_ALLOWED)
        return descriptor


def _is_regular(name: str, folder: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _version(status: os.stat_result) -> str | None:
    """None while the file is so new that it may change without a change of its times."""
    newest = max(status.st_mtime_ns, status.st_ctime_ns)
    resolution = _FINE if newest % 1_000_000_000 else _COARSE
    if time.time() - newest / 1e9 < resolution:
        return None
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


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
