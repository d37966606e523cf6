"""SQL of replacements: other products that the pages of known products show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows

_SEEN = RowArrays(
    "s", product_id="bigint", name="text", sku="text", gtin="text", url="text", page="text"
)


@dataclass(frozen=True, slots=True)
class TaskProduct:
    """The product that is stored for a task, and whether another one was seen since."""

    task_id: int
    product_id: int
    name: str
    sku: str | None
    # where the SKU was read
    sku_origin: str | None
    gtin: str | None
    is_replaced: bool


async def select_task_products(
    connection: Connection, task_ids: Sequence[int]
) -> dict[int, TaskProduct]:
    """The products at the URLs of tasks, or at the pages that these redirect to."""
    found = await Rows(connection, TaskProduct).all(
        """
        SELECT DISTINCT ON (k.task_id)
               k.task_id, p.id AS product_id, p.product_name AS name, p.sku,
               p.evidence -> 'sku' ->> 'origin' AS sku_origin, p.gtin,
               r.product_id IS NOT NULL AS is_replaced
          FROM (
            SELECT t.id AS task_id, a.product_id, 1 AS rank
              FROM crawl_tasks t JOIN product_aliases a ON a.url_hash = t.url_hash
             WHERE t.id = ANY(%(ids)s)
             UNION ALL
            SELECT t.id, o.id, 2 FROM crawl_tasks t JOIN products o ON o.url_hash = t.url_hash
             WHERE t.id = ANY(%(ids)s)
             UNION ALL
            SELECT crawl_task_id, id, 3 FROM products WHERE crawl_task_id = ANY(%(ids)s)
          ) AS k
          JOIN products p ON p.id = k.product_id
          LEFT JOIN product_replacements r ON r.product_id = p.id
         ORDER BY k.task_id, k.rank, p.id
        """,
        {"ids": list(task_ids)},
    )
    return {each.task_id: each for each in found}


@dataclass(frozen=True, slots=True)
class SeenReplacement:
    """Another product that the page of a known product shows now."""

    product_id: int
    name: str
    sku: str | None
    gtin: str | None
    url: str
    # the archive reference of the page
    page: str | None


@dataclass(frozen=True, slots=True)
class Replacement:
    """The product that a page shows instead of the known one."""

    product_id: int
    name: str
    sku: str | None
    gtin: str | None
    url: str
    visits: int
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class NotedReplacement:
    """The visits in a row that showed the same other product, and the name seen before."""

    product_id: int
    visits: int
    former_name: str | None


async def note_replacements(
    connection: Connection, seen: Sequence[SeenReplacement]
) -> dict[int, NotedReplacement]:
    """Count a visit for each; a page that was read before does not count, another product resets.

    Without an archive, every visit counts.
    """
    found = await Rows(connection, NotedReplacement).all(
        f"""
        WITH former AS MATERIALIZED (
            SELECT product_id, product_name
              FROM product_replacements WHERE product_id = ANY(%(product_id)s)
        ), noted AS (
            INSERT INTO product_replacements AS r (product_id, product_name, sku, gtin, url, page)
            SELECT product_id, name, sku, gtin, url, page FROM {_SEEN} ORDER BY product_id
                ON CONFLICT (product_id) DO UPDATE
               SET product_name = excluded.product_name, sku = excluded.sku,
                   gtin = excluded.gtin, url = excluded.url, page = excluded.page,
                   last_seen_at = now(),
                   visits = CASE WHEN r.product_name <> excluded.product_name THEN 1
                                 WHEN r.page = excluded.page THEN r.visits
                                 ELSE r.visits + 1 END
            RETURNING product_id, visits
        )
        SELECT n.product_id, n.visits, f.product_name AS former_name
          FROM noted n LEFT JOIN former f USING (product_id)
        """,
        _SEEN.values(seen),
    )
    return {each.product_id: each for each in found}


async def delete_replacements(connection: Connection, product_ids: Sequence[int]) -> None:
    """Forget that the pages of products show others."""
    await connection.execute(
        "DELETE FROM product_replacements WHERE product_id = ANY(%s)", (list(product_ids),)
    )


async def delete_replacements_of_domain(connection: Connection, domain_id: int) -> None:
    """Forget that pages of a domain show other products."""
    await connection.execute(
        """
        DELETE FROM product_replacements r USING products p
         WHERE p.id = r.product_id AND p.domain_id = %s
        """,
        (domain_id,),
    )


async def select_replacement(connection: Connection, product_id: int) -> Replacement | None:
    """The product that the page of a product shows instead."""
    return await Rows(connection, Replacement).first(
        """
        SELECT product_id, product_name AS name, sku, gtin, url, visits, first_seen_at, last_seen_at
          FROM product_replacements WHERE product_id = %s
        """,
        (product_id,),
    )


@dataclass(frozen=True, slots=True)
class ListedReplacement(Replacement):
    """A replacement with the product that it would replace."""

    product_url: str
    product_name: str


async def select_replacements(
    connection: Connection, *, after: int, limit: int
) -> list[ListedReplacement]:
    """Replacements by product ID."""
    return await Rows(connection, ListedReplacement).all(
        """
        SELECT r.product_id, r.product_name AS name, r.sku, r.gtin, r.url, r.visits,
               r.first_seen_at, r.last_seen_at, p.url AS product_url, p.product_name
          FROM product_replacements r JOIN products p ON p.id = r.product_id
         WHERE r.product_id > %s
         ORDER BY r.product_id
         LIMIT %s
        """,
        (after, limit),
    )


@dataclass(frozen=True, slots=True)
class DetachedProduct:
    """A product that was given up in favor of its replacement."""

    id: int
    task_id: int | None
    domain_id: int
    url: str
    product_name: str
    availability: str | None


async def lock_products(
    connection: Connection, product_ids: Sequence[int]
) -> list[DetachedProduct]:
    """Lock products in the order in which all transactions lock them."""
    return await Rows(connection, DetachedProduct).all(
        """
        SELECT id, crawl_task_id AS task_id, domain_id, url, product_name, availability
          FROM products WHERE id = ANY(%s) ORDER BY url_hash FOR UPDATE
        """,
        (list(product_ids),),
    )


async def detach_products(
    connection: Connection, places: Sequence[tuple[int, str, bytes]], availability: str
) -> None:
    """Free the URLs and tasks of products, which keep their history; their aliases end.

    The content hash becomes one that no page has.
    """
    ids = [product_id for product_id, _, _ in places]
    values = {
        "ids": ids,
        "urls": [url for _, url, _ in places],
        "hashes": [url_hash for _, _, url_hash in places],
        "availability": availability,
    }
    await connection.execute(
        """
        INSERT INTO price_history (product_id, price, list_price, currency, availability)
        SELECT id, price, list_price, currency, %(availability)s
          FROM products
         WHERE id = ANY(%(ids)s) AND availability IS DISTINCT FROM %(availability)s
         ORDER BY id
        """,
        values,
    )
    await connection.execute(
        """
        UPDATE products p
           SET url = d.url, url_hash = d.url_hash, crawl_task_id = NULL, updated_at = now(),
               availability = %(availability)s, content_hash = sha256(p.content_hash)
          FROM unnest(%(ids)s::bigint[], %(urls)s::text[], %(hashes)s::bytea[])
               AS d (id, url, url_hash)
         WHERE p.id = d.id
        """,
        values,
    )
    await connection.execute("DELETE FROM product_aliases WHERE product_id = ANY(%(ids)s)", values)
    await delete_replacements(connection, ids)
