"""Queries for the state of the database, to compare it with the expected outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from psycopg.rows import class_row, scalar_row

from forager.archive.segment import ArchiveRef
from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The counters of a crawl, and the numbers of its rows."""

    job_id: UUID
    status: str
    ledger: list[int]
    rows: list[int]
    twice: int


async def select_unbalanced(connection: Connection) -> list[LedgerRow]:
    """Crawls whose ledger differs from their rows.

    In order: discovered, pending, fetched, unchanged, duplicate, failed, excluded.
    """
    cursor = connection.cursor(row_factory=class_row(LedgerRow))
    await cursor.execute(
        """
        WITH settled AS (
            SELECT job_id, count(*) AS discovered,
                   count(*) FILTER (WHERE outcome = 'fetched') AS fetched,
                   count(*) FILTER (WHERE outcome = 'unchanged') AS unchanged,
                   count(*) FILTER (WHERE outcome = 'duplicate') AS duplicate,
                   count(*) FILTER (WHERE outcome = 'failed') AS failed,
                   count(*) FILTER (WHERE outcome = 'excluded') AS excluded
              FROM crawl_visited GROUP BY job_id
        ), pending AS (
            SELECT job_id, count(*) AS pending, count(DISTINCT url_hash) AS urls
              FROM crawl_frontier GROUP BY job_id
        ), looked AS (
            SELECT j.id AS job_id, j.status::text,
                   ARRAY[s.discovered, s.total_pending, s.fetched, s.unchanged, s.duplicate,
                         s.failed, s.excluded] AS ledger,
                   ARRAY[coalesce(v.discovered, 0) + coalesce(f.pending, 0),
                         coalesce(f.urls, 0), coalesce(v.fetched, 0), coalesce(v.unchanged, 0),
                         coalesce(v.duplicate, 0), coalesce(v.failed, 0), coalesce(v.excluded, 0)]
                       AS rows,
                   (SELECT count(*) FROM crawl_frontier f JOIN crawl_visited v
                     USING (job_id, url_hash) WHERE f.job_id = j.id) AS twice
              FROM crawl_jobs j
              JOIN crawl_states s ON s.job_id = j.id AND s.discovered IS NOT NULL
              LEFT JOIN settled v ON v.job_id = j.id
              LEFT JOIN pending f ON f.job_id = j.id
             WHERE j.status <> 'cancelled'
        )
        SELECT * FROM looked WHERE ledger <> rows OR twice > 0
        """
    )
    return await cursor.fetchall()


async def select_bad_publications(connection: Connection) -> list[str]:
    """Sources of which readers do not see exactly one complete generation."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT concat_ws(' ', s.id, 'points at', s.published_generation, 'while',
                         array_agg(g.id)::text, 'are published')
          FROM sources s LEFT JOIN generations g ON g.source_id = s.id AND g.state = 'published'
         GROUP BY s.id
        HAVING array_agg(g.id) IS DISTINCT FROM ARRAY[s.published_generation]
        UNION ALL
        SELECT concat_ws(' ', 'generation', g.id, 'of', g.source_id, 'has', g.pages,
                         'pages and', count(m.url_hash), 'in its manifest,', count(d.id), 'there')
          FROM generations g
          LEFT JOIN generation_documents m ON m.generation_id = g.id
          LEFT JOIN documents d ON d.id = m.document_id
         WHERE g.state = 'published'
         GROUP BY g.id
        HAVING count(m.url_hash) <> g.pages OR count(d.id) <> g.pages
            OR g.added + g.changed + g.unchanged + g.carried_over <> g.pages
        UNION ALL
        SELECT concat_ws(' ', 'generation', g.id, 'of', g.source_id, 'changed after it was shown')
          FROM chaos.manifests shown
          JOIN generations g ON g.id = shown.generation_id AND g.state IN ('published', 'retired')
         WHERE shown.documents IS DISTINCT FROM (
                SELECT array_agg(m.document_id ORDER BY m.document_id)
                  FROM generation_documents m WHERE m.generation_id = g.id)
        """
    )
    return await cursor.fetchall()


