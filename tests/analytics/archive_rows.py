"""Products of long ago, and everything that is kept of products."""

from __future__ import annotations

from analytics.lake_rows import add_prices
from forager.db.database import Database
from products.rows import add_product
from support.sql import fetch_value


async def add_unseen(database: Database, number: int) -> int:
    """A product of long ago, with more prices, a stored image, an alias and an alert rule."""
    product_id = await add_product(database, number)
    await add_prices(database, product_id, 3, ago="200 days")
    async with database.transaction() as connection:
        await connection.execute(
            """
            UPDATE products
               SET last_seen_at = now() - interval '181 days', description = %s,
                   tsv = to_tsvector('english', 'brass lamps'), variants = '[{"size": "1,5"}]',
                   updated_at = now() - interval '200 days'
             WHERE id = %s
            """,
            ('Ø "quoted"\n\\ and more', product_id),
        )
        await connection.execute(
            """
            INSERT INTO images (product_id, image_url, url_hash, status, content_hash, image_path)
            VALUES (%s, 'https://shop.example/a.jpg', '\\x01', 'stored', '\\x02', 'a.jpg')
            """,
            (product_id,),
        )
        await connection.execute(
            """
            INSERT INTO product_aliases (url_hash, url, product_id)
            VALUES (sha256(%(id)s::text::bytea), 'https://shop.example/old', %(id)s)
            """,
            {"id": product_id},
        )
        await connection.execute(
            "INSERT INTO alert_rules (kind, amount, product_id) VALUES ('price_below', 9.5, %s)",
            (product_id,),
        )
    return product_id


async def everything(database: Database) -> dict[str, list[str]]:
    """Products, prices, aliases and alert rules, whole rows."""
    async with database.connection() as connection:
        found = {}
        for table in ("products", "price_history", "product_aliases", "alert_rules"):
            # whether a product was restored is the only difference
            cursor = await connection.execute(
                f"SELECT (to_jsonb(t) - 'restored_at')::text FROM {table} t ORDER BY 1".encode()
            )
            found[table] = [row[0] for row in await cursor.fetchall()]
        return found


async def count(database: Database, table: str) -> int:
    return int(await fetch_value(database, f"SELECT count(*) FROM {table}".encode()))
