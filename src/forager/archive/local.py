"""Segments as files of a folder, and files that appear only when they are complete.

A library over all stores can neither append nor sync, so files are written by hand here.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from forager.archive.segment import ArchiveRef, parse_segment_name, refs_of
from forager.archive.storage import SEGMENTS, FileKind, StoredSegment, in_thread
from forager.archive.warc_record import FULL, ArchiveError, DamagedRecord, StorageFull, disk_errors
from forager.errors import ForagerError, InvalidInput, NotAllowed, NotFound, ReaderLeft, error_text
from forager.hints import Hint, Option
from forager.permissions import PRIVATE_FILE, make_private_folder, private_opener


class LocalStorage:
    """A folder of segments or other files, shared by any number of processes."""

    def __init__(self, root: Path, kind: FileKind = SEGMENTS) -> None:
        self._root = root.absolute()
        self._kind = kind

    def open_segment(self, name: str) -> LocalSegment:
        """A writer of a new segment with this name."""
        return LocalSegment(self._root, self._path(name), name)

    async def read(self, ref: ArchiveRef) -> bytes:
        """The bytes of a record."""
        return await in_thread(_read, self._path(ref.segment), ref)

    async def read_all(self, name: str) -> bytes:
        """The whole file."""
        path = self._path(name)
        with disk_errors(self._kind.named(name)):
            return await in_thread(path.read_bytes)

    async def size(self, segment: str) -> int:
        """The size of a segment in bytes."""
        path = self._path(segment)
        with disk_errors(self._kind.named(segment)):
            return (await in_thread(path.stat)).st_size

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        """Write a whole segment; it appears under its name when it is complete."""
        path = self._path(segment)
        part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
        with disk_errors(self._kind.named(segment)):
            try:
                # a buffered file: its lock keeps a write that was cancelled from a closed one
                with await in_thread(_new_file, part) as file:
                    async for piece in parts:
                        await in_thread(file.write, piece)
                    await in_thread(_flush, file)
                await in_thread(_put_in_place, part, path, self._root)
            finally:
                part.unlink(missing_ok=True)

    async def put_all(self, name: str, data: bytes) -> None:
        """Write a whole file; it appears under its name when it is complete."""

        async def whole() -> AsyncIterator[bytes]:
            yield data

        await self.put(name, whole())

    async def delete(self, segment: str) -> None:
        """Delete a segment; one that does not exist is no error."""
        await in_thread(_delete, self._path(segment), self._kind.named(segment))

    async def list_segments(self, prefix: str = "") -> list[StoredSegment]:
        """Segments whose names begin with a prefix, by name."""
        return await in_thread(lambda: sorted(self._walk(prefix), key=lambda s: s.name))

    def _path(self, name: str) -> Path:
        return self._root / self._kind.checked(name)

    def _walk(self, prefix: str) -> Iterator[StoredSegment]:
        for folder, _, files in os.walk(self._root):
            for file in files:
                path = Path(folder, file)
                name = path.relative_to(self._root).as_posix()
                # another process may delete it between the two looks
                with suppress(InvalidInput, FileNotFoundError):
                    parse_segment_name(name)
                    if name.startswith(prefix):
                        yield _stored(name, path)


class LocalSegment:
    """One file, made by its first append, and open only while it grows: a runner has many."""

    def __init__(self, root: Path, path: Path, name: str) -> None:
        self.name = name
        self.size = 0
        self.sealed = False
        self._root = root
        self._path = path
        self._is_made = False
        # A cancelled task leaves its append running in a thread. The next one waits for it here.
        self._lock = threading.Lock()

    async def append(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        """Append frames, and return their places; they are on disk afterwards."""
        return await in_thread(self._append, frames)

    async def close(self) -> None:
        """Accept no more records."""
        await in_thread(self._close)

    def _append(self, frames: Sequence[bytes]) -> list[ArchiveRef]:
        with self._lock, disk_errors(SEGMENTS.named(self.name)):
            if self.sealed:
                raise ArchiveError(f"archive segment {self.name} accepts no more records")
            fd = self._open()
            try:
                with self._undone_on_failure(fd):
                    _write_all(fd, self.size, b"".join(frames))
                    self._sync(fd)
            finally:
                os.close(fd)
            refs = refs_of(self.name, self.size, frames)
            self.size += sum(map(len, frames))
            return refs

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        if self._is_made:
            return os.open(self._path, flags)
        make_private_folder(self._root)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(self._path, flags | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            self.sealed = True
            raise
        self._is_made = True
        return fd

    def _sync(self, fd: int) -> None:
        try:
            _sync_file(fd)
            if not self.size:
                _sync_folders(self._path, self._root)
        except OSError:
            # the kernel may have dropped the pages and call the file clean: a second sync would lie
            self.sealed = True
            raise

    @contextmanager
    def _undone_on_failure(self, fd: int) -> Iterator[None]:
        try:
            yield
        except OSError:
            try:
                os.ftruncate(fd, self.size)
            except OSError:
                self.sealed = True
            raise

    def _close(self) -> None:
        with self._lock:
            self.sealed = True


def _write_all(fd: int, offset: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def _sync_file(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # fsync alone stops at the drive's own cache there
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def _new_file(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return open(path, "xb", opener=private_opener)


def _flush(file: BinaryIO) -> None:
    file.flush()
    _sync_file(file.fileno())


def _put_in_place(part: Path, path: Path, root: Path) -> None:
    part.replace(path)
    _sync_folders(path, root)


def _sync_folders(path: Path, root: Path) -> None:
    # every level: another process may have made one and not have synced it yet
    for folder in path.parents:
        if folder == root.parent:
            break
        sync_folder(folder)
    # the folder above may be someone else's, and not ours to open
    with suppress(PermissionError):
        sync_folder(root.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as lasting as the files."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of file systems that cannot sync folders
            raise
    finally:
        os.close(fd)


def _read(path: Path, ref: ArchiveRef) -> bytes:
    with disk_errors(SEGMENTS.named(ref.segment)):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            data = os.pread(fd, ref.length, ref.offset)
        finally:
            os.close(fd)
    if len(data) != ref.length:
        raise DamagedRecord(f"archive segment {ref.segment} ends before byte {ref.end}")
    return data


def _delete(path: Path, what: str) -> None:
    # the folder is left: another process may be about to make a file in it
    with suppress(NotFound), disk_errors(what):
        # also what writers left that were killed
        for part in path.parent.glob(f".{path.name}.*.part"):
            part.unlink(missing_ok=True)
        path.unlink()
        sync_folder(path.parent)


def _stored(name: str, path: Path) -> StoredSegment:
    stat = path.stat()
    return StoredSegment(name, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


@contextmanager
def whole_file(target: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Write beside the target, and put it in place when the block ends without an error."""
    with _output_errors(target):
        # through a link: what it points to is replaced, not the link
        place = Path(os.path.realpath(target))
        if place.exists() and not place.is_file() and not place.is_dir():
            # a device or a pipe is written to, never replaced
            try:
                with place.open("wb") as file:
                    yield file
            except BrokenPipeError as error:
                raise ReaderLeft from error
            return
        _refuse(place, overwrite)
        part = place.with_name(f".{place.name[:200]}.{uuid4().hex[:8]}.part")
        try:
            with open(part, "xb", opener=private_opener) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _refuse(place, overwrite)
            part.replace(place)
            with suppress(PermissionError):  # a folder that may be written to and not be read
                sync_folder(place.parent)
        finally:
            part.unlink(missing_ok=True)


def _refuse(place: Path, overwrite: bool) -> None:
    if place.is_dir():
        raise InvalidInput(f"{place} is a folder", hint="Name a file in it.")
    if not place.parent.is_dir():
        raise NotFound(f"the folder {place.parent} does not exist", hint="Make it first.")
    if place.exists() and not overwrite:
        raise NotAllowed(
            f"{place} exists already", hint=Hint("Use {} to replace it.", Option("force"))
        )


@contextmanager
def _output_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # not of the target, unless its reader has left
    except OSError as error:
        reason = error.strerror or error_text(error)
        if error.errno in FULL:
            raise StorageFull(f"no space to write {target}: {reason}") from error
        raise ForagerError(f"{target} cannot be written: {reason}") from error
