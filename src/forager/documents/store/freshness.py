"""SQL on how fresh the published content is, and on the results of scheduled crawls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows


@dataclass(frozen=True, slots=True)
class Freshness:
    """Published sources, those whose refresh is late, and the pages that changed lately."""

    published: int
    overdue: int
    oldest: datetime | None
    refreshed: int
    added: int
    changed: int
    removed: int


async def select_freshness(
    connection: Connection, user_id: UUID | None, *, since: datetime, late: timedelta
) -> Freshness:
    """Pages of the generations published since a time; a refresh is overdue after `late`."""
    return await Rows(connection, Freshness).one(
        """
        WITH source AS MATERIALIZED (
            SELECT s.id, s.next_refresh_at, s.published_generation
              FROM sources s
             WHERE s.deleted_at IS NULL AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
        )
        SELECT count(s.published_generation) AS published,
               count(*) FILTER (WHERE s.next_refresh_at < now() - %(late)s::interval) AS overdue,
               min(g.published_at) AS oldest,
               count(*) FILTER (WHERE g.published_at >= %(since)s) AS refreshed,
               coalesce(sum(n.added), 0)::bigint AS added,
               coalesce(sum(n.changed), 0)::bigint AS changed,
               coalesce(sum(n.removed), 0)::bigint AS removed
          FROM source s
          LEFT JOIN generations g ON g.id = s.published_generation
          LEFT JOIN LATERAL (
            SELECT sum(each.added) AS added, sum(each.changed) AS changed,
                   sum(each.removed) AS removed
              FROM generations each
             WHERE each.source_id = s.id AND each.published_at >= %(since)s
         ) AS n ON true
        """,
        {"user_id": user_id, "since": since, "late": late},
    )


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """What one crawl of a source found, and whether it was published."""

    source_id: str
    number: int
    pages: int
    carried_over: int
    created_at: datetime
    published_at: datetime | None
    note: str | None


async def select_results(
    connection: Connection, source_ids: Sequence[str], *, limit: int
) -> list[GenerationResult]:
    """The last complete generations of each source, the oldest first."""
    return await Rows(connection, GenerationResult).all(
        """
        SELECT g.source_id, g.number, g.pages, g.carried_over, g.created_at, g.published_at, g.note
          FROM unnest(%(ids)s::text[]) AS s (id)
         CROSS JOIN LATERAL (
            SELECT * FROM generations
             WHERE source_id = s.id AND state IN ('published', 'retired')
             ORDER BY number DESC
             LIMIT %(limit)s
         ) AS g
         ORDER BY g.source_id, g.number
        """,
        {"ids": list(source_ids), "limit": limit},
    )


async def select_scheduled(
    connection: Connection, user_id: UUID | None, *, after: tuple[datetime, str] | None, limit: int
) -> list[tuple[str, datetime]]:
    """Sources with a schedule and the time of their next refresh, the next one first."""
    cursor = await connection.execute(
        """
        SELECT s.id, s.next_refresh_at
          FROM sources s
         WHERE s.next_refresh_at IS NOT NULL AND s.deleted_at IS NULL
           AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
           AND (%(at)s::timestamptz IS NULL OR (s.next_refresh_at, s.id) > (%(at)s, %(id)s))
         ORDER BY s.next_refresh_at, s.id
         LIMIT %(limit)s
        """,
        {"user_id": user_id, "at": after and after[0], "id": after and after[1], "limit": limit},
    )
    return await cursor.fetchall()
