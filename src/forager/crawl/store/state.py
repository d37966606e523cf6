"""SQL of the state of a crawl, and of its removal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import RowArrays, Tuples, Values

if TYPE_CHECKING:
    from forager.crawl.reports.activity import ActivityReport


async def start_over(connection: Connection, job_id: UUID) -> None:
    """Begin the state of a crawl, without rows that a crawl whose state is lost has left."""
    await connection.execute("DELETE FROM crawl_frontier WHERE job_id = %s", (job_id,))
    await connection.execute("DELETE FROM crawl_visited WHERE job_id = %s", (job_id,))
    await connection.execute("DELETE FROM crawl_states WHERE job_id = %s", (job_id,))
    await connection.execute(
        "INSERT INTO crawl_states (job_id, discovered) VALUES (%s, 0)", (job_id,)
    )


async def update_state(connection: Connection, job_id: UUID, values: dict[str, Any]) -> None:
    """Write the ledger and where the crawl stands, by column; a constraint balances it."""
    columns = ", ".join(f"{name} = %({name})s" for name in values)
    await connection.execute(
        f"UPDATE crawl_states SET {columns}, updated_at = now() WHERE job_id = %(job_id)s",
        {
            **values,
            "job_id": job_id,
            "reasons": Jsonb(values["reasons"]),
            "checkpoint": Jsonb(values["checkpoint"]),
        },
    )


async def select_state(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """The state of a crawl at its last commit; None before the first."""
    return (await select_states(connection, [job_id])).get(job_id)


async def select_states(
    connection: Connection, job_ids: Sequence[UUID]
) -> dict[UUID, dict[str, Any]]:
    """The states of these crawls; crawls that have not started are left out."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(
        """
        SELECT s.job_id, s.discovered, s.fetched, s.unchanged, s.duplicate, s.failed, s.excluded,
               s.total_pending, s.current_depth, s.reasons, s.bytes_fetched, s.seconds, s.next_seq,
               s.checkpoint, s.waits_for, s.pace, s.updated_at, s.memory_mb,
               coalesce(s.log_lines, '[]') AS log_lines,
               extract(epoch FROM s.waits_until - now())::float8 AS waits_in,
               extract(epoch FROM j.run_after - now())::float8 AS starts_in,
               coalesce(s.reported_at > now() - interval '15 seconds', false) AS is_reported
          FROM crawl_states s
          JOIN crawl_jobs j ON j.id = s.job_id
         WHERE s.job_id = ANY(%s) AND s.discovered IS NOT NULL
        """,
        (list(job_ids),),
    )
    return {row["job_id"]: row for row in await cursor.fetchall()}


async def select_orphaned_jobs(connection: Connection) -> list[UUID]:
    """Jobs that are gone but left rows. Leaps from job to job through the keys: few are read."""
    return await Values(connection).all(
        """
        WITH RECURSIVE visited AS (
            (SELECT job_id FROM crawl_visited ORDER BY job_id LIMIT 1)
            UNION ALL
            SELECT (SELECT v.job_id FROM crawl_visited v
                     WHERE v.job_id > visited.job_id ORDER BY v.job_id LIMIT 1)
              FROM visited
             WHERE visited.job_id IS NOT NULL
        ), frontier AS (
            (SELECT job_id FROM crawl_frontier ORDER BY job_id LIMIT 1)
            UNION ALL
            SELECT (SELECT f.job_id FROM crawl_frontier f
                     WHERE f.job_id > frontier.job_id ORDER BY f.job_id LIMIT 1)
              FROM frontier
             WHERE frontier.job_id IS NOT NULL
        )
        SELECT job_id FROM (SELECT job_id FROM visited UNION SELECT job_id FROM frontier) AS known
         WHERE job_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM crawl_jobs WHERE crawl_jobs.id = known.job_id)
        """
    )


