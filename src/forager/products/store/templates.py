"""SQL of price templates: where the pages of a domain show their price."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Connection
from forager.db.rows import Rows


@dataclass(frozen=True, slots=True)
class ShownPrice:
    """The price of a page whose data states one, and where it is shown (empty: nowhere)."""

    price: str | None
    place: str
    # of the price, such as json-ld:Product
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class PriceTemplate:
    """The path to the price, and whether it wins over structured data."""

    path: str
    shown_wins: bool = False
    decided_at: datetime | None = None
    checked_at: datetime | None = None


# rows of a domain that are read to find those with a place
_MAX_SCANNED = 1_000


async def select_shown_prices(
    connection: Connection, domain_id: int, *, limit: int
) -> list[ShownPrice]:
    """The latest extractions of a domain for which a place was searched."""
    return await Rows(connection, ShownPrice).all(
        """
        SELECT price, place, origin
          FROM (SELECT id, fields ->> 'price' AS price, evidence -> 'price' ->> 'place' AS place,
                       evidence -> 'price' ->> 'origin' AS origin
                  FROM extractions
                 WHERE domain_id = %s AND role = 'active'
                 ORDER BY id DESC
                 LIMIT %s) AS recent
         WHERE place IS NOT NULL
         ORDER BY id DESC
         LIMIT %s
        """,
        (domain_id, _MAX_SCANNED, limit),
    )


async def select_template(connection: Connection, domain_id: int) -> PriceTemplate | None:
    """The place of prices that was learned for a domain."""
    return await Rows(connection, PriceTemplate).first(
        """
        SELECT path, shown_wins, decided_at, checked_at FROM price_templates WHERE domain_id = %s
        """,
        (domain_id,),
    )


async def save_template(connection: Connection, domain_id: int, template: PriceTemplate) -> None:
    """Remember a decision, unless the domain was deleted; one that stands is marked as checked."""
    await connection.execute(
        """
        INSERT INTO price_templates AS t (domain_id, path, shown_wins)
        SELECT id, %(path)s, %(wins)s FROM domains WHERE id = %(domain)s FOR KEY SHARE
            ON CONFLICT (domain_id) DO UPDATE
           SET path = excluded.path, shown_wins = excluded.shown_wins, checked_at = now(),
               decided_at = CASE WHEN (t.path, t.shown_wins) = (excluded.path, excluded.shown_wins)
                                 THEN t.decided_at ELSE now() END
        """,
        {"domain": domain_id, "path": template.path, "wins": template.shown_wins},
    )


async def delete_template(connection: Connection, domain_id: int) -> None:
    """Forget the place of prices of a domain."""
    await connection.execute("DELETE FROM price_templates WHERE domain_id = %s", (domain_id,))
