"""SQL of price histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples
from forager.products.filters import Filters, PriceDirection, PriceMeasure
from forager.products.store.lists import filtered
from forager.products.validation.plausibility import Offer

_OFFERS = RowArrays(
    "c", product_id="bigint", price="numeric", list_price="numeric", currency="text",
    availability="text",
)  # fmt: skip
_VARIANTS = RowArrays(
    "c", product_id="bigint", variant="text", price="numeric", currency="text", availability="text"
)


async def insert_changes(connection: Connection, offers: Mapping[int, Offer]) -> None:
    """One row for each product whose offer is new.

    The time is the statement's, not the transaction's: the products are locked by now, and of two
    writers the second must not be dated before the first.
    """
    await connection.execute(
        f"""
        INSERT INTO price_history (product_id, price, list_price, currency, availability,
                                   recorded_at)
        SELECT product_id, price, list_price, currency, availability, statement_timestamp()
          FROM {_OFFERS}
         ORDER BY product_id
        """,
        _OFFERS.values(offers.values(), product_id=list(offers)),
    )


@dataclass(frozen=True, slots=True)
class VariantChange:
    """A variant whose offer differs from the last one in its history."""

    product_id: int
    variant: str
    is_new: bool
    old_price: Decimal | None
    old_currency: str | None
    old_availability: str | None
    price: Decimal | None
    currency: str | None
    availability: str | None

    @property
    def old(self) -> Offer:
        """The offer before the change."""
        return Offer(self.old_price, None, self.old_currency, self.old_availability)

    @property
    def new(self) -> Offer:
        """The offer after the change."""
        return Offer(self.price, None, self.currency, self.availability)


async def select_variant_changes(
    connection: Connection, product_ids: Sequence[int]
) -> list[VariantChange]:
    """How the variants of products differ from the last entry of their history."""
    return await Rows(connection, VariantChange).all(
        """
        SELECT p.id AS product_id, v.variant, last.id IS NULL AS is_new,
               last.price AS old_price, last.currency AS old_currency,
               last.availability AS old_availability, v.price, v.currency, v.availability
          FROM products p
         CROSS JOIN LATERAL (
            SELECT DISTINCT ON (variant)
                   left(coalesce(x.sku, x.gtin, x.url, x.name), 200) AS variant,
                   x.price, x.currency, x.availability
              FROM jsonb_to_recordset(p.variants)
                   AS x (sku text, gtin text, url text, name text, price numeric(14, 4),
                         currency text, availability text)
             ORDER BY variant
         ) AS v
          LEFT JOIN LATERAL (
            SELECT h.id, h.price, h.currency, h.availability
              FROM variant_prices h
             WHERE h.product_id = p.id AND h.variant = v.variant
             ORDER BY h.recorded_at DESC, h.id DESC
             LIMIT 1
         ) AS last ON true
         WHERE p.id = ANY(%s) AND v.variant IS NOT NULL
           AND (v.price, v.currency, v.availability)
               IS DISTINCT FROM (last.price, last.currency, last.availability)
         ORDER BY p.id, v.variant
        """,
        (list(product_ids),),
    )


async def insert_variant_changes(connection: Connection, changes: Sequence[VariantChange]) -> None:
    """Add entries to the histories of variants."""
    await connection.execute(
        f"""
        INSERT INTO variant_prices (product_id, variant, price, currency, availability,
                                    recorded_at)
        SELECT product_id, variant, price, currency, availability, statement_timestamp()
          FROM {_VARIANTS}
        """,
        _VARIANTS.values(changes),
    )


CHANGE_TO: LiteralString = """
    (SELECT round(100 * ({price} / x.price - 1), 2)
       FROM price_history x
      WHERE x.product_id = p.id AND x.currency IS NOT DISTINCT FROM {currency}
        AND x.price > 0 AND x.price <> {price}
      ORDER BY x.recorded_at DESC, x.id DESC
      LIMIT 1)
