"""Rows that tests of events and images begin with."""

from __future__ import annotations

from hashlib import sha256

from forager.db.database import Connection, Database

URL = "https://shop.example/p/{}"


async def insert_domain(connection: Connection, name: str = "shop.example") -> int:
    cursor = await connection.execute(
        """
        INSERT INTO domains (domain_name, base_url) VALUES (%s, 'https://' || %s)
            ON CONFLICT (domain_name) DO UPDATE SET base_url = excluded.base_url
        RETURNING id
        """,
        (name, name),
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def add_product(database: Database, number: int, *, domain: str = "shop.example") -> int:
    """A product with its task; its id."""
    url = f"https://{domain}/p/{number}"
    key = sha256(url.encode()).digest()
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection, domain)
        cursor = await connection.execute(
            """
            WITH task AS (
                INSERT INTO crawl_tasks (domain_id, url, url_hash, status, completed_at,
                                         next_crawl_at)
                VALUES (%(domain)s, %(url)s, %(key)s, 'completed', now(), now() + interval '1 d')
                RETURNING id
            )
            INSERT INTO products (domain_id, crawl_task_id, url, url_hash, product_name, price,
                                  currency, availability, content_hash, parser, parser_version)
            SELECT %(domain)s, task.id, %(url)s, %(key)s, %(name)s, 10, 'EUR', 'in_stock', %(key)s,
                   'generic', '1'
              FROM task
            RETURNING id
            """,
            {"domain": domain_id, "url": url, "key": key, "name": f"Product {number}"},
        )
        row = await cursor.fetchone()
        assert row is not None
        await connection.execute(
            """
            INSERT INTO price_history (product_id, price, currency, availability)
            VALUES (%s, 10, 'EUR', 'in_stock')
            """,
            (row[0],),
        )
    return int(row[0])
