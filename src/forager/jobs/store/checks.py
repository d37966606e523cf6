"""Jobs that make no progress. SQL only."""

from __future__ import annotations

from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Tuples, Values


async def select_still_jobs(
    connection: Connection, *, still_for: float
) -> list[tuple[UUID, float]]:
    """Jobs whose lease is renewed while they commit nothing, and for how many seconds."""
    return await Tuples(connection).all(
        """
        SELECT j.id,
               extract(epoch FROM now()
                       - greatest(s.updated_at, claimed.at, j.started_at))::float8 AS seconds
          FROM crawl_jobs j
          LEFT JOIN crawl_states s ON s.job_id = j.id
          LEFT JOIN LATERAL (
               SELECT e.at FROM job_events e WHERE e.job_id = j.id ORDER BY e.id DESC LIMIT 1
          ) AS claimed ON true
         WHERE j.worker_id IS NOT NULL AND j.status = 'processing'
           AND greatest(s.updated_at, claimed.at, j.started_at)
               < now() - %s * interval '1 second'
         ORDER BY seconds DESC
         LIMIT 100
        """,
        (still_for,),
    )


async def select_oldest_due(connection: Connection) -> float | None:
    """Seconds for which the oldest pending job could have been running."""
    return await Values(connection).first(
        """
        SELECT extract(epoch FROM now() - min(run_after))::float8
          FROM crawl_jobs WHERE status = 'pending' AND run_after <= now()
        """
    )
