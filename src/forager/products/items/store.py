"""SQL of items, exchange rates and the own price list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples, Values

if TYPE_CHECKING:
    from forager.products.items.own_prices import OwnPrice
    from forager.products.items.rates import Rate

_RATES = RowArrays("r", from_currency="text", to_currency="text", valid_from="date", rate="numeric")
_OWN = RowArrays(
    "o", gtin="text", brand="text", mpn="text", name="text", price="numeric", currency="text"
)
_PART: LiteralString = """
    'mpn:' || lower({0}.brand) || '/' || lower(regexp_replace({1}, '[^[:alnum:]]', '', 'g'))
"""


# --- tables of the user --------------------------------------------------------------------------


async def select_rates(connection: Connection) -> list[tuple[str, str, date, Decimal]]:
    """All exchange rates: from, to, the first day, and the rate."""
    return await Tuples(connection).all(
        "SELECT from_currency, to_currency, valid_from, rate FROM currency_rates"
    )


async def save_rates(connection: Connection, rates: Sequence[Rate]) -> None:
    """Add exchange rates; one for the same day is replaced."""
    await connection.execute(
        f"""
        INSERT INTO currency_rates (from_currency, to_currency, valid_from, rate)
        SELECT from_currency, to_currency, valid_from, rate FROM {_RATES}
            ON CONFLICT (from_currency, to_currency, valid_from) DO UPDATE SET rate = excluded.rate
        """,
        _RATES.values(rates),
    )


async def replace_own_prices(connection: Connection, prices: Sequence[OwnPrice]) -> int:
    """The last line about an item counts; returns the number of items."""
    await connection.execute("DELETE FROM own_prices")
    return await Values(connection).affected(
        f"""
        WITH given AS (
            SELECT *, {_PART.format("o", "o.mpn")} AS part
              FROM {_OWN.unnest} WITH ORDINALITY AS o ({_OWN.columns}, line)
        ), parts AS (
            SELECT DISTINCT ON (g.part) g.part, i.item
              FROM given g
              JOIN products p ON lower(p.brand) = lower(g.brand)
                             AND {_PART.format("p", "p.metadata ->> 'mpn'")} = g.part
              JOIN product_items i ON i.product_id = p.id
             WHERE g.gtin IS NULL
             ORDER BY g.part, i.item
        )
        INSERT INTO own_prices (item, name, price, currency)
        SELECT DISTINCT ON (item) item, name, price, currency
          FROM (SELECT coalesce('gtin:' || ltrim(g.gtin, '0'), p.item, g.part) AS item,
                       g.name, g.price, g.currency, g.line
                  FROM given g LEFT JOIN parts p ON p.part = g.part) AS lines
         ORDER BY item, line DESC
        """,
        _OWN.values(prices),
    )


@dataclass(frozen=True, slots=True)
class OwnListing:
    """The own price of an item."""

    price: Decimal
    currency: str
    name: str | None


async def select_own_prices(connection: Connection, items: Sequence[str]) -> dict[str, OwnListing]:
    """The listings of the installation's own shop, by item."""
    rows = await Tuples(connection).all(
        "SELECT item, price, currency, name FROM own_prices WHERE item = ANY(%s)", (list(items),)
    )
    return {item: OwnListing(price, currency, name) for item, price, currency, name in rows}


# --- items ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemOffer:
    """An offer of an item."""

    item: str
    product_id: int
    url: str
    domain: str
    name: str
    brand: str | None
    category: str | None
    price: Decimal | None
    currency: str | None
    availability: str | None
    matched_by: str | None
    # that the page states: 0.5 kg
    quantity: str | None
    price_changed_at: datetime | None
    last_seen_at: datetime


async def select_offers(
    connection: Connection, items: Sequence[str], *, limit: int
) -> list[ItemOffer]:
    """The offers of items, up to a limit for each."""
    return await Rows(connection, ItemOffer).all(
        """
        SELECT item, product_id, url, domain, name, brand, category, price, currency, availability,
               matched_by, quantity, price_changed_at, last_seen_at
          FROM (SELECT i.item, p.id AS product_id, p.url, d.domain_name AS domain,
                       p.product_name AS name, p.brand, p.category, p.price, p.currency,
                       p.availability, i.matched_by, p.metadata ->> 'quantity' AS quantity,
                       p.price_changed_at, p.last_seen_at,
                       row_number() OVER (PARTITION BY i.item ORDER BY p.id) AS place
                  FROM product_items i
                  JOIN products p ON p.id = i.product_id
                  JOIN domains d ON d.id = p.domain_id
                 WHERE i.item = ANY(%(items)s)) AS found
         WHERE place <= %(limit)s
         ORDER BY item, product_id
        """,
        {"items": list(items), "limit": limit},
    )


