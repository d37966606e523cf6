"""The SQL of the two stages: fencing commits, and moving tasks on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.db.database import Connection
from forager.db.rows import Rows, Values
from forager.tasks.lifecycle import (
    COMPLETE,
    FAIL,
    MISS,
    POSTPONE,
    RELEASE,
    RETRY_LATER,
    STORE_PAGE,
    WITHDRAW,
)
from forager.tasks.stages.attempt import Attempt, HeldTask, StageOfWorker
from forager.tasks.task import CHANNEL


async def lock_held(
    connection: Connection, who: StageOfWorker, tasks: Sequence[HeldTask]
) -> set[int]:
    """The fence: lock those of the tasks that are still ours, and tell which."""
    found = await Values(connection).all(
        """
        SELECT t.id
          FROM crawl_tasks t
          JOIN unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS mine (id, lease)
            ON t.id = mine.id AND t.lease = mine.lease
         WHERE t.worker_id = %(worker_id)s AND t.status = %(status)s
         ORDER BY t.id
           FOR NO KEY UPDATE OF t
        """,
        {
            "ids": [task.id for task in tasks],
            "leases": [task.lease for task in tasks],
            "worker_id": who.worker_id,
            "status": who.stage.status,
        },
    )
    return set(found)


async def mark_downloaded(
    connection: Connection,
    ids: Sequence[int],
    refs: Sequence[ArchiveRef],
    etags: Sequence[str | None],
    last_modified: Sequence[str | None],
) -> None:
    """The pages are in the archive. Their validators count once a parser has read them."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {STORE_PAGE.changes},
               segment = p.segment, segment_offset = p.start, segment_length = p.length,
               etag = p.etag, last_modified = p.modified, parser_version = NULL
          FROM unnest(
                   %s::bigint[], %s::text[], %s::bigint[], %s::int[], %s::text[], %s::text[]
               ) AS p (id, segment, start, length, etag, modified)
         WHERE t.id = p.id AND {STORE_PAGE.allowed}
        """,
        (
            list(ids),
            [ref.segment for ref in refs],
            [ref.offset for ref in refs],
            [ref.length for ref in refs],
            list(etags),
            list(last_modified),
        ),
    )


async def mark_read(
    connection: Connection, ids: Sequence[int], versions: Sequence[str | None]
) -> None:
    """Remember which parser read the archived page of each task."""
    await connection.execute(
        """
        UPDATE crawl_tasks t
           SET parser_version = r.version
          FROM unnest(%s::bigint[], %s::text[]) AS r (id, version)
         WHERE t.id = r.id
        """,
        (list(ids), list(versions)),
    )


async def set_needs_browser(connection: Connection, needs: Mapping[int, bool]) -> None:
    """Whether only workers that render may download these tasks from now on."""
    await connection.execute(
        """
        UPDATE crawl_tasks t
           SET needs_browser = n.needs
          FROM unnest(%s::bigint[], %s::boolean[]) AS n (id, needs)
         WHERE t.id = n.id AND t.needs_browser <> n.needs
        """,
        (list(needs), list(needs.values())),
    )


async def forget_validators(connection: Connection, task_ids: Sequence[int]) -> None:
    """Make the next downloads unconditional."""
    await connection.execute(
        """
        UPDATE crawl_tasks SET etag = NULL, last_modified = NULL
         WHERE id = ANY(%s) AND (etag IS NOT NULL OR last_modified IS NOT NULL)
        """,
        (list(task_ids),),
    )


async def postpone(connection: Connection, attempts: Sequence[Attempt], *, spend: bool) -> None:
    """Back to pending until later; `spend` a retry for each, and say why."""
    move = RETRY_LATER if spend else POSTPONE
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {move.changes},
               scheduled_at = now() + p.delay * interval '1 second',
               error_kind = CASE WHEN %(spend)s THEN p.kind ELSE t.error_kind END,
               error_message = CASE WHEN %(spend)s THEN p.message ELSE t.error_message END
          FROM unnest(%(ids)s::bigint[], %(delays)s::float8[], %(kinds)s::text[],
                      %(messages)s::text[]) AS p (id, delay, kind, message)
         WHERE t.id = p.id AND {move.allowed}
        """,
        {
            "spend": spend,
            "ids": [attempt.task.id for attempt in attempts],
            "delays": [attempt.delay for attempt in attempts],
            **_causes(attempts),
        },
    )


@dataclass(frozen=True, slots=True)
class FailingTask:
    """Since when and how often visits of a task have failed, this one not included."""

    failed_visits: int
    seconds: float
    # whether its page was read before
    was_read: bool


