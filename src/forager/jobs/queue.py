"""The queue: operations on jobs, for adapters and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
import psycopg

from forager.db.cursor import Page, check_limit, decode_cursor, encode_cursor, page_of
from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.db.retention import delete_rows
from forager.db.schema import SCHEMA_VERSION
from forager.errors import InvalidInput, LeaseLost, NotAllowed, NotFound
from forager.hints import Hint, action
from forager.jobs import lifecycle
from forager.jobs.job import Job, JobEvent, Lease, NewJob, StateCount
from forager.jobs.kinds import kind_named
from forager.jobs.lifecycle import IllegalMove, Status, Transition
from forager.jobs.store import failed_runs, reads
from forager.jobs.store import leases as lease_rows
from forager.jobs.store import moves as job_rows
from forager.services.service import in_chunks
from forager.settings import Settings
from forager.tracing import span, traceparent

MAX_PAYLOAD_BYTES = 1 << 20
PRUNE_BATCH = 500
PRIORITIES = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that does the work: a new one, or the one its source already has."""

    job: Job
    created: bool


class Queue:
    """All moves of all jobs. Thin: each method is one statement and the words for its refusal."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self.settings = settings

    # --- for people and programs -----------------------------------------------------------

    async def enqueue(self, job: NewJob, *, actor: str = "user") -> Enqueued:
        """Add a job; if its source has an active one already, that one is the answer."""
        with span("enqueue", attributes={"job.kind": job.kind}):
            return await self._enqueue(_checked(job), actor)

    async def _enqueue(self, checked: NewJob, actor: str) -> Enqueued:
        async with self._database.connection() as connection:
            while True:
                inserted = await job_rows.insert_jobs(connection, [checked], actor=actor)
                if inserted:
                    return Enqueued(inserted[0], created=True)
                assert checked.source_id is not None
                active = await reads.select_active_job_of_source(connection, checked.source_id)
                # it may have finished between the two statements: then there is room for ours
                if active is not None:
                    return Enqueued(active, created=False)

    async def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "user") -> list[Job]:
        """Add many jobs in one statement; those whose source has an active job are left out."""
        if not jobs:
            return []
        checked = [_checked(job) for job in jobs]
        # in the same order in all transactions, which may wait for each other's sources
        ordered = sorted(checked, key=lambda job: job.source_id or "")
        made = await self._database.run(job_rows.insert_jobs, ordered, actor=actor)
        place = {job.id: nth for nth, job in enumerate(checked)}
        return sorted(made, key=lambda job: place[job.id])

    async def get(self, job_id: UUID) -> Job:
        return await self._database.run(_existing, job_id)

    async def trace_of(self, job_id: UUID) -> str | None:
        """The span in which a job was requested."""
        return await self._database.run(reads.select_trace, job_id)

    async def resolve(self, text: str, *, user_id: UUID | None = None) -> UUID:
        """The job a person means: a whole id, or its beginning if only one job has it.

        With `user_id`, only among the jobs of this owner.
        """
        if not may_be_job_id(text):
            hint = Hint("{} shows job ids.", action("jobs list"))
            raise InvalidInput(f"{text[:100]!r} is not a job id", hint=hint)
        digits = _digits_of(text)
        low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        found = await self._database.run(reads.select_jobs_by_prefix, low, high, user_id)
        if not found:
            raise no_such_job(text)
        if len(found) > 1:
            listed = ", ".join(map(str, found))
            raise InvalidInput(
                f"several jobs begin with {text}: {listed}", hint="Give more of the id."
            )
        return found[0]

    async def list_jobs(
        self,
        *,
        statuses: Sequence[Status] | None = None,
        kind: str | None = None,
        source_id: str | None = None,
        user_id: UUID | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Job]:
        """Jobs, newest first, a page at a time."""
        before = decode_cursor(cursor) if cursor else None
        jobs = await self._database.run(
            reads.select_jobs,
            statuses=statuses,
            kind=kind,
            source_id=source_id,
            user_id=user_id,
            before=before,
            limit=check_limit(limit) + 1,
        )
        return page_of(jobs, limit, lambda job: encode_cursor(job.created_at, job.id))

    async def events(self, job_id: UUID, *, after: int = 0, limit: int = 100) -> list[JobEvent]:
        """A job's history, oldest first."""
        async with self._database.connection() as connection:
            await _existing(connection, job_id)
            return await reads.select_events(
                connection, job_id, after=after, limit=check_limit(limit)
            )

    async def counts(self, *, user_id: UUID | None = None) -> dict[Status, int]:
        """Jobs by state, of one owner or of all; states without jobs count zero."""
        counted = dict(await self._database.run(reads.count_jobs, user_id))
        return {status: counted.get(status, 0) for status in Status}

    async def pending_work(self, *, user_id: UUID | None = None) -> list[StateCount]:
        """Pending work by state: of running, waiting and paused jobs."""
        return await self._database.run(reads.sum_pending_work, user_id)

    async def pause(self, job_id: UUID, *, actor: str = "user", reason: str | None = None) -> Job:
        """Hold a job. A running one commits what it has and leaves; until then it is pausing."""
        moves = (lifecycle.PAUSE_RUNNING, lifecycle.PAUSE_PENDING)
        return await self._first_possible("pause", job_id, moves, actor=actor, reason=reason)

    async def resume(self, job_id: UUID, *, actor: str = "user", reason: str | None = None) -> Job:
        """Continue a paused job from its last commit; one that is still pausing just continues."""
        moves = (lifecycle.RESUME_PAUSING, lifecycle.RESUME_PAUSED)
        return await self._first_possible("resume", job_id, moves, actor=actor, reason=reason)

    async def cancel(self, job_id: UUID, *, actor: str = "user", reason: str | None = None) -> Job:
        """Cancel a job permanently; its runner can no longer write."""
        return await self._first_possible(
            "cancel",
            job_id,
            (lifecycle.CANCEL,),
            actor=actor,
            reason=reason,
            stop_reason=reason or "cancelled",
        )

    async def retry(self, job_id: UUID, *, actor: str = "user", reason: str | None = None) -> Job:
        """Give a failed job all its retries again, from its last commit."""
        return await self._begin_again("retry", job_id, lifecycle.RETRY, actor, reason)

    async def retry_failed(self, job_id: UUID, *, actor: str, reason: str) -> Job:
        """Run a finished job again. The caller adds URLs to its frontier in the same
        transaction."""
        return await self._begin_again(
            "retry failed URLs of", job_id, lifecycle.RETRY_FAILED, actor, reason
        )

    async def _begin_again(
        self, action: str, job_id: UUID, move: Transition, actor: str, reason: str | None
    ) -> Job:
        try:
            return await self._first_possible(action, job_id, (move,), actor=actor, reason=reason)
        except psycopg.errors.UniqueViolation:
            raise NotAllowed(
                f"cannot {action} job {job_id}: its source has another active job",
                hint="Cancel that one first, or let it finish.",
            ) from None

    async def prune(self, *, older_than: float | None = None) -> int:
        """Delete finished jobs older than this many seconds (default: the setting), in batches."""
        age = self.settings.prune_after_days * 86400 if older_than is None else older_than
        if age < 0:
            raise InvalidInput("an age cannot be negative")
        return await in_chunks(
            self._database, delete_rows, rows=job_rows.OLD_JOBS, limit=PRUNE_BATCH, older_than=age
        )

    # --- for workers -----------------------------------------------------------------------

    async def claim(
        self,
        worker_id: UUID,
        *,
        kinds: Sequence[str],
        limit: int = 1,
        renders: bool = False,
        only: UUID | None = None,
    ) -> list[Job]:
        """Take up to `limit` due jobs, highest priority first, oldest first.

        `renders`: whether the worker has a browser.
        """
        return await self._database.run(
            job_rows.claim_jobs,
            worker_id=worker_id,
            kinds=kinds,
            limit=check_limit(limit),
            schema=SCHEMA_VERSION,
            stale_after=self.settings.stale_after,
            region=self.settings.region,
            renders=renders,
            only=only,
        )

    async def heartbeat(self, leases: Sequence[Lease]) -> set[UUID]:
        """Renew leases of one worker; the ids of those renewed.

        A lease that is missing from the answer is lost, or its row was locked for a moment:
        `held` distinguishes the two.
        """
        if not leases:
            return set()
        renewed = await self._database.run(
            lease_rows.beat,
            worker_id=leases[0].worker_id,
            ids=[lease.job_id for lease in leases],
            leases=[lease.number for lease in leases],
        )
        return set(renewed)

    async def held(self, leases: Sequence[Lease]) -> dict[UUID, Status]:
        """The states of those jobs whose lease is still the given one."""
        rows = await self._database.run(lease_rows.select_held, [lease.job_id for lease in leases])
        number = {lease.job_id: lease.number for lease in leases}
        return {job_id: Status(status) for job_id, status, held in rows if held == number[job_id]}

    async def held_by(self, worker_id: UUID) -> list[Lease]:
        """All leases of one worker, including those it does not know about."""
        return await self._database.run(lease_rows.select_held_by, worker_id)

    async def complete(
        self, connection: Connection, lease: Lease, *, stop_reason: str = "finished"
    ) -> Job:
        """Complete a job, inside the caller's transaction."""
        job = await _move_held(
            connection, lease, lifecycle.COMPLETE, reason=stop_reason, stop_reason=stop_reason
        )
        if job is None:
            raise LeaseLost(f"job {lease.job_id} cannot be completed under lease {lease.number}")
        return job

    async def fail(self, lease: Lease, error: str, *, permanent: bool = False) -> Job | None:
        """A run failed: retry later while retries are left and it is not permanent."""
        return await self._database.run(
            failed_runs.end_failed_run,
            lease.job_id,
            lease=lease.number,
            error=storable(error),
            permanent=permanent,
            actor=lease.actor,
            delay=self.settings.retry_delay,
            delay_max=self.settings.retry_delay_max,
        )

    async def release(self, lease: Lease, *, reason: str, delay: float = 0.0) -> Job | None:
        """Give a job back without spending a retry; a pausing one is paused by that."""
        async with self._database.connection() as connection:
            for move in (lifecycle.RELEASE, lifecycle.PARK):
                job = await _move_held(connection, lease, move, reason=reason, delay=delay)
                if job is not None:
                    return job
        return None

    async def park(self, lease: Lease) -> Job | None:
        """Leave a pausing job; None if it was resumed meanwhile, or the lease is lost."""
        return await self._database.run(_move_held, lease, lifecycle.PARK)

    # ---------------------------------------------------------------------------------------

    async def _first_possible(
        self,
        action: str,
        job_id: UUID,
        moves: Sequence[Transition],
        *,
        actor: str,
        reason: str | None,
        stop_reason: str | None = None,
    ) -> Job:
        async with self._database.connection() as connection:
            for move in moves:
                moved = await job_rows.apply_move(
                    connection, job_id, move, actor=actor, reason=reason, stop_reason=stop_reason
                )
                if moved is not None:
                    return moved
            job = await _existing(connection, job_id)
        raise IllegalMove(job_id, action, job.status)