"""
"""The change of a product `p` to a price, in percent of the last other price in its currency."""


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """One change: an offer from this time on."""

    id: int
    product_id: int
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    recorded_at: datetime
    # the change since the last known price in this currency
    percent: float | None
    # recorded; or of a withheld price: open, confirmed, not_confirmed or wrong
    standing: str = "recorded"
    # why it was withheld, and how many visits showed it
    reason: str | None = None
    visits: int | None = None


_ENTRIES: LiteralString = """
    SELECT h.id, h.product_id, h.price, h.list_price, h.currency, h.availability, h.recorded_at,
           {more}
           (SELECT round((h.price - o.price) / nullif(o.price, 0) * 100, 2)::float8
              FROM {history} o
             WHERE o.product_id = h.product_id
               AND (o.recorded_at, o.id) < (h.recorded_at, h.id)
               AND o.currency IS NOT DISTINCT FROM h.currency
               AND o.price IS NOT NULL {of_others}
             ORDER BY o.recorded_at DESC, o.id DESC
             LIMIT 1) AS percent
      FROM {history} h
"""
# entries and withheld prices, with different IDs
_WITH_WITHHELD: LiteralString = """
    (SELECT 2 * id AS id, product_id, price, list_price, currency, availability, recorded_at,
            'recorded' AS standing, NULL AS reason, NULL::int AS visits
       FROM price_history
      UNION ALL
     SELECT 2 * id + 1, product_id, price, NULL, currency, NULL, first_seen_at,
            outcome, reason, visits
       FROM withheld_prices)
"""
_OF_VARIANT: LiteralString = """
    (SELECT id, product_id, price, NULL::numeric AS list_price, currency, availability, recorded_at
       FROM variant_prices
      WHERE variant = %(variant)s)