async def select_items(
    connection: Connection,
    conditions: LiteralString,
    values: dict[str, Any],
    *,
    min_shops: int,
    out_of_stock: bool,
    undercut: bool,
    after: tuple[int, str] | None,
    limit: int,
) -> list[tuple[str, int]]:
    """Keys and numbers of shops of items with an offer that matches; those in most shops first."""
    return await Tuples(connection).all(
        f"""
        WITH found AS (
            SELECT i.item, count(DISTINCT p.domain_id)::int AS shops
              FROM product_items i
              JOIN products p ON p.id = i.product_id
              LEFT JOIN own_prices o ON o.item = i.item AND o.currency = p.currency
             GROUP BY i.item
            HAVING bool_or({conditions})
               AND (NOT %(gone)s OR bool_and(p.availability IN ('out_of_stock', 'discontinued'))
                                    IS TRUE)
               AND (NOT %(undercut)s
                    OR bool_or(p.price < o.price AND coalesce(
                        p.availability NOT IN ('out_of_stock', 'discontinued'), true)))
        )
        SELECT item, shops
          FROM found
         WHERE shops >= %(min_shops)s
           AND (%(after_shops)s::int IS NULL
                OR (-shops, item) > (-%(after_shops)s::int, %(after_item)s))
         ORDER BY -shops, item
         LIMIT %(limit)s
        """,
        {
            **values,
            "gone": out_of_stock,
            "undercut": undercut,
            "min_shops": min_shops,
            "after_shops": after[0] if after else None,
            "after_item": after[1] if after else None,
            "limit": limit,
        },
    )


async def select_item_of(connection: Connection, product_id: int) -> str:
    """The item of a product."""
    return await Values(connection, str).one(
        "SELECT item FROM product_items WHERE product_id = %s", (product_id,)
    )


async def select_key(connection: Connection, item: str) -> str | None:
    """The item as it is stored, if any product has it."""
    return await Values(connection, str).first(
        "SELECT item FROM product_items WHERE item = %s LIMIT 1", (item,)
    )


async def assign_items(connection: Connection, product_ids: Sequence[int], item: str) -> None:
    """Assign products to an item by hand, which the matching does not change."""
    await connection.execute(
        """
        INSERT INTO item_assignments (product_id, item)
        SELECT id, %(item)s FROM products WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE
            ON CONFLICT (product_id) DO UPDATE SET item = excluded.item, assigned_at = now()
        """,
        {"ids": list(product_ids), "item": item},
    )


@dataclass(frozen=True, slots=True)
class ItemSuggestion:
    """Two offers of different shops with the same words in brand and name, and no common item."""

    product_id: int
    name: str
    domain: str
    other_id: int
    other_name: str
    other_domain: str


# offers with the same words that each one is compared with: a shop may give many one name
COMPARED = 20


async def select_suggestions(
    connection: Connection, *, after: int, limit: int
) -> list[ItemSuggestion]:
    """Pairs of offers that may be one item; offers that a user assigned are left out.

    The first of a pair has no code if the other one has, so that linking it takes no offer out of
    an item. `after` is the higher ID of the last pair.
    """
    return await Rows(connection, ItemSuggestion).all(
        """
        WITH named AS MATERIALIZED (
            SELECT i.item, i.matched_by, p.id, p.domain_id, p.gtin,
                   (SELECT string_agg(DISTINCT word, ' ' ORDER BY word)
                      FROM regexp_split_to_table(
                               lower(concat_ws(' ', p.brand, p.product_name)), '[^[:alnum:]]+')
                           AS word
                     WHERE word <> '') AS words
              FROM product_items i JOIN products p ON p.id = i.product_id
        ), first AS MATERIALIZED (
            SELECT *, row_number() OVER (PARTITION BY words ORDER BY id) AS place FROM named
        ), pairs AS (
            SELECT DISTINCT ON (a.id)
                   a.id AS higher_id, b.id AS lower_id,
                   a.matched_by IS NOT NULL AND b.matched_by IS NULL AS lower_first
              FROM named a
              JOIN first b
                ON b.words = a.words AND b.place <= %(compared)s AND b.id < a.id
               AND b.item <> a.item AND b.domain_id <> a.domain_id
               AND b.matched_by IS DISTINCT FROM 'user'
               AND (a.gtin IS NULL OR b.gtin IS NULL)
             WHERE a.words LIKE '%% %%' AND a.matched_by IS DISTINCT FROM 'user'
               AND a.id > %(after)s
             ORDER BY a.id, b.id
             LIMIT %(limit)s
        )
        SELECT one.id AS product_id, one.product_name AS name, d.domain_name AS domain,
               other.id AS other_id, other.product_name AS other_name,
               od.domain_name AS other_domain
          FROM pairs
          JOIN products one ON one.id = CASE WHEN lower_first THEN lower_id ELSE higher_id END
          JOIN products other ON other.id = CASE WHEN lower_first THEN higher_id ELSE lower_id END
          JOIN domains d ON d.id = one.domain_id
          JOIN domains od ON od.id = other.domain_id
         ORDER BY higher_id
        """,
        {"after": after, "limit": limit, "compared": COMPARED},
    )


