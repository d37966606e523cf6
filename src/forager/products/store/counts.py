"""SQL that counts products: in total, and by common values."""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples


@dataclass(frozen=True, slots=True)
class CatalogCounts:
    """Numbers of the catalog, and what changed today."""

    products: int
    priced: int
    with_problems: int
    domains: int
    added_today: int
    changed_today: int
    price_changes_today: int
    unseen_for_a_week: int


async def select_counts(connection: Connection) -> CatalogCounts:
    """Read the table once; counting domains in the same pass would sort it."""
    return await Rows(connection, CatalogCounts).one(
        """
        SELECT count(*) AS products,
               count(price) AS priced,
               (SELECT count(*) FROM products WHERE problems <> '[]') AS with_problems,
               (SELECT count(*) FROM domains d
                 WHERE EXISTS (SELECT FROM products p WHERE p.domain_id = d.id)) AS domains,
               count(*) FILTER (WHERE created_at > now() - interval '1 day') AS added_today,
               count(*) FILTER (WHERE updated_at > now() - interval '1 day'
                                  AND updated_at > created_at) AS changed_today,
               count(*) FILTER (WHERE price_changed_at > now() - interval '1 day')
                   AS price_changes_today,
               count(*) FILTER (WHERE last_seen_at < now() - interval '7 days')
                   AS unseen_for_a_week
          FROM products
        """
    )


@dataclass(frozen=True, slots=True)
class ValueShare:
    """How many products have a value in a column."""

    column: str
    value: str | None
    products: int


async def count_shares(connection: Connection) -> list[ValueShare]:
    """Products by availability, currency and domain, in one pass over the table."""
    return await Rows(connection, ValueShare).all(
        """
        SELECT g.kind AS column,
               CASE g.kind WHEN 'availability' THEN g.availability
                           WHEN 'currency' THEN g.currency
                           ELSE d.domain_name END AS value,
               g.products
          FROM (SELECT CASE WHEN grouping(availability) = 0 THEN 'availability'
                            WHEN grouping(currency) = 0 THEN 'currency'
                            ELSE 'domain' END AS kind,
                       availability, currency, domain_id, count(*) AS products
                  FROM products
                 GROUP BY GROUPING SETS ((availability), (currency), (domain_id))) g
          LEFT JOIN domains d ON d.id = g.domain_id
         ORDER BY g.products DESC, value
        """
    )


async def count_currencies(connection: Connection) -> list[tuple[str, int]]:
    """The currencies of prices with their products, the most common first."""
    return await Tuples(connection).all(
        """
        SELECT currency, count(*)
          FROM products
         WHERE currency IS NOT NULL AND price IS NOT NULL
         GROUP BY currency
         ORDER BY 2 DESC, 1
        """
    )


async def count_by_rule(connection: Connection) -> list[tuple[str, str, int]]:
    """The number of products that violate each rule."""
    return await Tuples(connection).all(
        """
        SELECT problem->>'field', problem->>'rule', count(*)
          FROM products, jsonb_array_elements(problems) AS problem
         WHERE problems <> '[]'
         GROUP BY 1, 2
         ORDER BY 3 DESC, 1, 2
         LIMIT 100
        """
    )
