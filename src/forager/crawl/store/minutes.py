"""SQL of the counts of crawls that are stored once a minute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows

# a crawl without an earlier sample that ran longer than this was not watched before
WATCHED_SECONDS = 150


@dataclass(frozen=True, slots=True)
class CrawlMinute:
    """URLs of one crawl so far, at one time."""

    at: datetime
    discovered: int
    settled: int
    failed: int


@dataclass(frozen=True, slots=True)
class ThroughputMinute:
    """URLs that got their outcome in one minute, and those of them that failed."""

    at: datetime
    settled: int
    failed: int


async def insert_minute(connection: Connection) -> None:
    """Store the counts of crawls that committed since the last minute, unless they are stored."""
    await connection.execute(
        """
        INSERT INTO crawl_minutes (job_id, at, user_id, discovered, settled, failed,
                                   newly_settled, newly_failed)
        SELECT s.job_id, date_trunc('minute', now()), j.user_id, s.discovered, n.settled, s.failed,
               greatest(0, n.settled - coalesce(last.settled, n.unwatched)),
               greatest(0, s.failed - coalesce(last.failed, least(s.failed, n.unwatched)))
          FROM crawl_jobs j
          JOIN crawl_states s ON s.job_id = j.id
         CROSS JOIN LATERAL (
            SELECT s.fetched + s.unchanged + s.duplicate + s.failed + s.excluded AS settled,
                   CASE WHEN s.seconds > %(watched)s
                        THEN s.fetched + s.unchanged + s.duplicate + s.failed + s.excluded
                        ELSE 0
                   END AS unwatched
         ) AS n
          LEFT JOIN LATERAL (
            SELECT settled, failed
              FROM crawl_minutes
             WHERE job_id = s.job_id
             ORDER BY at DESC
             LIMIT 1
         ) AS last ON true
         WHERE s.discovered IS NOT NULL
           AND (j.status = 'processing'
                OR (j.status = 'paused' AND s.updated_at > now() - interval '150 seconds')
                OR (j.status IN ('completed', 'failed', 'cancelled')
                    AND j.completed_at > now() - interval '150 seconds'))
           AND n.settled IS DISTINCT FROM last.settled
        ON CONFLICT DO NOTHING
        """,
        {"watched": WATCHED_SECONDS},
    )


async def delete_minutes(connection: Connection, *, days: int) -> None:
    """Delete samples that are older than this number of days."""
    await connection.execute(
        "DELETE FROM crawl_minutes WHERE at < now() - %s * interval '1 day'", (days,)
    )


async def select_minutes(connection: Connection, job_id: UUID) -> list[CrawlMinute]:
    """The samples of a crawl, the oldest first."""
    return await Rows(connection, CrawlMinute).all(
        """
        SELECT at, discovered, settled, failed
          FROM crawl_minutes
         WHERE job_id = %s
         ORDER BY at
        """,
        (job_id,),
    )


async def select_throughput(
    connection: Connection, *, minutes: int, user_id: UUID | None
) -> list[ThroughputMinute]:
    """Each of the last minutes with samples; those of all owners unless one is given."""
    return await Rows(connection, ThroughputMinute).all(
        """
        SELECT at, sum(newly_settled)::bigint AS settled, sum(newly_failed)::bigint AS failed
          FROM crawl_minutes
         WHERE at > now() - %(minutes)s * interval '1 minute'
           AND (%(owner)s::uuid IS NULL OR user_id = %(owner)s)
         GROUP BY at
         ORDER BY at
        """,
        {"minutes": minutes, "owner": user_id},
    )
