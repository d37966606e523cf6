"""Image files on their way from one place to another: written in the new one, read in both."""

from __future__ import annotations

from forager.errors import NotFound
from forager.images.files import ImageFiles


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
