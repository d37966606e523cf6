"""SQL of redirects: products that moved to another URL, and the URLs that led to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.extract.product.product import Product
from forager.products.validation.identity import Identity


@dataclass(frozen=True, slots=True)
class KnownIdentity:
    """The product that is stored for a URL, or that the URL redirects to."""

    id: int
    url_hash: bytes
    # of the product's own URL
    own_hash: bytes
    product_name: str
    sku: str | None
    gtin: str | None
    price: Decimal | None

    @property
    def identity(self) -> Identity:
        """What identifies the product."""
        return Identity(self.product_name, self.sku, self.gtin)

    @classmethod
    def of_page(cls, url_hash: bytes, product: Product) -> KnownIdentity:
        """A product that is not stored yet."""
        name = product.name or ""
        return cls(0, url_hash, url_hash, name, product.sku, product.gtin, product.price)


async def select_identities(
    connection: Connection, url_hashes: Sequence[bytes]
) -> dict[bytes, KnownIdentity]:
    """Products by the hashes of their URLs, also of URLs that redirect to them."""
    found = await Rows(connection, KnownIdentity).all(
        """
        SELECT p.id, a.url_hash, p.url_hash AS own_hash, p.product_name, p.sku, p.gtin,
               p.price
          FROM product_aliases a JOIN products p ON p.id = a.product_id
         WHERE a.url_hash = ANY(%(hashes)s)
        UNION ALL
        SELECT id, url_hash, url_hash AS own_hash, product_name, sku, gtin, price
          FROM products
         WHERE url_hash = ANY(%(hashes)s)
        """,
        {"hashes": list(url_hashes)},
    )
    return {known.url_hash: known for known in found}


async def rename_products(connection: Connection, places: Mapping[int, tuple[str, bytes]]) -> None:
    """Give products the URLs that they moved to, unless another product has that URL.

    Their old URLs become aliases.
    """
    await connection.execute(
        """
        WITH moving AS MATERIALIZED (
            SELECT p.id, p.url AS old_url, p.url_hash AS old_hash, r.url, r.url_hash
              FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) AS r (id, url, url_hash)
              JOIN products p USING (id)
             WHERE NOT EXISTS (SELECT FROM products o WHERE o.url_hash = r.url_hash)
        ), renamed AS (
            UPDATE products p
               SET url = moving.url, url_hash = moving.url_hash
              FROM moving
             WHERE p.id = moving.id
        )
        INSERT INTO product_aliases (url_hash, url, product_id)
        SELECT old_hash, old_url, id FROM moving
            ON CONFLICT DO NOTHING
        """,
        (
            list(places),
            [url for url, _ in places.values()],
            [url_hash for _, url_hash in places.values()],
        ),
    )


async def merge_product(connection: Connection, product_id: int, into: int) -> None:
    """Delete a product; the one that it is merged into takes over its older prices."""
    values = {"old": product_id, "into": into}
    for table in ("price_history", "variant_prices"):
        await connection.execute(
            f"""
            UPDATE {table} h
               SET product_id = %(into)s
              FROM products p
             WHERE h.product_id = %(old)s AND p.id = %(into)s AND h.recorded_at < p.created_at
            """,
            values,
        )
    await connection.execute(
        "UPDATE product_aliases SET product_id = %(into)s WHERE product_id = %(old)s", values
    )
    await connection.execute(
        """
        INSERT INTO alert_rules (kind, percent, amount, currency, days, product_id)
        SELECT kind, percent, amount, currency, days, %(into)s
          FROM alert_rules WHERE product_id = %(old)s
            ON CONFLICT DO NOTHING
        """,
        values,
    )
    await connection.execute("DELETE FROM products WHERE id = %(old)s", values)


async def insert_aliases(connection: Connection, aliases: Mapping[bytes, tuple[str, int]]) -> None:
    """Note that URLs lead to products; a URL leads to one."""
    await connection.execute(
        """
        INSERT INTO product_aliases AS a (url_hash, url, product_id)
        SELECT * FROM unnest(%s::bytea[], %s::text[], %s::bigint[]) ORDER BY 1
            ON CONFLICT (url_hash) DO UPDATE SET product_id = excluded.product_id
         WHERE a.product_id <> excluded.product_id
        """,
        (
            list(aliases),
            [url for url, _ in aliases.values()],
            [product_id for _, product_id in aliases.values()],
        ),
    )


async def delete_aliases(connection: Connection, url_hashes: Sequence[bytes]) -> None:
    """Delete aliases of URLs that have products now."""
    await connection.execute(
        "DELETE FROM product_aliases WHERE url_hash = ANY(%s)", (list(url_hashes),)
    )


async def select_aliases(connection: Connection, product_id: int) -> list[str]:
    """URLs that lead to a product, at most 100."""
    return await Values(connection).all(
        "SELECT url FROM product_aliases WHERE product_id = %s ORDER BY url LIMIT 100",
        (product_id,),
    )