async def _move_held(
    connection: Connection, /, lease: Lease, move: Transition, **values: Any
) -> Job | None:
    """Make a move as the holder of the lease; None if that is not current, or not allowed."""
    return await job_rows.apply_move(
        connection, lease.job_id, move, actor=lease.actor, lease=lease.number, **values
    )


async def _existing(connection: Connection, job_id: UUID) -> Job:
    job = await reads.select_job(connection, job_id)
    if job is None:
        raise no_such_job(job_id)
    return job


def may_be_job_id(text: str) -> bool:
    """Whether this is a job id or the beginning of one."""
    digits = _digits_of(text)
    return 1 <= len(digits) <= 32 and set(digits) <= set("0123456789abcdef")


def _digits_of(text: str) -> str:
    return text.replace("-", "").lower()


def no_such_job(job_id: object) -> NotFound:
    return NotFound(f"there is no job {job_id}", hint=Hint("{} lists jobs.", action("jobs list")))


def _checked(job: NewJob) -> NewJob:
    """The job as it will be stored; refuses what PostgreSQL or the handler would refuse later."""
    if job.priority not in PRIORITIES:
        raise InvalidInput(f"priority {job.priority} is out of range")
    if job.max_retries < 0 or job.delay < 0:
        raise InvalidInput("max_retries and delay cannot be negative")
    kind = kind_named(job.kind)
    payload = kind.check(_checked_payload(job.payload))
    return replace(
        job,
        id=new_id(),
        payload=payload,
        priority=int(job.priority),  # a comparison is a number in Python, but not in JSON
        trace=traceparent(),
        host=kind.host(payload),
    )


def _checked_payload(payload: Any) -> dict[str, Any]:
    if not isinstance(payload, dict):
        raise InvalidInput("a job's payload must be an object")
    try:
        encoded = orjson.dumps(payload)
    except TypeError as error:
        raise InvalidInput(f"the payload is not JSON: {error}") from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise InvalidInput(f"the payload has {len(encoded)} bytes; at most {MAX_PAYLOAD_BYTES} go")
    if b"\\u0000" in encoded:
        raise InvalidInput("the payload holds a NUL character, which PostgreSQL cannot store")
    return payload


def storable(text: str) -> str:
    """Text as PostgreSQL takes it, at a length that a person would read."""
    clean = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return clean.encode("utf-8", "replace").decode("utf-8")[:8000]
