"""The list of workers: their heartbeats, states and notes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from forager import __version__
from forager.db.database import Connection, Database
from forager.db.rows import Rows, Tuples, Values
from forager.db.schema import SCHEMA_VERSION
from forager.errors import LeaseLost
from forager.jobs.job import Job, JobEvent
from forager.jobs.queue import Queue
from forager.jobs.store import leases, reads
from forager.logs import get_logger
from forager.processes.identity import has_died, process_name
from forager.settings import Settings

# running jobs that are listed at most
MAX_RUNNING = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker as it last reported."""

    id: UUID
    host: str
    pid: int
    version: str
    capacity: int
    started_at: datetime
    last_seen: datetime
    state: str
    role: str
    region: str | None
    # whether it has a browser
    renders: bool
    # why it claims nothing at all, and why it claims no more jobs at the moment
    note: str | None
    brake: str | None

    @property
    def is_reachable(self) -> bool:
        """Whether it reported lately."""
        return self.state != "unreachable"


async def register(
    connection: Connection, values: Mapping[str, Any], *, state: str, note: str | None
) -> str | None:
    """Add a worker to the list, or renew it; returns the schema version of the database."""
    return await Values(connection).first(
        """
        WITH seen AS (
            INSERT INTO workers (id, host, pid, process, version, capacity, state, note, brake,
                                 role, region, renders, parsers)
            VALUES (%(id)s, %(host)s, %(pid)s, %(process)s, %(version)s, %(capacity)s,
                    %(state)s, %(note)s, %(brake)s, %(role)s, %(region)s, %(renders)s,
                    %(parsers)s)
            ON CONFLICT (id) DO UPDATE
               SET last_seen = now(), state = excluded.state, note = excluded.note,
                   brake = excluded.brake
        )
        SELECT version_num FROM alembic_version
        """,
        {**values, "state": state, "note": note},
    )


async def select_without_parsers(
    connection: Connection, versions: Sequence[tuple[str, str]], *, stale_after: float
) -> list[tuple[str, str, str]]:
    """Running workers for tasks that lack a version of a parser: parser, version, worker."""
    return await Tuples(connection).all(
        """
        SELECT v.parser, v.version, w.host || ' (pid ' || w.pid || ')'
          FROM unnest(%s::text[], %s::text[]) AS v (parser, version)
          JOIN workers w ON NOT coalesce(w.parsers -> v.parser ? v.version, false)
         WHERE w.role = 'tasks' AND w.state <> 'stopping'
           AND w.last_seen > now() - %s * interval '1 second'
         ORDER BY v.parser, v.version, w.started_at
        """,
        ([name for name, _ in versions], [version for _, version in versions], stale_after),
    )


async def renew(
    connection: Connection, worker_id: UUID, *, state: str, note: str | None
) -> str | None:
    """Renew the heartbeat of a worker; the schema version, or None if it was deleted as dead."""
    return await Values(connection).first(
        """
        WITH seen AS (
            UPDATE workers SET last_seen = now(), state = %s, note = %s WHERE id = %s RETURNING id
        )
        SELECT version_num FROM alembic_version, seen
        """,
        (state, note, worker_id),
    )


async def unregister(connection: Connection, worker_id: UUID) -> None:
    """Delete the row of a worker."""
    await connection.execute("DELETE FROM workers WHERE id = %s", (worker_id,))


async def select_workers(connection: Connection, *, stale_after: float) -> list[Worker]:
    """Workers and their states: unreachable without a recent heartbeat, or if killed here."""
    named = await connection.execute("SELECT id, process FROM workers WHERE process IS NOT NULL")
    return await Rows(connection, Worker).all(
        """
        SELECT id, host, pid, version, capacity, started_at, last_seen,
               CASE WHEN id = ANY(%s) OR last_seen < now() - %s * interval '1 second'
                    THEN 'unreachable' ELSE state END AS state,
               role, region, renders, note, brake
          FROM workers
         ORDER BY started_at
        """,
        ([id_ for id_, process in await named.fetchall() if has_died(process)], stale_after),
    )


async def select_processes(connection: Connection) -> list[tuple[UUID, str]]:
    """Workers that hold jobs, and who they are on their machines."""
    return await Tuples(connection).all(
        """
        SELECT w.id, w.process
          FROM workers w
         WHERE w.process IS NOT NULL
           AND w.id IN (SELECT worker_id FROM crawl_jobs WHERE worker_id IS NOT NULL)
        """
    )