# --- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemNumbers:
    """Numbers about all items."""

    total: int
    in_several_shops: int
    out_of_stock_everywhere: int
    with_own_price: int
    undercut: int
    # shops that sell an item of the price list, and those of them below the own price
    shops_compared: int
    shops_below: int


async def select_numbers(connection: Connection) -> ItemNumbers:
    """Totals over all items."""
    return await Rows(connection, ItemNumbers).one(
        """
        WITH shops AS (
            SELECT i.item, p.domain_id, min(p.price) FILTER (WHERE b.buyable) AS price,
                   bool_or(b.buyable) AS buyable, min(o.price) AS own
              FROM product_items i
              JOIN products p ON p.id = i.product_id
             CROSS JOIN LATERAL (
                SELECT coalesce(p.availability NOT IN ('out_of_stock', 'discontinued'), true)
                       AS buyable
             ) AS b
              LEFT JOIN own_prices o ON o.item = i.item AND o.currency = p.currency
             GROUP BY i.item, p.domain_id
        ), found AS (
            SELECT item, count(*) AS shops, bool_or(buyable) AS buyable,
                   count(own) > 0 AS has_own,
                   count(*) FILTER (WHERE own IS NOT NULL AND price IS NOT NULL) AS compared,
                   count(*) FILTER (WHERE price < own) AS below
              FROM shops
             GROUP BY item
        )
        SELECT count(*) AS total,
               count(*) FILTER (WHERE shops > 1) AS in_several_shops,
               count(*) FILTER (WHERE NOT buyable) AS out_of_stock_everywhere,
               count(*) FILTER (WHERE has_own) AS with_own_price,
               count(*) FILTER (WHERE below > 0) AS undercut,
               coalesce(sum(compared), 0)::bigint AS shops_compared,
               coalesce(sum(below), 0)::bigint AS shops_below
          FROM found
        """
    )


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """The price level of a category at the end of a day; 100 on the first day."""

    category: str | None
    day: date
    value: float
    # products with a price on both days
    products: int


async def select_first_day(connection: Connection) -> date | None:
    """The first day of any price history."""
    return await Values(connection).first(
        "SELECT (min(recorded_at) AT TIME ZONE 'UTC')::date FROM price_history"
    )


async def select_price_index(
    connection: Connection,
    conditions: LiteralString,
    values: dict[str, Any],
    *,
    since: date,
    step: int,
) -> list[IndexPoint]:
    """The geometric mean of price relatives, by the first step of the category."""
    return await Rows(connection, IndexPoint).all(
        f"""
        WITH days AS (
            SELECT day::date
              FROM generate_series(%(since)s::date, (now() AT TIME ZONE 'UTC')::date,
                                   make_interval(days => %(step)s)) AS day
        ), chosen AS MATERIALIZED (
            SELECT p.id, p.currency, split_part(p.category, ' > ', 1) AS category
              FROM products p
             WHERE {conditions}
        ), base AS MATERIALIZED (
            SELECT c.id, c.category, c.currency, first.price
              FROM chosen c
             CROSS JOIN LATERAL (
                SELECT h.price
                  FROM price_history h
                 WHERE h.product_id = c.id AND h.currency = c.currency AND h.price > 0
                   AND h.recorded_at < %(since)s::date + 1
                 ORDER BY h.recorded_at DESC, h.id DESC
                 LIMIT 1
             ) AS first
        )
        SELECT b.category, d.day,
               round((100 * exp(avg(ln(now.price / b.price))))::numeric, 2)::float8 AS value,
               count(*) AS products
          FROM days d
         CROSS JOIN base b
         CROSS JOIN LATERAL (
            SELECT h.price
              FROM price_history h
             WHERE h.product_id = b.id AND h.currency = b.currency AND h.price > 0
               AND h.recorded_at < d.day + 1
             ORDER BY h.recorded_at DESC, h.id DESC
             LIMIT 1
         ) AS now
         GROUP BY b.category, d.day
         ORDER BY b.category NULLS LAST, d.day
        """,
        {**values, "since": since, "step": step},
    )
