"""SQL of offers: the products of different shops that are the same article."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values

_GTIN: LiteralString = "ltrim({p}.gtin, '0')"
_MPN: LiteralString = "lower(regexp_replace({p}.metadata ->> 'mpn', '[^[:alnum:]]', '', 'g'))"
# codes that shops assign themselves: EAN-13 and UPC from 2, UPC from 4, EAN-8 from 0 and 2
_INTERNAL: LiteralString = r"'^(2\d{11,12}|4\d{11}|2\d{7}|\d{1,7})$'"


@dataclass(frozen=True, slots=True)
class OfferPair:
    """Two products that are the same article."""

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


# offers that a user linked or unlinked are matched by that alone
_UNASSIGNED: LiteralString = """
    NOT EXISTS (SELECT FROM item_assignments a WHERE a.product_id IN (r.id, o.id))
"""
_BY_USER: LiteralString = f"""
    SELECT a.product_id AS id
      FROM item_assignments a
     WHERE a.item = coalesce(k.item, 'gtin:' || {_GTIN.format(p="r")}) AND a.product_id <> r.id
     UNION
    SELECT o.id
      FROM products o
     WHERE k.item LIKE 'gtin:%%' AND {_GTIN.format(p="o")} = substr(k.item, 6)
       AND o.gtin IS NOT NULL AND o.id <> r.id
       AND NOT EXISTS (SELECT FROM item_assignments a WHERE a.product_id = o.id)
     ORDER BY id
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
         WHERE r.id = ANY(%(ids)s) AND {_UNASSIGNED}
        UNION ALL
        SELECT r.id, o.id, 'mpn'
          FROM products r CROSS JOIN LATERAL ({_BY_MPN}) o
         WHERE r.id = ANY(%(ids)s) AND {_UNASSIGNED}
        UNION ALL
        SELECT r.id, o.id, 'user'
          FROM products r
          LEFT JOIN item_assignments k ON k.product_id = r.id
         CROSS JOIN LATERAL ({_BY_USER}) o
         WHERE r.id = ANY(%(ids)s)
         ORDER BY product_id, matched_by, offer_id
        """,
        {"ids": list(product_ids), "limit": limit},
    )


@dataclass(frozen=True, slots=True)
class CompetingOffers:
    """What an offer competes with: the other offers of its item, and the own price."""

    # the lowest price that can be bought, by currency
    lowest: Mapping[str | None, Decimal]
    own_price: Decimal | None
    own_currency: str | None


# others of one product that are compared
_MAX_RIVALS = 200


async def select_rivals(
    connection: Connection, product_ids: Sequence[int]
) -> dict[int, CompetingOffers]:
    """The competition of products; the own price list names the item, or the code, of each."""
    pairs = await select_pairs(connection, product_ids, limit=_MAX_RIVALS)
    lowest: dict[int, dict[str | None, Decimal]] = {id_: {} for id_ in product_ids}
    prices = await _select_buyable(connection, {pair.offer_id for pair in pairs})
    for pair in pairs:
        if pair.offer_id in prices:
            price, currency = prices[pair.offer_id]
            known = lowest[pair.product_id].get(currency, price)
            lowest[pair.product_id][currency] = min(known, price)
    own = await _select_own_prices(connection, product_ids)
    return {id_: CompetingOffers(lowest[id_], *own.get(id_, (None, None))) for id_ in lowest}


async def _select_buyable(
    connection: Connection, product_ids: Iterable[int]
) -> dict[int, tuple[Decimal, str | None]]:
    rows = await Tuples(connection).all(
        """
        SELECT id, price, currency
          FROM products
         WHERE id = ANY(%s) AND price IS NOT NULL
           AND coalesce(availability NOT IN ('out_of_stock', 'discontinued'), true)
        """,
        (sorted(product_ids),),
    )
    return {id_: (price, currency) for id_, price, currency in rows}


async def _select_own_prices(
    connection: Connection, product_ids: Sequence[int]
) -> dict[int, tuple[Decimal, str]]:
    rows = await Tuples(connection).all(
        f"""
        SELECT p.id, o.price, o.currency
          FROM products p
          LEFT JOIN item_assignments a ON a.product_id = p.id
          JOIN own_prices o
            ON o.item = coalesce(
                a.item, 'gtin:' || {_GTIN.format(p="p")},
                'mpn:' || lower(p.brand) || '/' || {_MPN.format(p="p")})
         WHERE p.id = ANY(%s)
        """,
        (list(product_ids),),
    )
    return {id_: (price, currency) for id_, price, currency in rows}


async def select_with_gtin(connection: Connection, gtin: str, *, limit: int) -> list[int]:
    """Products with a GTIN, in any length; leading zeros do not count."""
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
