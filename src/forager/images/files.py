"""Image files: one for each content, beside the archive, in a folder or in a bucket.

A file is named after its content, so writing it twice writes the same; and it is complete and on
disk before anything refers to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from forager.archive.objects import bucket_errors, open_bucket_store, require_bucket
from forager.archive.options import archive_options
from forager.archive.record import FULL, ArchiveError, StorageFull
from forager.archive.storage import in_thread
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.images.store import files as store
from forager.logs import get_logger
from forager.services.service import isolated
from forager.settings import Settings

FOLDER = "images"
# images, and the files of archived products
_PATH = re.compile(
    r"images/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}\.[a-z]{2,5}|archived-products/[0-9a-f-]+\.parquet"
)


class ImageFiles(Protocol):
    """A place for image files; paths are those of `image_path`."""

    async def write(self, path: str, data: bytes) -> None:
        """Return only when the whole file outlives a power cut."""
        ...

    async def read(self, path: str) -> bytes: ...

    async def size(self, path: str) -> int | None:
        """None if there is no such file."""
        ...

    async def delete(self, path: str) -> None:
        """Deleting what is gone already is no error."""
        ...


def image_path(content_hash: bytes, extension: str) -> str:
    name = content_hash.hex()
    return f"{FOLDER}/{name[:2]}/{name[2:4]}/{name}.{extension}"


def open_image_files(settings: Settings) -> ImageFiles:
    """Where the archive is: image files move with it."""
    options = archive_options(settings)
    files = image_files_at(options.place)
    if options.old_place is None:
        return files

    return MovingImageFiles(files, image_files_at(options.old_place))


def image_files_at(place: str | Path) -> ImageFiles:
    """Those beside the archive of one place."""
    parts = urlsplit(str(place))
    if isinstance(place, Path) or not parts.scheme:
        return LocalImageFiles(Path(place))
    if parts.scheme == "file":
        return LocalImageFiles(Path(unquote(parts.path)))

    return BucketImageFiles(str(place))


class LocalImageFiles:
    """Files in a folder that any number of processes share."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    async def write(self, path: str, data: bytes) -> None:
        await in_thread(_write, self._root, self._place(path), data)

    async def read(self, path: str) -> bytes:
        with _disk_errors(path):
            return await in_thread(self._place(path).read_bytes)

    async def size(self, path: str) -> int | None:
        try:
            with _disk_errors(path):
                return (await in_thread(self._place(path).stat)).st_size
        except NotFound:
            return None

    async def delete(self, path: str) -> None:
        await in_thread(_delete, self._place(path))

    def _place(self, path: str) -> Path:
        return self._root / checked_path(path)


def checked_path(path: str) -> str:
    """Paths come from the database, and must not lead elsewhere."""
    if _PATH.fullmatch(path) is None:
        raise InvalidInput(f"{path!r} is not the path of an image")
    return path


def _write(root: Path, place: Path, data: bytes) -> None:
    with _disk_errors(place.name):
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{uuid4().hex[:8]}.part")
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
        # every level: another process may have made one and not have synced it yet
        for folder in place.parents:
            _sync_folder(folder)
            if folder == root:
                break


def _delete(place: Path) -> None:
    with suppress(NotFound), _disk_errors(place.name):
        # also what writers left that were killed
        for part in place.parent.glob(f".{place.name}.*.part"):
            part.unlink(missing_ok=True)
        place.unlink()
        _sync_folder(place.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"there is no image file {name}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            raise StorageFull(
                f"no space to write image file {name}: {reason}", hint="Free some space."
            ) from error
        raise ArchiveError(f"image file {name}: {reason}") from error


class MovingImageFiles:
    """Two places that act as one. A file is named after its content, so both have the same."""

    def __init__(self, new: ImageFiles, old: ImageFiles) -> None:
        self._new = new
        self._old = old

    async def write(self, path: str, data: bytes) -> None:
        await self._new.write(path, data)

    async def read(self, path: str) -> bytes:
        for files in (self._new, self._old):
            try:
                return await files.read(path)
            except NotFound:
                continue
        # moved between the two looks
        return await self._new.read(path)

    async def size(self, path: str) -> int | None:
        for files in (self._new, self._old):
            size = await files.size(path)
            if size is not None:
                return size
        return await self._new.size(path)

    async def delete(self, path: str) -> None:
        await self._old.delete(path)
        await self._new.delete(path)


class BucketImageFiles:
    """Objects in a bucket; region, endpoint and keys come from the usual environment."""

    def __init__(self, url: str) -> None:
        self._store = open_bucket_store(url)

    async def write(self, path: str, data: bytes) -> None:
        with _errors(path):
            await self._store.put_async(checked_path(path), data)

    async def read(self, path: str) -> bytes:
        with _errors(path):
            return bytes(await (await self._store.get_async(checked_path(path))).bytes_async())

    async def size(self, path: str) -> int | None:
        try:
            with _errors(path):
                return (await self._store.head_async(checked_path(path)))["size"]
        except NotFound:
            await require_bucket(self._store, path)
            return None

    async def delete(self, path: str) -> None:
        with suppress(NotFound), _errors(path):
            await self._store.delete_async(checked_path(path))


def _errors(name: str) -> AbstractContextManager[None]:
    return bucket_errors(f"image file {name}")


log = get_logger("images")

# longer than any writer takes between storing a file and referring to it
SPARED_FOR = 86400.0
CHUNK = 500


async def delete_unused_files(database: Database, settings: Settings) -> int:
    """Delete unused files, also those that an interrupted clean-up left; return their number."""
    files = open_image_files(settings)
    await _mark_all(database)
    going = await database.run(store.select_going_files)
    for content_hash, path in going:
        with isolated(f"image file {path}"):
            # the row last: while it exists, no process writes this file again
            await files.delete(path)
            await database.run(store.delete_file_row, content_hash)
    if going:
        log.info("image files deleted", files=len(going))
    return len(going)


async def _mark_all(database: Database) -> None:
    while True:
        unused = await database.run(store.select_unused_files, seconds=SPARED_FOR, limit=CHUNK)
        marked = [await _mark(database, content_hash) for content_hash in unused]
        if len(unused) < CHUNK or not any(marked):
            return


async def _mark(database: Database, content_hash: bytes) -> bool:
    """Check again under the lock: a reference may have been added meanwhile."""
    async with database.transaction() as connection:
        await store.lock_file(connection, content_hash)
        return await store.mark_going(connection, content_hash, seconds=SPARED_FOR)
