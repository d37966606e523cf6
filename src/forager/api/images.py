"""Stored images, sent so that they can do nothing but be looked at."""

from __future__ import annotations

from starlette.responses import Response

from forager.api.services import Services
from forager.errors import NotFound
from forager.products.lookup import find_image, read_image

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
