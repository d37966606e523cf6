"""Files that are made while they are sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from forager.api.limits import Slots
from forager.api.services import Services
from forager.errors import NotFound
from forager.products.export import ExportFormat
from forager.products.lookup import find_image, read_image

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


# kinds that are nothing but pixels
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/bmp")
# an image came from somebody else's server: whatever is in it, it is shown and nothing more
IMAGE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=3600",
}


async def image_answer(
    here: Services, product_id: int, position: int, if_none_match: str
) -> Response:
    """One of a product's images, or that it is the one the browser has."""
    found = await find_image(here.database, product_id, position)
    etag = f'"{found.content_hash.hex()}"'
    headers = {**IMAGE_HEADERS, "ETag": etag}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    if found.media_type not in IMAGE_TYPES:
        raise NotFound(f"image {position} of product {product_id} is of a kind that is not shown")
    data = await read_image(here.settings, found)
    return Response(data, headers=headers, media_type=found.media_type)
