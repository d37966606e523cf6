"""A shop that serves images, files that are or pretend to be images, and the rows of images."""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from forager.db.database import Database
from forager.extract.product.product import ProductImage
from forager.fetch.polite import Fetching
from forager.images.fetcher import ImageFetcher
from forager.images.writer import record_images
from forager.settings import Settings
from products.rows import add_product
from servers.site import Site


def picture(kind: str = "JPEG", size: tuple[int, int] = (64, 48), color: int = 200) -> bytes:
    # not a single color, so that a truncated file is detected
    image = Image.effect_noise(size, 50).convert("RGB")
    image.putpixel((0, 0), (color, 0, 0))
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """A small file that says it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b""))
    )


SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'
HTML = b"<!DOCTYPE html><html><title>Not found</title></html>"


@dataclass
class Shop:
    """A shop with products, and what is known of their images."""

    database: Database
    settings: Settings
    site: Site
    domain: str = field(init=False)

    def __post_init__(self) -> None:
        self.domain = f"127.0.0.1:{self.site.port}"

    async def show(self, number: int, *paths: str) -> int:
        """A product that shows these images; its id."""
        product = await add_product(self.database, number, domain=self.domain)
        await self.show_again(product, *paths)
        return product

    async def show_again(self, product: int, *paths: str) -> None:
        images = tuple(ProductImage(f"http://{self.domain}{path}") for path in paths)
        async with self.database.transaction() as connection:
            await connection.execute("UPDATE domains SET allow_private = true")
            await record_images(connection, {product: images}, limit=100)

    async def fetch(self, **changes: Any) -> int:
        settings = self.settings.model_copy(update=changes)
        async with (
            Fetching(self.database, settings) as fetching,
            aclosing(ImageFetcher(self.database, settings, fetching)) as images,
        ):
            return await images.run_once()

    async def rows(self) -> list[dict[str, Any]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                """
                SELECT status, problem, width, height, file_size, image_path, attempts,
                       next_attempt_at > now() AS waits
                  FROM images ORDER BY id
                """
            )
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def row(self) -> dict[str, Any]:
        (row,) = await self.rows()
        return row

    async def execute(self, statement: Any) -> None:
        async with self.database.connection() as connection:
            await connection.execute(statement)

    @property
    def stored(self) -> list[Path]:
        folder = self.settings.home / "archive" / "images"
        return [path for path in folder.rglob("*") if path.is_file()]
