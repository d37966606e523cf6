"""SQL of domain alarms: how visits of a domain ended, and which results are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values

# decay of the moving average per visit
DECAY = 0.9
NEAR_ZERO = 0.05


@dataclass(frozen=True, slots=True)
class DomainHealth:
    """How the last visits of a domain ended, which decides about its alarm."""

    domain_id: int
    gone_share: float = 0.0
    visits: int = 0
    blocked_in_a_row: int = 0
    same_name: str | None = None
    same_in_a_row: int = 0
    alarm: str | None = None
    alarm_age: float = 0.0
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class DomainAlarm:
    """A domain whose results are withheld, and why."""

    domain_id: int
    domain: str
    reason: str
    raised_at: datetime


async def lock_health(
    connection: Connection, domain_ids: Sequence[int], *, create: Sequence[int]
) -> list[DomainHealth]:
    """The locked health of domains; rows of the domains to `create` are inserted."""
    if create:
        await connection.execute(
            "INSERT INTO domain_health (domain_id) SELECT unnest(%s::bigint[])"
            " ON CONFLICT DO NOTHING",
            (sorted(create),),
        )
    return await Rows(connection, DomainHealth).all(
        """
        SELECT domain_id, gone_share, visits, blocked_in_a_row, same_name, same_in_a_row, alarm,
               coalesce(extract(epoch FROM now() - alarm_at), 0)::float8 AS alarm_age, accepted
          FROM domain_health
         WHERE domain_id = ANY(%s)
         ORDER BY domain_id
           FOR UPDATE
        """,
        (list(domain_ids),),
    )


async def update_health(connection: Connection, health: DomainHealth) -> None:
    """Store the health of a domain; the time of an alarm that continues stays."""
    await connection.execute(
        """
        UPDATE domain_health
           SET gone_share = %s, visits = %s, blocked_in_a_row = %s, same_name = %s,
               same_in_a_row = %s, alarm = %s, accepted = %s,
               alarm_at = CASE WHEN %s::text IS NULL THEN NULL ELSE coalesce(alarm_at, now()) END
         WHERE domain_id = %s
        """,
        (
            health.gone_share, health.visits, health.blocked_in_a_row, health.same_name,
            health.same_in_a_row, health.alarm, health.accepted, health.alarm, health.domain_id,
        ),
    )  # fmt: skip


async def select_alarms(connection: Connection) -> list[DomainAlarm]:
    """Domains with an alarm, latest first."""
    return await Rows(connection, DomainAlarm).all(
        """
        SELECT h.domain_id, d.domain_name AS domain, h.alarm AS reason, h.alarm_at AS raised_at
          FROM domain_health h
          JOIN domains d ON d.id = h.domain_id
         WHERE h.alarm IS NOT NULL
         ORDER BY h.alarm_at DESC, d.domain_name
        """
    )


async def select_withheld_tasks(connection: Connection, domain_id: int, *, gone: bool) -> list[int]:
    """Tasks of a domain whose last visit was held; with `gone`, all whose page is missing."""
    return await Values(connection).all(
        """
        SELECT t.id
          FROM crawl_tasks t
          CROSS JOIN LATERAL (
              SELECT a.outcome, a.http_status
                FROM task_attempts a
               WHERE a.task_id = t.id
               ORDER BY a.id DESC
               LIMIT 1
          ) AS last
         WHERE t.domain_id = %s
           AND CASE WHEN %s THEN last.http_status IN (404, 410) AND t.parser_version IS NOT NULL
                    ELSE last.outcome = 'held' END
         ORDER BY t.id
        """,
        (domain_id, gone),
    )


async def select_last_messages(connection: Connection, task_ids: Sequence[int]) -> dict[int, str]:
    """Why the result of the last parsed page of tasks was not stored."""
    return await Tuples(connection).as_dict(
        """
        SELECT t.id, last.error_message
          FROM unnest(%s::bigint[]) AS t (id)
         CROSS JOIN LATERAL (
            SELECT outcome, error_message
              FROM task_attempts
             WHERE task_id = t.id AND stage = 'parse'
             ORDER BY id DESC
             LIMIT 1
         ) AS last
         WHERE last.outcome IN ('held', 'missed', 'failed')
        """,
        (list(task_ids),),
    )


async def discard_withheld(connection: Connection, domain_id: int) -> None:
    """Log that the last results of tasks were discarded, where they were held.

    A task that is being visited again has a newer attempt of the other stage.
    """
    await connection.execute(
        """
        INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                   error_message)
        SELECT t.id, t.domain_id, last.stage, last.lease, last.attempt, 'withdrawn',
               'the held result was discarded'
          FROM crawl_tasks t
         CROSS JOIN unnest('{download, parse}'::text[]) AS s (stage)
         CROSS JOIN LATERAL (
            SELECT stage, lease, attempt, outcome
              FROM task_attempts
             WHERE task_id = t.id AND stage = s.stage
             ORDER BY id DESC
             LIMIT 1
         ) AS last
         WHERE t.domain_id = %s AND last.outcome = 'held'
        """,
        (domain_id,),
    )


async def visit_now(connection: Connection, task_ids: Sequence[int]) -> None:
    """Make waiting tasks due."""
    await connection.execute(
        """
        UPDATE crawl_tasks SET scheduled_at = now(), updated_at = now()
         WHERE id = ANY(%s) AND status = 'pending' AND scheduled_at > now()
        """,
        (list(task_ids),),
    )


async def select_gone(
    connection: Connection, task_ids: Sequence[int], *, visits: int, seconds: float
) -> list[int]:
    """Tasks whose last visits, at least this many over this time, all got 404 or 410."""
    return await Values(connection).all(
        """
        SELECT t.id
          FROM unnest(%(ids)s::bigint[]) AS t (id)
          CROSS JOIN LATERAL (
              SELECT coalesce(max(a.id), 0) AS last_other
                FROM task_attempts a
               WHERE a.task_id = t.id AND a.outcome <> 'held'
                 AND a.http_status IS NOT NULL AND a.http_status NOT IN (404, 410)
          ) AS seen
          CROSS JOIN LATERAL (
              SELECT count(*) AS visits, min(a.finished_at) AS since
                FROM task_attempts a
               WHERE a.task_id = t.id AND a.id > seen.last_other
                 AND a.outcome IN ('missed', 'failed') AND a.http_status IN (404, 410)
          ) AS gone
         WHERE gone.visits >= %(visits)s
           AND gone.since <= now() - %(seconds)s * interval '1 second'
        """,
        {"ids": list(task_ids), "visits": visits, "seconds": seconds},
    )