async def delete_gone(connection: Connection, *, older_than: float) -> int:
    """Delete workers that died silently, except those of tasks: recovery deletes these."""
    return await Tuples(connection).affected(
        """
        DELETE FROM workers
         WHERE last_seen < now() - %s * interval '1 second' AND role <> 'tasks'
        """,
        (older_than,),
    )


async def delete_unseen(
    connection: Connection, ids: Sequence[UUID], last_seen: Sequence[datetime | None]
) -> None:
    """Delete workers that have not been seen since."""
    await connection.execute(
        """
        DELETE FROM workers w
         USING unnest(%s::uuid[], %s::timestamptz[]) AS dead (id, last_seen)
         WHERE w.id = dead.id AND w.last_seen = dead.last_seen
        """,
        (list(ids), list(last_seen)),
    )


LAST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, how far it is, and its latest history."""

    job: Job
    total_processed: int
    total_pending: int
    checkpoint: dict[str, Any] | None
    last_events: list[JobEvent]


async def job_report(database: Database, queue: Queue, job_id: UUID) -> JobReport:
    """A job with its progress, its checkpoint and its latest events; raises NotFound."""
    job = await queue.get(job_id)
    async with database.connection() as connection:
        saved = await leases.select_checkpoint(connection, job_id)
        events = await reads.select_last_events(connection, job_id, LAST_EVENTS)
    if saved is None:
        return JobReport(job, 0, 0, None, events)
    return JobReport(job, saved.processed, saved.pending, saved.data, events)


async def list_workers(database: Database, settings: Settings) -> list[Worker]:
    """Workers that are or recently were active."""
    return await database.run(select_workers, stale_after=settings.stale_after)


log = get_logger("supervisor")


class Registration:
    """`returns`: whether a worker that was deleted as dead may register again."""

    def __init__(
        self,
        database: Database,
        worker_id: UUID,
        *,
        capacity: int,
        role: str = "jobs",
        region: str | None = None,
        renders: bool = False,
        returns: bool = True,
        parsers: Callable[[], Mapping[str, Sequence[str]]] | None = None,
    ) -> None:
        self.note: str | None = None
        # why it claims no more jobs at the moment
        self.brake: str | None = None
        self._database = database
        self._worker_id = worker_id
        self._returns = returns
        self._parsers = parsers
        self._entered = False
        self._values: dict[str, Any] = {
            "id": worker_id,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process": process_name(),
            "version": __version__,
            "capacity": capacity,
            "role": role,
            "region": region,
            "renders": renders,
        }

    async def renew(self, *, stopping: bool = False) -> None:
        """Show this worker to others, and look whether it still fits the database's schema."""
        state = "stopping" if stopping else "running"
        note = _mismatch(await self._write(state))
        if note == self.note:
            return
        self.note = note
        if note is not None:
            log.error("worker of another schema version", reason=note)
        await self._write(state)

    async def end(self) -> None:
        """Delete the row of the worker."""
        await self._database.run(unregister, self._worker_id)

    async def _write(self, state: str) -> str | None:
        if self._entered and not self._returns:
            return await self._renew(state)
        version = await self._enter(state)
        self._entered = True
        return version

    async def _renew(self, state: str) -> str | None:
        version = await self._database.run(renew, self._worker_id, state=state, note=self.note)
        if version is None:
            raise LeaseLost("this worker was given up for dead; its work belongs to others")
        return version

    async def _enter(self, state: str) -> str | None:
        parsers = None if self._parsers is None else Jsonb(self._parsers())
        values = {**self._values, "parsers": parsers, "brake": self.brake}
        return await self._database.run(register, values, state=state, note=self.note)


def _mismatch(version: str | None) -> str | None:
    if version == SCHEMA_VERSION:
        return None
    return (
        f"claims nothing: the database has schema {version}, this worker knows {SCHEMA_VERSION};"
        " update and restart it"
    )


async def running_jobs(database: Database, *, user_id: UUID | None = None) -> dict[UUID, list[Job]]:
    """The jobs that each worker holds; with `user_id`, only those of this owner."""
    running = await database.run(reads.select_running, user_id=user_id, limit=MAX_RUNNING)
    jobs: dict[UUID, list[Job]] = {}
    for worker, job in running:
        jobs.setdefault(worker, []).append(job)
    return jobs
