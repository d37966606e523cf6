"""An archive (zip or tar) whose files are read in place; nothing is unpacked to a path."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import IO, Any

from forager.errors import ErrorKind, GiveUp, error_text
from forager.fetch.files.tree import (
    MAX_FILES,
    FileContent,
    content_version,
    is_plain_path,
    too_large,
    too_many,
)

MAX_UNPACKED = 2 * 1024**3
# xz -9 needs 65 MB; a file of 120 kB could ask for gigabytes
MAX_XZ_MEMORY = 128 * 1024**2
# the table of contents of a zip file, and the names in a tar file, are kept in memory
MAX_TABLE = 64 * 1024**2
# what describes one file in a tar file: its header, and the extended headers before it
MAX_HEADER = 1024**2
_CHUNK = 1024**2
_DAMAGED = (
    OSError, EOFError, RuntimeError, NotImplementedError, ValueError, KeyError,
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError,
)  # fmt: skip


def open_archive(path: Path) -> ZipArchive | TarArchive:
    """Raise GiveUp if it is damaged, of another type, or too large when unpacked."""
    with ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(path.open("rb"))
            head = file.read(6)
            file.seek(0)
            if not head.startswith(b"PK") and (unpacked := _unpacked(file, head)) is not file:
                file.close()
                file = stack.enter_context(unpacked)
            opened = ZipArchive(file) if head.startswith(b"PK") else TarArchive(file)
        except _DAMAGED as error:
            raise GiveUp(
                f"{path.name} cannot be read as an archive: {error_text(error)}",
                kind=ErrorKind.PARSE,
                hint="Supported: folders, zip, and tar (also with gzip, bzip2 or xz).",
            ) from None
        stack.pop_all()
        return opened


class ZipArchive:
    """The files of a zip archive, read without unpacking it."""

    def __init__(self, file: IO[bytes]) -> None:
        _check_table(file)
        self._file = file
        self._zip = zipfile.ZipFile(file)
        members = (info for info in self._zip.infolist() if _is_zipped_file(info))
        self._members = {info.filename: info for info in members}
        if len(self._members) > MAX_FILES:
            raise too_many()

    def close(self) -> None:
        self._zip.close()
        self._file.close()

    def paths(self) -> list[str]:
        return list(self._members)

    def version(self, path: str) -> str | None:  # noqa: ARG002
        return None  # checksums of archives are for accidents

    def read(self, path: str, limit: int) -> FileContent:
        info = self._members[path]
        if info.file_size > limit:
            raise too_large(limit)
        try:
            with self._zip.open(info) as member:
                return _content(member.read(limit + 1), limit)
        except _DAMAGED as error:
            raise _damaged(error) from None


class TarArchive:
    """The files of a tar archive, read without unpacking it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lock = Lock()
        self._file = file
        # where the content of each file begins, and its size
        self._members: dict[str, tuple[int, int]] = {}
        names = 0
        for number, member in enumerate(_headers(file)):
            path = member.name.removeprefix("./")
            is_kept = member.isreg() and not member.issparse() and member.size >= 0
            if is_kept and is_plain_path(path):
                self._members[path] = (member.offset_data, member.size)
                names += len(path)
            if number > MAX_FILES or names > MAX_TABLE:
                raise too_many()

    def close(self) -> None:
        self._file.close()

    def paths(self) -> list[str]:
        return list(self._members)

    def version(self, path: str) -> str | None:  # noqa: ARG002
        return None  # reproducible archives give all files the same time

    def read(self, path: str, limit: int) -> FileContent:
        offset, size = self._members[path]
        if size > limit:
            raise too_large(limit)
        try:
            with self._lock:
                self._file.seek(offset)
                body = self._file.read(size)
        except _DAMAGED as error:
            raise _damaged(error) from None
        if len(body) < size:
            raise _damaged(EOFError("unexpected end of data"))
        return _content(body, limit)


def _headers(file: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """The headers of a tar file, one at a time: nothing of the earlier ones is kept."""
    short = _ShortReads(file)
    with tarfile.open(fileobj=short, mode="r:") as tar:
        while (member := tar.next()) is not None:
            yield member
            vars(tar)["members"].clear()  # would be all headers with all their extensions
            tar.pax_headers = {}  # of the whole archive: each header has a copy
            short.left = MAX_HEADER


class _ShortReads(io.RawIOBase):
    """A file of which only a limited number of bytes is read, until `left` is set again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._wrapped = file
        self.left = MAX_HEADER

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._wrapped.seek(offset, whence)

    def tell(self) -> int:
        return self._wrapped.tell()

    def read(self, size: int = -1) -> bytes:
        self.left -= size
        if size < 0 or self.left < 0:
            raise tarfile.ReadError("a header is too large")
        return self._wrapped.read(size)


def _unpacked(file: IO[bytes], head: bytes) -> IO[bytes]:
    """A tar file that can be read at any place; one that is compressed goes to a nameless file."""
    stream: IO[bytes] | gzip.GzipFile | io.BufferedReader
    if head.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(fileobj=file)
    elif head.startswith(b"BZh"):
        stream = bz2.open(file)  # noqa: SIM115
    elif head.startswith(b"\xfd7zXZ"):
        stream = io.BufferedReader(_XzFile(file))
    else:
        return file
    with ExitStack() as stack:
        unpacked = stack.enter_context(tempfile.TemporaryFile())
        size = 0
        with stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > MAX_UNPACKED:
                    raise too_large(MAX_UNPACKED)
                unpacked.write(chunk)
        unpacked.seek(0)
        stack.pop_all()
        return unpacked


class _XzFile(io.RawIOBase):
    """The content of an xz file, read with limited memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._wrapped = file
        self._decoder = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            given = b""
            if self._decoder.eof:  # a file may have several streams
                given = self._decoder.unused_data.lstrip(b"\0") or self._wrapped.read(_CHUNK)
                if not given.strip(b"\0"):
                    return 0
                self._decoder = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)
            elif self._decoder.needs_input:
                given = self._wrapped.read(_CHUNK)
                if not given:
                    raise EOFError("unexpected end of data")
            if part := self._decoder.decompress(given, len(buffer)):
                buffer[: len(part)] = part
                return len(part)


def _check_table(file: IO[bytes]) -> None:
    """Refuse a table of contents that would not fit into memory."""
    size = file.seek(0, io.SEEK_END)
    start = max(0, size - 65_557)
    file.seek(start)
    tail = file.read()
    # as `zipfile` looks for it: its fields may contain the same signature
    plain = tail[-22:].startswith(b"PK\x05\x06") and tail.endswith(b"\0\0")
    end = len(tail) - 22 if plain else tail.rfind(b"PK\x05\x06")
    is_long = end >= 20 and tail[end - 20 : end - 16] == b"PK\x06\x07"
    if end < 0:
        raise zipfile.BadZipFile("it has no table of contents")
    if is_long or int.from_bytes(tail[end + 12 : end + 16], "little") > MAX_TABLE:
        raise too_many()
    file.seek(0)


def _is_zipped_file(info: zipfile.ZipInfo) -> bool:
    kind = info.external_attr >> 28  # of Unix; 0 if it was made elsewhere
    is_file = not info.is_dir() and kind in (0, 8)
    return is_file and not info.flag_bits & 1 and is_plain_path(info.filename)


def _content(body: bytes, limit: int) -> FileContent:
    if len(body) > limit:
        raise too_large(limit)
    return FileContent(body, content_version(body))


def _damaged(error: Exception) -> GiveUp:
    return GiveUp(f"the file in the archive is damaged: {error_text(error)}", kind=ErrorKind.PARSE)
