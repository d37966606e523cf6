"""A product's image whose file is stored, and one that is still to be fetched."""

from __future__ import annotations

from hashlib import sha256

from forager.db.database import Database
from forager.images.files import image_path, open_image_files
from forager.settings import Settings

PIXEL = b"GIF89a" + bytes(30)


async def store_image(database: Database, settings: Settings, product_id: int) -> None:
    content_hash = sha256(PIXEL).digest()
    path = image_path(content_hash, "gif")
    await open_image_files(settings).put_all(path, PIXEL)
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO image_files (content_hash, path, media_type, width, height, file_size)
            VALUES (%s, %s, 'image/gif', 1, 1, %s)
            """,
            (content_hash, path, len(PIXEL)),
        )
        await connection.execute(
            """
            INSERT INTO images (product_id, image_url, url_hash, position, status, image_path,
                                content_hash, file_size, width, height)
            VALUES (%(id)s, 'https://shop.example/a.gif', '\\x01', 0, 'stored', %(path)s, %(hash)s,
                    36, 1, 1),
                   (%(id)s, 'https://shop.example/b.gif', '\\x02', 1, 'pending', NULL, NULL,
                    NULL, NULL, NULL)
            """,
            {"id": product_id, "path": path, "hash": content_hash},
        )