async def select_old_writes(connection: Connection, after: int) -> list[tuple[int, str]]:
    """Writes under a lease that was not current."""
    cursor = await connection.execute(
        """
        SELECT id, concat_ws(' ', what, 'of', job_id, 'written with lease', lease, 'while', held,
                             'was current')
          FROM chaos.commits WHERE id > %s AND lease <> held ORDER BY id
        """,
        (after,),
    )
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def count_nameless_writes(connection: Connection) -> int:
    """Commits of runners that did not set their lease, and could not be checked."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT count(*) FROM chaos.commits WHERE what = 'batch' AND lease IS NULL"
    )
    return await cursor.fetchone() or 0


async def select_spent_retries(connection: Connection) -> list[str]:
    """Retries of crawls that shared their runner, with all causes in their history."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT concat_ws(' ', job_id, 'shared its runner and spent', count(*), 'retries:',
                         (SELECT string_agg(DISTINCT e.reason, '; ') FROM job_events e
                           WHERE e.job_id = c.job_id AND e.move = 'fail'))
          FROM chaos.commits c WHERE what = 'retry' GROUP BY job_id
        """
    )
    return await cursor.fetchall()


async def select_broken_attempts(connection: Connection) -> list[str]:
    """Attempts that were settled twice, or did not write exactly one extraction."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT concat_ws(' ', 'task', task_id, stage, 'under lease', lease, 'ended', count(*),
                         'times')
          FROM task_attempts GROUP BY task_id, stage, lease HAVING count(*) > 1
        UNION ALL
        SELECT concat_ws(' ', 'task', a.task_id, 'was parsed', a.parsed, 'times, with',
                         coalesce(e.made, 0), 'extractions')
          FROM (SELECT task_id, count(*) AS parsed FROM task_attempts
                 WHERE stage = 'parse' AND outcome = 'ok' GROUP BY task_id) AS a
          LEFT JOIN (SELECT task_id, count(*) AS made FROM extractions
                      WHERE role = 'active' AND outcome IN ('ok', 'suspect') GROUP BY task_id) AS e
         USING (task_id)
         WHERE a.parsed <> coalesce(e.made, 0)
        UNION ALL
        SELECT concat_ws(' ', 'product', p.id, 'has', count(*), 'entries in its history, and',
                         (SELECT count(*) FROM catalog_events e WHERE e.product_id = p.id),
                         'events')
          FROM products p JOIN price_history h ON h.product_id = p.id
         GROUP BY p.id
        HAVING count(*) <> (SELECT count(*) FROM catalog_events e WHERE e.product_id = p.id)
        """
    )
    return await cursor.fetchall()


async def select_prices(connection: Connection) -> list[tuple[str, Decimal]]:
    """All prices of all products, in the order of their histories."""
    cursor = await connection.execute(
        """
        SELECT p.url, h.price FROM price_history h JOIN products p ON p.id = h.product_id
         ORDER BY p.id, h.id
        """
    )
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def select_events(connection: Connection) -> set[int]:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT id FROM catalog_events")
    return set(await cursor.fetchall())


@dataclass(frozen=True, slots=True)
class JobRow:
    id: UUID
    source_id: str
    status: str
    agent: str
    worker_id: UUID | None
    error: str | None


async def select_jobs(connection: Connection) -> list[JobRow]:
    cursor = connection.cursor(row_factory=class_row(JobRow))
    await cursor.execute(
        """
        SELECT id, source_id, status::text, payload ->> 'user_agent' AS agent, worker_id,
               error_message AS error
          FROM crawl_jobs WHERE kind = 'crawl' ORDER BY created_at
        """
    )
    return await cursor.fetchall()


async def select_jobs_of(connection: Connection, worker_id: UUID) -> list[UUID]:
    """The jobs that a worker runs."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT id FROM crawl_jobs WHERE worker_id = %s", (worker_id,))
    return await cursor.fetchall()