async def select_failing(connection: Connection, ids: Sequence[int]) -> dict[int, FailingTask]:
    cursor = await connection.execute(
        """
        SELECT id, failed_visits,
               coalesce(extract(epoch FROM now() - failing_since), 0)::float8,
               parser_version IS NOT NULL OR failed_visits > 0
          FROM crawl_tasks
         WHERE id = ANY(%s)
        """,
        (list(ids),),
    )
    return {row[0]: FailingTask(*row[1:]) for row in await cursor.fetchall()}


async def miss(
    connection: Connection,
    attempts: Sequence[Attempt],
    every: Mapping[int, timedelta],
    *,
    counts: bool,
) -> None:
    """Back to their interval, with the error; a visit that `counts` is one failed visit more."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {MISS.changes}, scheduled_at = now() + m.every, error_kind = m.kind,
               error_message = m.message, failed_visits = t.failed_visits + %(counts)s::int,
               failing_since = CASE WHEN %(counts)s THEN coalesce(t.failing_since, now())
                                    ELSE t.failing_since END
          FROM unnest(%(ids)s::bigint[], %(every)s::interval[], %(kinds)s::text[],
                      %(messages)s::text[]) AS m (id, every, kind, message)
         WHERE t.id = m.id AND {MISS.allowed}
        """,
        {
            "counts": counts,
            "ids": [attempt.task.id for attempt in attempts],
            "every": [every[attempt.task.id] for attempt in attempts],
            **_causes(attempts),
        },
    )


async def fail(connection: Connection, attempts: Sequence[Attempt]) -> None:
    """Fail tasks permanently: they are retried only on request."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {FAIL.changes}, error_kind = f.kind, error_message = f.message,
               failed_visits = t.failed_visits + 1,
               failing_since = coalesce(t.failing_since, now())
          FROM unnest(%(ids)s::bigint[], %(kinds)s::text[], %(messages)s::text[])
                   AS f (id, kind, message)
         WHERE t.id = f.id AND {FAIL.allowed}
        """,
        {"ids": [attempt.task.id for attempt in attempts], **_causes(attempts)},
    )


async def insert_attempts(
    connection: Connection, who: StageOfWorker, attempts: Sequence[Attempt]
) -> None:
    """The audit trail of one commit."""
    await connection.execute(
        """
        INSERT INTO task_attempts (
            task_id, domain_id, stage, lease, attempt, outcome, error_kind, error_message,
            http_status, final_url, proxy_id, worker_id, started_at, finished_at, duration_ms,
            size, segment, segment_offset, segment_length
        )
        SELECT a.task_id, a.domain_id, %(stage)s, a.lease, least(a.attempt, 32767), a.outcome,
               a.kind, a.message, a.http_status, a.final_url, a.proxy_id, %(worker_id)s,
               now() - a.duration_ms * interval '1 millisecond', now(), a.duration_ms,
               a.size, a.segment, a.start, a.length
          FROM unnest(
                   %(task_ids)s::bigint[], %(domain_ids)s::bigint[], %(leases)s::bigint[],
                   %(attempts)s::int[], %(outcomes)s::text[], %(kinds)s::text[],
                   %(messages)s::text[], %(statuses)s::smallint[], %(final_urls)s::text[],
                   %(proxy_ids)s::bigint[], %(durations)s::int[], %(sizes)s::int[],
                   %(segments)s::text[], %(starts)s::bigint[], %(lengths)s::int[]
               ) AS a (task_id, domain_id, lease, attempt, outcome, kind, message, http_status,
                       final_url, proxy_id, duration_ms, size, segment, start, length)
        """,
        {
            "stage": who.stage.value,
            "worker_id": who.worker_id,
            "task_ids": [attempt.task.id for attempt in attempts],
            "domain_ids": [attempt.task.domain_id for attempt in attempts],
            "leases": [attempt.task.lease for attempt in attempts],
            "attempts": [attempt.task.retry_count + 1 for attempt in attempts],
            "outcomes": [attempt.outcome.value for attempt in attempts],
            "statuses": [attempt.http_status for attempt in attempts],
            "final_urls": [attempt.final_url for attempt in attempts],
            "proxy_ids": [attempt.proxy_id for attempt in attempts],
            "durations": [attempt.duration_ms for attempt in attempts],
            "sizes": [attempt.size for attempt in attempts],
            "segments": [attempt.ref.segment if attempt.ref else None for attempt in attempts],
            "starts": [attempt.ref.offset if attempt.ref else None for attempt in attempts],
            "lengths": [attempt.ref.length if attempt.ref else None for attempt in attempts],
            **_causes(attempts),
        },
    )


