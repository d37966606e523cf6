"""SQL of offers: the products of different shops that are the same article."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Values

_GTIN: LiteralString = "ltrim({p}.gtin, '0')"
_MPN: LiteralString = "lower(regexp_replace({p}.metadata ->> 'mpn', '[^[:alnum:]]', '', 'g'))"
# codes that shops assign themselves: EAN-13 and UPC from 2, UPC from 4, EAN-8 from 0 and 2
_INTERNAL: LiteralString = r"'^(2\d{11,12}|4\d{11}|2\d{7}|\d{1,7})$'"


@dataclass(frozen=True, slots=True)
class OfferPair:
    product_id: int
    offer_id: int
    # gtin, or brand and part number
    matched_by: str


_BY_GTIN: LiteralString = f"""
    SELECT o.id
      FROM products o
     WHERE {_GTIN.format(p="o")} = {_GTIN.format(p="r")}
       AND o.gtin IS NOT NULL AND o.id <> r.id
       AND {_GTIN.format(p="r")} !~ {_INTERNAL}
     ORDER BY o.id
     LIMIT %(limit)s
"""
# different GTINs are different articles, even with equal part numbers
_BY_MPN: LiteralString = f"""
    SELECT o.id
      FROM products o
     WHERE lower(o.brand) = lower(r.brand)
       AND {_MPN.format(p="o")} = {_MPN.format(p="r")}
       AND o.metadata ? 'mpn' AND r.metadata ? 'mpn' AND {_MPN.format(p="r")} <> ''
       AND (o.gtin IS NULL OR r.gtin IS NULL)
       AND o.id <> r.id
     ORDER BY o.id
     LIMIT %(limit)s
"""


async def select_pairs(
    connection: Connection, product_ids: Sequence[int], *, limit: int
) -> list[OfferPair]:
    """Other offers of each product, up to a limit per product."""
    return await Rows(connection, OfferPair).all(
        f"""
        SELECT r.id AS product_id, o.id AS offer_id, 'gtin' AS matched_by
          FROM products r CROSS JOIN LATERAL ({_BY_GTIN}) o
         WHERE r.id = ANY(%(ids)s)
        UNION ALL
        SELECT r.id, o.id, 'mpn'
          FROM products r CROSS JOIN LATERAL ({_BY_MPN}) o
         WHERE r.id = ANY(%(ids)s)
         ORDER BY product_id, matched_by, offer_id
        """,
        {"ids": list(product_ids), "limit": limit},
    )


async def select_with_gtin(connection: Connection, gtin: str, *, limit: int) -> list[int]:
    return await Values(connection).all(
        f"""
        SELECT p.id
          FROM products p
         WHERE {_GTIN.format(p="p")} = ltrim(%s, '0') AND p.gtin IS NOT NULL
         ORDER BY p.id
         LIMIT %s
        """,
        (gtin, limit),
    )


async def select_offer_tasks(
    connection: Connection, product_ids: Sequence[int], *, limit: int
) -> list[int]:
    """Tasks of other offers with the same GTINs, up to a limit per product."""
    return await Values(connection).all(
        f"""
        SELECT DISTINCT p.crawl_task_id
          FROM products r CROSS JOIN LATERAL ({_BY_GTIN}) o JOIN products p ON p.id = o.id
         WHERE r.id = ANY(%(ids)s) AND p.crawl_task_id IS NOT NULL
        """,
        {"ids": list(product_ids), "limit": limit},
    )