async def select_outcomes(connection: Connection, job_id: UUID) -> list[tuple[str, str]]:
    """URL and outcome, as `page` or `failed:http_404`."""
    cursor = await connection.execute(
        """
        SELECT url, CASE WHEN outcome IN ('fetched', 'unchanged') THEN 'page'
                         ELSE concat_ws(':', outcome, reason) END
          FROM crawl_visited WHERE job_id = %s
        """,
        (job_id,),
    )
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def count_stale_tasks(connection: Connection, since: datetime) -> int:
    """Tasks that were not completed by a visit that began after a moment."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT count(*) FROM crawl_tasks
         WHERE completed_at IS NULL OR started_at < %s OR completed_at < started_at
        """,
        (since,),
    )
    return await cursor.fetchone() or 0


async def count_unsettled(connection: Connection) -> int:
    """Claimed tasks, and messages that are not sent yet."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT (SELECT count(*) FROM crawl_tasks WHERE worker_id IS NOT NULL)
             + (SELECT count(*) FROM outbox WHERE sent_at IS NULL)
        """
    )
    return await cursor.fetchone() or 0


async def select_now(connection: Connection) -> datetime:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT clock_timestamp()")
    now: datetime | None = await cursor.fetchone()
    assert now is not None
    return now


async def select_commits(
    connection: Connection, after: int = 0
) -> list[tuple[int, datetime, UUID | None, str]]:
    cursor = await connection.execute(
        "SELECT id, at, job_id, what FROM chaos.commits WHERE id > %s ORDER BY at", (after,)
    )
    return [(row[0], row[1], row[2], row[3]) for row in await cursor.fetchall()]


async def select_archive_refs(connection: Connection) -> list[ArchiveRef]:
    """All records of the archive that rows refer to."""
    cursor = await connection.execute(
        """
        SELECT segment, segment_offset, segment_length FROM crawl_visited
         WHERE segment IS NOT NULL
         UNION SELECT segment, segment_offset, segment_length FROM generation_documents
         WHERE segment IS NOT NULL
         UNION SELECT segment, segment_offset, segment_length FROM crawl_tasks
         WHERE segment IS NOT NULL
         UNION SELECT segment, segment_offset, segment_length FROM extractions
         WHERE segment IS NOT NULL
        """
    )
    return [ArchiveRef(*row) for row in await cursor.fetchall()]


async def select_last_commit(connection: Connection) -> int:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT max(id) FROM chaos.commits")
    return await cursor.fetchone() or 0


async def select_manifests(connection: Connection, source_id: str) -> list[list[int]]:
    """The documents of all generations of a source that were ever published."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT documents FROM chaos.manifests WHERE source_id = %s", (source_id,))
    return await cursor.fetchall()


async def count_misdated(connection: Connection, begun: datetime) -> int:
    """Rows with a timestamp outside this run, taken from a changed clock."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        WITH times AS (
            SELECT fetched_at AS at FROM generation_documents
            UNION ALL SELECT settled_at FROM crawl_visited
            UNION ALL SELECT finished_at FROM task_attempts
            UNION ALL SELECT started_at FROM task_attempts WHERE started_at IS NOT NULL
            UNION ALL SELECT last_seen_at FROM products
            UNION ALL SELECT recorded_at FROM price_history
            UNION ALL SELECT occurred_at FROM catalog_events
            UNION ALL SELECT last_seen FROM workers
            UNION ALL SELECT fetched_at FROM robots_files
        )
        SELECT count(*) FROM times
         WHERE at NOT BETWEEN %s - interval '1 minute' AND clock_timestamp() + interval '1 minute'
        """,
        (begun,),
    )
    return await cursor.fetchone() or 0


async def terminate_sessions(connection: Connection, share: float) -> int:
    """Terminate some sessions of Forager's processes; return their number."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT count(pg_terminate_backend(pid))
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()
           AND application_name LIKE 'forager %%' AND application_name <> 'forager chaos'
           AND random() < %s
        """,
        (share,),
    )
    return await cursor.fetchone() or 0
