"""Files that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from forager.api.slots import Slots
from forager.products.export import ExportFormat

# of files of products
MEDIA_TYPES = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSONL: "application/x-ndjson",
    ExportFormat.PARQUET: "application/vnd.apache.parquet",
}

DOWNLOADS = Slots(4, "an export")


class Download(StreamingResponse):
    """A file whose making takes a slot for as long as it lasts. The name is always our own."""

    def __init__(self, parts: AsyncGenerator[bytes, None], name: str, media_type: str) -> None:
        self._parts = parts
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        super().__init__(parts, headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with DOWNLOADS.taken():
                await super().__call__(scope, receive, send)
        finally:
            await self._parts.aclose()


async def download(parts: AsyncIterator[bytes], name: str, media_type: str) -> Download:
    """The answer; what cannot be done at all is said before the file has begun."""
    first = await anext(parts)
    return Download(_again(first, parts), name, media_type)


async def _again(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    yield first
    async for part in rest:
        yield part