async def purge(connection: Connection, job_id: UUID, *, limit: int) -> int:
    """Delete some of a job's frontier and visited rows; they have no cascade. Zero: none left."""
    return await Values(connection, int).one(
        """
        WITH frontier AS (
            DELETE FROM crawl_frontier
             WHERE ctid IN (SELECT ctid FROM crawl_frontier WHERE job_id = %(job_id)s
                             LIMIT %(limit)s)
            RETURNING 1
        ), visited AS (
            DELETE FROM crawl_visited
             WHERE ctid IN (SELECT ctid FROM crawl_visited WHERE job_id = %(job_id)s
                             LIMIT %(limit)s)
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM frontier) + (SELECT count(*) FROM visited)
        """,
        {"job_id": job_id, "limit": limit},
    )


async def sample_settled(
    connection: Connection, job_ids: Sequence[UUID], *, since: float, width: float, sample: int
) -> list[tuple[int, float, float, bool]]:
    """(number of the interval, URLs settled in it, of them failed, whether that is estimated).

    Intervals of `width` seconds are counted from `since`, which is in seconds of the epoch. Of each
    job at most `sample` URLs are read, and each stands for as many as were not.
    """
    return await Tuples(connection).all(
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


async def sample_answers(
    connection: Connection, job_id: UUID, *, sample: int
) -> list[tuple[int | None, str | None, int, int | None, int | None]]:
    """(HTTP status, media type, URLs, median and 95th percentile of the milliseconds).

    A row has either a status or a type. At most `sample` URLs are read, in the order of their
    hashes.
    """
    return await Tuples(connection).all(
        """
        SELECT http_status, content_type, count(*),
               percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms),
               percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms)
          FROM (
            SELECT http_status, content_type, duration_ms
              FROM crawl_visited
             WHERE job_id = %s
             ORDER BY url_hash
             LIMIT %s
         ) AS v
         WHERE http_status IS NOT NULL
         GROUP BY GROUPING SETS ((http_status), (content_type))
        HAVING http_status IS NOT NULL OR content_type IS NOT NULL
         ORDER BY 3 DESC, 1, 2
        """,
        (job_id, sample),
    )


async def sum_failures(connection: Connection, job_ids: Sequence[UUID]) -> list[tuple[str, int]]:
    """Failed URLs of these jobs by reason, the most frequent first."""
    return await Tuples(connection).all(
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


_REPORTS = RowArrays(
    "r", job_id="uuid", lease="bigint", reason="text", seconds="float8", pace="float8",
    elapsed="float8", memory_mb="int", lines="text",
)  # fmt: skip


async def update_activity(connection: Connection, reports: Sequence[ActivityReport]) -> None:
    """Write what crawls wait for; nothing for a crawl whose lease belongs to another worker.

    Also their duration: a crawl that waits commits nothing, and may be killed. A row that is being
    committed is left out: the other crawls must not wait for it.
    """
    await connection.execute(
        f"""
        WITH free AS MATERIALIZED (
            SELECT job_id
              FROM crawl_states
             WHERE job_id = ANY(%(job_id)s::uuid[])
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE crawl_states s
           SET waits_for = r.reason,
               waits_until = now() + r.seconds * interval '1 second',
               pace = r.pace,
               seconds = greatest(s.seconds, r.elapsed),
               memory_mb = coalesce(r.memory_mb, s.memory_mb),
               log_lines = coalesce(r.lines::jsonb, s.log_lines),
               reported_at = now()
          FROM {_REPORTS}
          JOIN crawl_jobs j ON j.id = r.job_id AND j.lease = r.lease
          JOIN free ON free.job_id = r.job_id
         WHERE s.job_id = r.job_id
        """,
        _REPORTS.values(reports, job_id="lease.job_id", lease="lease.number"),
    )


async def try_lock_stalls(connection: Connection) -> bool:
    """Whether this transaction is the only one that reports stalled jobs."""
    return await Values(connection, bool).one(
        "SELECT pg_try_advisory_xact_lock(hashtext('stalled jobs'))"
    )


async def select_stalled(
    connection: Connection, job_ids: Sequence[UUID], *, seconds: float
) -> dict[UUID, datetime]:
    """When those of these jobs last committed that did not do so for some seconds."""
    return await Tuples(connection).as_dict(
        """
        SELECT job_id, updated_at
          FROM crawl_states
         WHERE job_id = ANY(%s) AND updated_at < now() - %s * interval '1 second'
        """,
        (list(job_ids), seconds),
    )
