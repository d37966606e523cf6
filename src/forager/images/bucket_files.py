"""Image files as objects in a bucket."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from forager.archive.bucket import bucket_errors, open_bucket_store, require_bucket
from forager.errors import NotFound
from forager.images.files import checked_path


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
