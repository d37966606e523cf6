"""SQL of alert rules, and of the past offers that they compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.products.product import AlertRule
from forager.products.validation.plausibility import Offer

_RULES: LiteralString = """
    SELECT r.id, r.kind, r.percent, r.amount, r.currency, r.days, r.product_id,
           p.url AS product_url, r.selection, r.created_at, r.last_triggered_at
      FROM alert_rules r
      LEFT JOIN products p ON p.id = r.product_id
"""


async def insert_rule(
    connection: Connection, values: Mapping[str, Any], selection: Mapping[str, str]
) -> int | None:
    """The ID of the new rule; None if the same rule exists."""
    return await Values(connection).first(
        """
        INSERT INTO alert_rules (kind, percent, amount, currency, days, product_id, selection)
        VALUES (%(kind)s, %(percent)s, %(amount)s, %(currency)s, %(days)s, %(product_id)s,
                %(selection)s)
            ON CONFLICT DO NOTHING
        RETURNING id
        """,
        {**values, "selection": Jsonb(dict(selection))},
    )


async def count_selections(connection: Connection) -> int:
    """The number of rules that are not for one product."""
    return await Values(connection, int).one(
        "SELECT count(*) FROM alert_rules WHERE product_id IS NULL"
    )


async def select_rule(connection: Connection, rule_id: int) -> AlertRule | None:
    """An alert rule by its ID."""
    return await Rows(connection, AlertRule).first(f"{_RULES} WHERE r.id = %s", (rule_id,))


async def select_rules(connection: Connection, *, after: int, limit: int) -> list[AlertRule]:
    """Alert rules by ID, after one."""
    return await Rows(connection, AlertRule).all(
        f"{_RULES} WHERE r.id > %s ORDER BY r.id LIMIT %s", (after, limit)
    )


async def select_rules_for(connection: Connection, product_ids: Sequence[int]) -> list[AlertRule]:
    """The rules of these products, and all rules with a selection."""
    return await Rows(connection, AlertRule).all(
        f"{_RULES} WHERE r.product_id IS NULL OR r.product_id = ANY(%s) ORDER BY r.id",
        (list(product_ids),),
    )


async def update_rule(connection: Connection, rule_id: int, values: Mapping[str, Any]) -> bool:
    """Change a rule; False if another one is equal then."""
    return await Values(connection).changed(
        """
        UPDATE alert_rules r
           SET percent = %(percent)s, amount = %(amount)s, currency = %(currency)s, days = %(days)s
         WHERE r.id = %(id)s
           AND NOT EXISTS (
            SELECT FROM alert_rules o
             WHERE o.id <> r.id AND o.product_id IS NOT DISTINCT FROM r.product_id
               AND o.kind = r.kind AND o.selection = r.selection
               AND (o.percent, o.amount, o.currency, o.days) IS NOT DISTINCT FROM
                   (%(percent)s::numeric(6, 3), %(amount)s::numeric(14, 4), %(currency)s::text,
                    %(days)s::int))
        """,
        {**values, "id": rule_id},
    )


async def mark_triggered(connection: Connection, rule_ids: Sequence[int]) -> None:
    """Remember the time, to the minute: batches that trigger the same rule do not wait."""
    await connection.execute(
        """
        UPDATE alert_rules SET last_triggered_at = now()
         WHERE id IN (SELECT id FROM alert_rules
                       WHERE id = ANY(%s)
                         AND coalesce(last_triggered_at < now() - interval '1 minute', true)
                         FOR UPDATE SKIP LOCKED)
        """,
        (list(rule_ids),),
    )


async def delete_rule(connection: Connection, rule_id: int) -> None:
    """Delete an alert rule."""
    await connection.execute("DELETE FROM alert_rules WHERE id = %s", (rule_id,))


@dataclass(frozen=True, slots=True)
class PastOffer:
    """The last known price and availability, and the range of prices by number of days."""

    product_id: int
    variant: str | None
    # in the currency of the new offer
    price: Decimal | None
    availability: str | None
    lowest: list[Decimal | None]
    highest: list[Decimal | None]


# a product, or a variant by its key
OfferKey = tuple[int, str | None]

# the histories of products and variants together: each part is read by its index
_HISTORY: LiteralString = """
    (SELECT id, product_id, NULL AS variant, price, currency, availability, recorded_at
       FROM price_history
      UNION ALL
     SELECT id, product_id, variant, price, currency, availability, recorded_at
       FROM variant_prices)
"""
_OF_OFFER: LiteralString = "{0}.product_id = c.id AND {0}.variant IS NOT DISTINCT FROM c.variant"


async def select_past_offers(
    connection: Connection, offers: Mapping[OfferKey, Offer], days: Sequence[int]
) -> dict[OfferKey, PastOffer]:
    """The past of products whose rows this transaction has locked, and of their variants.

    A price counts for a number of days if it was valid at any time within them.
    """
    found = await Rows(connection, PastOffer).all(
        f"""
        SELECT c.id AS product_id, c.variant,
               (SELECT h.price
                  FROM {_HISTORY} h
                 WHERE {_OF_OFFER.format("h")} AND h.price IS NOT NULL
                   AND h.currency IS NOT DISTINCT FROM c.currency
                 ORDER BY h.recorded_at DESC, h.id DESC
                 LIMIT 1) AS price,
               (SELECT h.availability
                  FROM {_HISTORY} h
                 WHERE {_OF_OFFER.format("h")} AND h.availability IS NOT NULL
                 ORDER BY h.recorded_at DESC, h.id DESC
                 LIMIT 1) AS availability,
               coalesce(span.lowest, '{{}}') AS lowest,
               coalesce(span.highest, '{{}}') AS highest
          FROM unnest(%(ids)s::bigint[], %(variants)s::text[], %(currencies)s::text[])
            AS c (id, variant, currency)
         CROSS JOIN LATERAL (
            SELECT array_agg(valid.lowest ORDER BY w.place) AS lowest,
                   array_agg(valid.highest ORDER BY w.place) AS highest
              FROM unnest(%(days)s::int[]) WITH ORDINALITY AS w (days, place)
             CROSS JOIN LATERAL (
                SELECT min(h.price) AS lowest, max(h.price) AS highest
                  FROM {_HISTORY} h
                 WHERE {_OF_OFFER.format("h")}
                   AND h.currency IS NOT DISTINCT FROM c.currency
                   -- from the offer on that was valid when the days began
                   AND h.recorded_at >= coalesce(
                       (SELECT max(o.recorded_at)
                          FROM {_HISTORY} o
                         WHERE {_OF_OFFER.format("o")}
                           AND o.recorded_at <= now() - make_interval(days => w.days)),
                       '-infinity')
             ) AS valid
         ) AS span
        """,
        {
            "ids": [product_id for product_id, _ in offers],
            "variants": [variant for _, variant in offers],
            "currencies": [offer.currency for offer in offers.values()],
            "days": list(days),
        },
    )
    return {(past.product_id, past.variant): past for past in found}
