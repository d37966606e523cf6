"""SQL of the download and parse stages: the fence of a commit, and moves of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

from forager.archive.segment import ArchiveRef, ref_columns
from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.tasks.lifecycle import COMPLETE, RELEASE, STORE_PAGE, WITHDRAW, TaskMove
from forager.tasks.stages.attempt import Attempt, LeasedTask, StageOfWorker
from forager.tasks.task import CHANNEL, TaskSchedule

_LEASED = RowArrays("mine", id="bigint", lease="bigint")
_ATTEMPTS = RowArrays(
    "a", id="bigint", domain_id="bigint", lease="bigint", retry_count="int", outcome="text",
    delay="float8", error_kind="text", error_message="text", http_status="smallint",
    final_url="text", proxy_id="bigint", duration_ms="int", size="int", segment="text",
    segment_offset="bigint", segment_length="int",
)  # fmt: skip


async def lock_leased(
    connection: Connection, who: StageOfWorker, tasks: Sequence[LeasedTask]
) -> set[int]:
    """The fence: lock the tasks that this worker still holds, and return their ids."""
    return await Values(connection).as_set(
        f"""
        SELECT t.id
          FROM crawl_tasks t
          JOIN {_LEASED}
            ON t.id = mine.id AND t.lease = mine.lease
         WHERE t.worker_id = %(worker_id)s AND t.status = %(status)s
         ORDER BY t.id
           FOR NO KEY UPDATE OF t
        """,
        {**_LEASED.values(tasks), "worker_id": who.worker_id, "status": who.stage.status},
    )


async def mark_downloaded(
    connection: Connection,
    ids: Sequence[int],
    refs: Sequence[ArchiveRef],
    etags: Sequence[str | None],
    last_modified: Sequence[str | None],
) -> None:
    """Store the location of pages; their validators apply once a parser has read them."""
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
    """Store the parser version that read the page of each task."""
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
    """Set whether only workers that render may download these tasks.

    The decision expires after an hour; each time that it is made again, after twice as long.
    """
    await connection.execute(
        """
        UPDATE crawl_tasks t
           SET needs_browser = n.needs,
               browser_since = CASE WHEN n.needs THEN now() END,
               browser_until = CASE WHEN n.needs THEN now() + least(
                   greatest(2 * (t.browser_until - t.browser_since), interval '1 hour'),
                   interval '30 days'
               ) END
          FROM unnest(%s::bigint[], %s::boolean[]) AS n (id, needs)
         WHERE t.id = n.id
           AND (t.needs_browser <> n.needs OR n.needs AND t.browser_until > now() IS NOT TRUE)
        """,
        (list(needs), list(needs.values())),
    )


async def set_moved(connection: Connection, ends: Mapping[int, str | None]) -> None:
    """Remember where the URLs of tasks redirect to permanently, or forget it."""
    await connection.execute(
        """
        UPDATE crawl_tasks t
           SET moved_to = e.url
          FROM unnest(%s::bigint[], %s::text[]) AS e (id, url)
         WHERE t.id = e.id AND t.moved_to IS DISTINCT FROM e.url
        """,
        (list(ends), list(ends.values())),
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


async def move(connection: Connection, move: TaskMove, attempts: Sequence[Attempt]) -> None:
    """Move the tasks of attempts that ended in the same way."""
    await connection.execute(
        f"""
        UPDATE crawl_tasks t
           SET {move.changes}
          FROM {_ATTEMPTS}
         WHERE t.id = a.id AND {move.allowed}
        """,
        _columns(attempts),
    )


@dataclass(frozen=True, slots=True)
class FailingTask:
    """Failed visits of a task before this one."""

    failed_visits: int
    seconds: float
    # whether its page was read before
    was_read: bool


async def select_failing(connection: Connection, ids: Sequence[int]) -> dict[int, FailingTask]:
    """How long tasks have been failing, by ID."""
    cursor = await connection.execute(
        """
        SELECT id, failed_visits,
               coalesce(extract(epoch FROM now() - failing_since), 0)::float8,
               -- a download without a result that was stored removes the parser version
               parser_version IS NOT NULL OR failed_visits > 0
               OR EXISTS (SELECT FROM products p WHERE p.crawl_task_id = t.id)
          FROM crawl_tasks t
         WHERE id = ANY(%s)
        """,
        (list(ids),),
    )
    return {row[0]: FailingTask(*row[1:]) for row in await cursor.fetchall()}


async def insert_attempts(
    connection: Connection, who: StageOfWorker, attempts: Sequence[Attempt]
) -> None:
    """Log how attempts ended."""
    await connection.execute(
        f"""
        INSERT INTO task_attempts (
            task_id, domain_id, stage, lease, attempt, outcome, error_kind, error_message,
            http_status, final_url, proxy_id, worker_id, started_at, finished_at, duration_ms,
            size, segment, segment_offset, segment_length
        )
        SELECT id, domain_id, %(stage)s, lease, least(retry_count + 1, 32767), outcome,
               error_kind, error_message, http_status, final_url, proxy_id, %(worker_id)s,
               coalesce(
                   now() - duration_ms * interval '1 millisecond',
                   (SELECT t.started_at FROM crawl_tasks t WHERE t.id = a.id)
               ), now(), duration_ms,
               size, segment, segment_offset, segment_length
          FROM {_ATTEMPTS}
        """,
        {"stage": who.stage.value, "worker_id": who.worker_id, **_columns(attempts)},
    )


async def select_leased(connection: Connection, worker_id: UUID) -> dict[int, int]:
    """The leases that a worker holds, by task."""
    return await Tuples(connection).as_dict(
        "SELECT id, lease FROM crawl_tasks WHERE worker_id = %s", (worker_id,)
    )


def withdrawal(move: TaskMove, tasks: LiteralString) -> str:
    """CTEs that move the tasks of a query, and log the attempts of those that workers hold."""
    return f"""
        WITH held AS MATERIALIZED (
            {tasks}
             ORDER BY t.id
               FOR NO KEY UPDATE OF t
        ), moved AS (
            UPDATE crawl_tasks t
               SET {move.changes}
              FROM held
             WHERE t.id = held.id AND {move.allowed}
            RETURNING t.id
        ), logged AS (
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       error_message, worker_id, started_at)
            SELECT id, domain_id, CASE status WHEN 'parsing' THEN 'parse' ELSE 'download' END,
                   lease, least(retry_count + 1, 32767), 'withdrawn', %(reason)s::text,
                   worker_id, started_at
              FROM held
              JOIN moved USING (id)
             WHERE status <> 'queued'
        )
    """


async def give_back(
    connection: Connection,
    worker_id: UUID,
    *,
    ids: Sequence[int] | None = None,
    stopped_only: bool = False,
    reason: str,
) -> list[int]:
    """Return tasks to the state before their claim, without spending a retry; returns their ids.

    `ids`: only these; `stopped_only`: those with a hold `stopped`, which become pending.
    """
    move = WITHDRAW if stopped_only else RELEASE
    tasks: LiteralString = """
        SELECT t.*
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
         WHERE t.worker_id = %(worker_id)s
           AND (%(ids)s::bigint[] IS NULL OR t.id = ANY(%(ids)s))
           AND (NOT %(stopped_only)s OR 'stopped' IN (
                   t.hold, d.task_hold, (SELECT hold FROM task_control)
               ))
    """
    return await Values(connection).all(
        f"{withdrawal(move, tasks)} SELECT id FROM moved",
        {
            "worker_id": worker_id,
            "ids": None if ids is None else list(ids),
            "stopped_only": stopped_only,
            "reason": reason,
        },
    )


async def notify_workers(connection: Connection) -> None:
    """Wake workers that wait for tasks."""
    await connection.execute(f"NOTIFY {CHANNEL}")


def _columns(attempts: Sequence[Attempt]) -> dict[str, Any]:
    causes = [attempt.cause for attempt in attempts]
    return _ATTEMPTS.values(
        attempts,
        id="task.id",
        domain_id="task.domain_id",
        lease="task.lease",
        retry_count="task.retry_count",
        error_kind=[cause and cause.kind for cause in causes],
        error_message=[cause and cause.message for cause in causes],
        **ref_columns([attempt.ref for attempt in attempts]),
    )


async def select_intervals(connection: Connection, ids: Sequence[int]) -> list[TaskSchedule]:
    """What decides when tasks are due again: their intervals, and those of their domains."""
    return await Rows(connection, TaskSchedule).all(
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
    """Complete tasks; `intervals`: until the next visit, and the adapted one."""
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

    Tasks that another transaction has locked are skipped: they are being visited or changed.
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
