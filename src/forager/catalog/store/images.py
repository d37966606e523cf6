"""SQL of images and their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class ShownImage:
    """One image as a product's page shows it."""

    product_id: int
    url: str
    url_hash: bytes
    alt_text: str | None
    image_type: str
    position: int


async def replace_images(
    connection: Connection, product_ids: Sequence[int], shown: Sequence[ShownImage]
) -> None:
    """Make these the images of these products; those that were there keep what is known of them."""
    await connection.execute(
        """
        WITH shown AS (
            SELECT *
              FROM unnest(%(owners)s::bigint[], %(urls)s::text[], %(hashes)s::bytea[],
                          %(alts)s::text[], %(types)s::text[], %(positions)s::int[])
                AS s (product_id, image_url, url_hash, alt_text, image_type, position)
        ), gone AS (
            DELETE FROM images i
             WHERE i.product_id = ANY(%(product_ids)s::bigint[])
               AND NOT EXISTS (
                SELECT FROM shown s
                 WHERE s.product_id = i.product_id AND s.url_hash = i.url_hash
               )
        )
        INSERT INTO images AS i
               (product_id, image_url, url_hash, alt_text, image_type, position)
        SELECT product_id, image_url, url_hash, alt_text, image_type, position
          FROM shown
         ORDER BY product_id, position
            ON CONFLICT (product_id, url_hash) DO UPDATE
           SET alt_text = excluded.alt_text,
               image_type = excluded.image_type,
               position = excluded.position
         WHERE (i.alt_text, i.image_type, i.position)
               IS DISTINCT FROM (excluded.alt_text, excluded.image_type, excluded.position)
        """,
        {
            "owners": [image.product_id for image in shown],
            "urls": [image.url for image in shown],
            "hashes": [image.url_hash for image in shown],
            "alts": [image.alt_text for image in shown],
            "types": [image.image_type for image in shown],
            "positions": [image.position for image in shown],
            "product_ids": list(product_ids),
        },
    )