async def select_held(connection: Connection, worker_id: UUID) -> dict[int, int]:
    """The leases of all tasks that a worker holds, by id."""
    cursor = await connection.execute(
        "SELECT id, lease FROM crawl_tasks WHERE worker_id = %s", (worker_id,)
    )
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def give_back(
    connection: Connection,
    worker_id: UUID,
    *,
    ids: Sequence[int] | None = None,
    stopped_only: bool = False,
    reason: str,
) -> list[int]:
    """Return tasks to where they were claimed from, without spending a retry; which ones.

    `ids`: only these; `stopped_only`: those that were stopped, which wait as pending.
    """
    move = WITHDRAW if stopped_only else RELEASE
    return await Values(connection).all(
        f"""
        WITH held AS (
            SELECT t.id, t.status, t.lease
              FROM crawl_tasks t
              JOIN domains d ON d.id = t.domain_id
             WHERE t.worker_id = %(worker_id)s
               AND (%(ids)s::bigint[] IS NULL OR t.id = ANY(%(ids)s))
               AND (NOT %(stopped_only)s OR 'stopped' IN (
                       t.hold, d.task_hold, (SELECT hold FROM task_control)
                   ))
             ORDER BY t.id
               FOR NO KEY UPDATE OF t
        ), given AS (
            UPDATE crawl_tasks t
               SET {move.changes}
              FROM held
             WHERE t.id = held.id AND {move.allowed}
            RETURNING t.id, t.domain_id, t.retry_count, t.started_at, held.status AS from_status,
                      held.lease AS held_lease
        ), logged AS (
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       error_message, worker_id, started_at)
            SELECT id, domain_id,
                   CASE from_status WHEN 'parsing' THEN 'parse' ELSE 'download' END,
                   held_lease, least(retry_count + 1, 32767), 'withdrawn', %(reason)s,
                   %(worker_id)s, started_at
              FROM given
        )
        SELECT id FROM given
        """,
        {
            "worker_id": worker_id,
            "ids": None if ids is None else list(ids),
            "stopped_only": stopped_only,
            "reason": reason,
        },
    )


async def notify(connection: Connection) -> None:
    """Wake the workers."""
    await connection.execute(f"NOTIFY {CHANNEL}")


def _causes(attempts: Sequence[Attempt]) -> dict[str, list[str | None]]:
    return {
        "kinds": [attempt.cause.kind.value if attempt.cause else None for attempt in attempts],
        "messages": [attempt.cause.message if attempt.cause else None for attempt in attempts],
    }


@dataclass(frozen=True, slots=True)
class Intervals:
    """All that has a say in when a task comes again."""

    id: int
    crawl_frequency: timedelta | None
    adapted_frequency: timedelta | None
    domain_frequency: timedelta | None
    adaptive: bool | None
    min_frequency: timedelta | None
    max_frequency: timedelta | None


async def select_intervals(connection: Connection, ids: Sequence[int]) -> list[Intervals]:
    return await Rows(connection, Intervals).all(
        """
        SELECT t.id, t.crawl_frequency, t.adapted_frequency,
               d.crawl_frequency AS domain_frequency,
               d.adaptive, d.min_frequency, d.max_frequency
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
         WHERE t.id = ANY(%s)
        """,
        (list(ids),),
    )


async def complete(
    connection: Connection,
    ids: Sequence[int],
    intervals: Sequence[tuple[timedelta, timedelta | None]],
) -> None:
    """Each task with the time until its next visit, and what it has adapted to."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {COMPLETE.changes},
               next_crawl_at = now() + done.every,
               adapted_frequency = done.adapted
          FROM unnest(%(ids)s::bigint[], %(every)s::interval[], %(adapted)s::interval[])
               AS done (id, every, adapted)
         WHERE t.id = done.id AND {COMPLETE.allowed}
        """,
        {
            "ids": list(ids),
            "every": [every for every, _ in intervals],
            "adapted": [adapted for _, adapted in intervals],
        },
    )


async def bring_forward(connection: Connection, ids: Sequence[int], *, after: timedelta) -> None:
    """Make completed tasks due now, but not sooner than this long after their last visit.

    Tasks that another transaction has locked are skipped: they are visited, or changed, just now.
    """
    await connection.execute(
        """
        WITH waiting AS (
            SELECT id, greatest(now(), completed_at + %(after)s) AS due_at
              FROM crawl_tasks
             WHERE id = ANY(%(ids)s) AND status = 'completed'
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE crawl_tasks t
           SET next_crawl_at = waiting.due_at
          FROM waiting
         WHERE t.id = waiting.id AND t.next_crawl_at > waiting.due_at
        """,
        {"ids": list(ids), "after": after},
    )
