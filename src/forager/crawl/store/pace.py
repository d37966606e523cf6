"""Statements that count settled URLs over time, from a sample where there are many.

The key of a URL is a hash, so the first so many URLs of a job in the order of their keys are a
fair sample of all of them, and the primary key finds them without reading the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from forager.db.database import Connection


async def sample_settled(
    connection: Connection, job_ids: Sequence[UUID], *, since: float, width: float, sample: int
) -> list[tuple[int, float, float, bool]]:
    """(number of the interval, URLs settled in it, of them failed, whether that is estimated).

    Intervals of `width` seconds are counted from `since`, which is in seconds of the epoch. Of each
    job at most `sample` URLs are read, and each stands for as many as were not.
    """
    cursor = await connection.execute(
        """
        SELECT floor((extract(epoch FROM v.settled_at) - %(since)s) / %(width)s)::int,
               sum(s.weight)::float8,
               coalesce(sum(s.weight) FILTER (WHERE v.outcome = 'failed'), 0)::float8,
               bool_or(s.weight > 1)
          FROM (
            SELECT job_id, greatest(1.0, settled / %(sample)s::float8) AS weight
              FROM (
                SELECT job_id, fetched + unchanged + duplicate + failed + excluded AS settled
                  FROM crawl_states
                 WHERE job_id = ANY(%(jobs)s) AND discovered IS NOT NULL
              ) AS totals
          ) AS s
         CROSS JOIN LATERAL (
            SELECT settled_at, outcome
              FROM crawl_visited
             WHERE crawl_visited.job_id = s.job_id
             ORDER BY url_hash
             LIMIT %(sample)s
         ) AS v
         WHERE v.settled_at >= to_timestamp(%(since)s)
         GROUP BY 1
        """,
        {"jobs": list(job_ids), "since": since, "width": width, "sample": sample},
    )
    return await cursor.fetchall()


async def sum_failures(connection: Connection, job_ids: Sequence[UUID]) -> list[tuple[str, int]]:
    """Failed URLs of these jobs by reason, the most frequent first."""
    cursor = await connection.execute(
        """
        SELECT reason.key, sum(reason.value::bigint)::bigint
          FROM crawl_states s
         CROSS JOIN LATERAL jsonb_each_text(s.reasons -> 'failed') AS reason
         WHERE s.job_id = ANY(%s)
         GROUP BY 1
         ORDER BY 2 DESC, 1
        """,
        (list(job_ids),),
    )
    return await cursor.fetchall()