"""


async def select_history(
    connection: Connection,
    product_id: int,
    *,
    variant: str | None = None,
    withheld: bool = False,
    since: datetime | None,
    before: tuple[datetime, int] | None,
    limit: int,
) -> list[PriceEntry]:
    """Changes of a product, also `withheld` ones, or of one of its variants; newest first."""
    history: LiteralString = "price_history" if variant is None else _OF_VARIANT
    entries = _ENTRIES.format(history=history, more="", of_others="")
    if withheld and variant is None:
        entries = _ENTRIES.format(
            history=_WITH_WITHHELD,
            more="h.standing, h.reason, h.visits,",
            of_others="AND o.standing = 'recorded'",
        )
    return await Rows(connection, PriceEntry).all(
        f"""
        {entries}
         WHERE h.product_id = %(product)s
           AND (%(since)s::timestamptz IS NULL OR h.recorded_at >= %(since)s)
           AND (%(at)s::timestamptz IS NULL OR (h.recorded_at, h.id) < (%(at)s, %(id)s::bigint))
         ORDER BY h.recorded_at DESC, h.id DESC
         LIMIT %(limit)s
        """,
        {
            "product": product_id,
            "variant": variant,
            "since": since,
            "at": before[0] if before else None,
            "id": before[1] if before else None,
            "limit": limit,
        },
    )


async def select_histories(
    connection: Connection, product_ids: Sequence[int], *, since: datetime | None
) -> list[PriceEntry]:
    """The changes of some products, oldest first."""
    return await Rows(connection, PriceEntry).all(
        f"""
        {_ENTRIES.format(history="price_history", more="", of_others="")}
         WHERE h.product_id = ANY(%(products)s)
           AND (%(since)s::timestamptz IS NULL OR h.recorded_at >= %(since)s)
         ORDER BY h.product_id, h.recorded_at, h.id
        """,
        {"products": list(product_ids), "since": since},
    )


@dataclass(frozen=True, slots=True)
class PriceMove:
    """The change of a price since a time, in the current currency."""

    product_id: int
    url: str
    domain: str
    name: str
    old_price: Decimal
    price: Decimal
    currency: str | None
    amount: Decimal
    percent: float
    availability: str | None
    price_changed_at: datetime | None


async def select_moves(
    connection: Connection,
    filters: Filters,
    *,
    since: datetime,
    direction: PriceDirection | None = None,
    by: PriceMeasure = PriceMeasure.PERCENT,
    limit: int,
    only: Sequence[int] | None = None,
) -> list[PriceMove]:
    """Products whose price differs from that at a time, or from the first since; largest first.

    `only`: of these products.
    """
    conditions, values = filtered(filters)
    priced: LiteralString = """
        SELECT h.price
          FROM price_history h
         WHERE h.product_id = p.id AND h.currency IS NOT DISTINCT FROM p.currency AND h.price > 0
    """
    return await Rows(connection, PriceMove).all(
        f"""
        WITH moved AS MATERIALIZED (
            SELECT DISTINCT product_id
              FROM price_history
             WHERE recorded_at >= %(since)s
               AND (%(only)s::bigint[] IS NULL OR product_id = ANY(%(only)s))
        )
        SELECT p.id AS product_id, p.url, d.domain_name AS domain, p.product_name AS name,
               old.price AS old_price, p.price, p.currency, p.availability, p.price_changed_at,
               p.price - old.price AS amount,
               round((p.price - old.price) / old.price * 100, 2)::float8 AS percent
          FROM moved
          JOIN products p ON p.id = moved.product_id
          JOIN domains d ON d.id = p.domain_id
         CROSS JOIN LATERAL (
            SELECT coalesce(
                ({priced} AND h.recorded_at <= %(since)s
                 ORDER BY h.recorded_at DESC, h.id DESC LIMIT 1),
                ({priced} AND h.recorded_at > %(since)s ORDER BY h.recorded_at, h.id LIMIT 1)
            ) AS price
         ) AS old
         WHERE p.price <> old.price AND {conditions}
           AND (%(drops)s::boolean IS NULL OR (p.price < old.price) = %(drops)s)
         ORDER BY abs(p.price - old.price) / CASE WHEN %(by_amount)s THEN 1 ELSE old.price END DESC,
                  p.id
         LIMIT %(limit)s
        """,
        {
            **values,
            "since": since,
            "only": None if only is None else list(only),
            "drops": None if direction is None else direction is PriceDirection.DROPS,
            "by_amount": by is PriceMeasure.AMOUNT,
            "limit": limit,
        },
    )


@dataclass(frozen=True, slots=True)
class PriceSummary:
    """The prices of a product in its current currency."""

    changes: int
    lowest: Decimal | None
    highest: Decimal | None
    first: Decimal | None
    since: datetime | None


async def select_summary(connection: Connection, product_id: int) -> PriceSummary:
    """The lowest, highest, first and last price of a product, and how often it changed."""
    return await Rows(connection, PriceSummary).one(
        """
        SELECT count(*) AS changes,
               min(h.price) AS lowest,
               max(h.price) AS highest,
               (array_agg(h.price ORDER BY h.recorded_at, h.id)
                    FILTER (WHERE h.price IS NOT NULL))[1] AS first,
               min(h.recorded_at) AS since
          FROM price_history h
          JOIN products p ON p.id = h.product_id
         WHERE h.product_id = %s AND h.currency IS NOT DISTINCT FROM p.currency
        """,
        (product_id,),
    )


async def select_recent_prices(
    connection: Connection, product_ids: Sequence[int], *, limit: int
) -> dict[int, list[Decimal]]:
    """The last prices of products in their current currency, oldest first."""
    return await Tuples(connection).as_dict(
        """
        SELECT p.id, array_agg(h.price ORDER BY h.recorded_at, h.id)
          FROM products p
         CROSS JOIN LATERAL (
            SELECT id, price, recorded_at
              FROM price_history
             WHERE product_id = p.id AND currency = p.currency AND price IS NOT NULL
             ORDER BY recorded_at DESC, id DESC
             LIMIT %s
         ) AS h
         WHERE p.id = ANY(%s)
         GROUP BY p.id
        """,
        (limit, list(product_ids)),
    )
