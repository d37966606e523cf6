"""The queue: operations on jobs, for adapters and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack
from uuid import UUID

import psycopg
from structlog.stdlib import BoundLogger

from forager.db.cursor import Page, check_limit, decode_cursor, encode_cursor, page_of
from forager.db.database import Connection, Database
from forager.db.retention import delete_rows
from forager.db.schema import SCHEMA_VERSION
from forager.errors import InvalidInput, LeaseLost, NotAllowed, NotFound
from forager.extract.text import storable_message
from forager.hints import Hint, action
from forager.jobs import lifecycle
from forager.jobs.admission import checked_job
from forager.jobs.job import Job, JobEvent, JobFilters, Lease, NewJob, StateCount
from forager.jobs.lifecycle import Choice, IllegalMove, Status, Transition
from forager.jobs.store import leases as lease_rows
from forager.jobs.store import listing, reads
from forager.jobs.store import moves as job_rows
from forager.jobs.store.moves import merge_payload
from forager.jobs.store.reads import count_active, select_jobs_by_id, select_waiting_for_browser
from forager.services.service import in_chunks
from forager.settings import Settings
from forager.tracing import span

__all__ = ["count_active", "merge_payload", "select_jobs_by_id", "select_waiting_for_browser"]

PRUNE_BATCH = 500
# characters of the message of an error
MAX_MESSAGE = 8_000


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that does the work: a new one, or the one its source already has."""

    job: Job
    created: bool


class Queue:
    """Enqueues jobs, lists them, and changes their state.

    Each change is one statement. It happens as a whole, or raises: NotFound for an unknown job,
    NotAllowed for a change that the state of the job does not permit.

        queue = Queue(database, settings)
        job = (await queue.enqueue(NewJob(kind="report", payload={"day": "2026-01-01"}))).job
        await queue.pause(job.id, actor="user ada")
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self.settings = settings

    # --- for people and programs -----------------------------------------------------------

    async def enqueue(self, job: NewJob, *, actor: str = "user") -> Enqueued:
        """Add a job; if its source has an active one already, that one is the answer."""
        with span("enqueue", attributes={"job.kind": job.kind}):
            return (await self.enqueue_each([job], actor=actor))[0]

    async def enqueue_each(self, jobs: Sequence[NewJob], *, actor: str = "user") -> list[Enqueued]:
        """Add many jobs in one statement; for a source with an active job, that one is returned."""
        checked = [checked_job(job) for job in jobs]
        found: dict[UUID | None, Enqueued] = {}
        async with self._database.connection() as connection:
            # an active job may finish between the two statements: then there is room for ours
            while missing := [job for job in checked if job.id not in found]:
                # in the same order in all transactions, which may wait for each other's sources
                missing.sort(key=lambda job: job.source_id or "")
                inserted = await job_rows.insert_jobs(connection, missing, actor=actor)
                found |= {job.id: Enqueued(job, created=True) for job in inserted}
                refused = {job.source_id: job.id for job in missing if job.id not in found}
                active = await reads.select_active_jobs_of(connection, list(refused))
                found |= {refused[job.source_id]: Enqueued(job, created=False) for job in active}
        return [found[job.id] for job in checked]

    async def enqueue_many(self, jobs: Sequence[NewJob], *, actor: str = "user") -> list[Job]:
        """Add many jobs in one statement; those whose source has an active job are left out."""
        enqueued = await self.enqueue_each(jobs, actor=actor)
        return [each.job for each in enqueued if each.created]

    async def get(self, job_id: UUID) -> Job:
        """A job by its ID."""
        return await self._database.run(_existing, job_id)

    async def active_owners(self, owners: Sequence[str]) -> set[str]:
        """Those of these sources, and of these ids of jobs without a source, that are active."""
        return await self._database.run(reads.select_active_owners, owners)

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
        self, *, cursor: str | None = None, limit: int = 50, **filters: Unpack[JobFilters]
    ) -> Page[Job]:
        """Jobs, newest first, a page at a time."""
        before = decode_cursor(cursor) if cursor else None
        jobs = await self._database.run(
            listing.select_jobs, filters, before=before, limit=check_limit(limit) + 1
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
        own_runner: bool | None = None,
        besides: Sequence[UUID] = (),
    ) -> list[Job]:
        """Take up to `limit` due jobs, highest priority first, oldest first.

        `renders`: whether the worker has a browser. `own_runner`: only jobs that run alone, or only
        others. `besides` are not taken.
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
            own_runner=own_runner,
            besides=besides,
        )

    async def heartbeat(self, leases: Sequence[Lease]) -> set[UUID]:
        """Renew leases of one worker; the ids of those renewed.

        A lease that is missing from the answer is lost, or its row was locked for a moment:
        `leased` distinguishes the two.
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

    async def leased(self, leases: Sequence[Lease]) -> dict[UUID, Status]:
        """The states of those jobs whose lease is still the given one."""
        rows = await self._database.run(
            lease_rows.select_leases, [lease.job_id for lease in leases]
        )
        number = {lease.job_id: lease.number for lease in leases}
        return {
            job_id: Status(status) for job_id, status, leased in rows if leased == number[job_id]
        }

    async def leased_by(self, worker_id: UUID) -> list[Lease]:
        """All leases of one worker, including those it does not know about."""
        return await self._database.run(lease_rows.select_leased_by, worker_id)

    async def complete(
        self, connection: Connection, lease: Lease, *, stop_reason: str = "finished"
    ) -> Job:
        """Complete a job, inside the caller's transaction."""
        job = await _move_leased(
            connection,
            lease,
            (Choice(lifecycle.COMPLETE),),
            reason=stop_reason,
            stop_reason=stop_reason,
        )
        if job is None:
            raise LeaseLost(f"job {lease.job_id} cannot be completed under lease {lease.number}")
        return job

    async def merge_payload(
        self, connection: Connection, job_id: UUID, values: dict[str, Any]
    ) -> None:
        """Replace some options of a job, inside the caller's transaction; for its next run."""
        await job_rows.merge_payload(connection, job_id, values)

    async def pause_leased(self, connection: Connection, lease: Lease, reason: str) -> Job | None:
        """Pause a job by its own decision; None if it is no longer running."""
        moves = (Choice(lifecycle.PAUSE_RUNNING),)
        return await _move_leased(connection, lease, moves, reason=reason)

    async def fail(self, lease: Lease, error: str, *, permanent: bool = False) -> Job | None:
        """A run failed: retry later while retries are left and it is not permanent."""
        error = storable_message(error, MAX_MESSAGE)
        return await self._database.run(
            _move_leased,
            lease,
            lifecycle.END_OF_FAILED_RUN,
            reason=error,
            error=error,
            permanent=permanent,
            **retry_delays(self.settings),
        )

    async def release(
        self, lease: Lease, *, reason: str, delay: float = 0.0, move: Transition = lifecycle.RELEASE
    ) -> Job | None:
        """Give a job back without spending a retry; a pausing one is paused by that."""
        choices = (Choice(move), lifecycle.PARKED)
        return await self._database.run(_move_leased, lease, choices, reason=reason, delay=delay)

    async def release_many(self, leases: Sequence[Lease], *, reason: str) -> list[Job]:
        """Give jobs of one worker back in one statement, as `release` does."""
        return await self._database.run(_move_all, leases, lifecycle.END_OF_RELEASE, reason=reason)

    async def requeue(
        self, leases: Sequence[Lease], *, losses: Sequence[int], reason: str
    ) -> list[Job]:
        """Give back jobs of a lost runner in one statement, without spending a retry.

        `losses` are their counts of lost runners, including this one if it may be their fault.
        """
        return await self._database.run(
            _move_all,
            leases,
            lifecycle.END_OF_LOST_RUN,
            losses=losses,
            reason=storable_message(reason, MAX_MESSAGE),
        )

    async def run_alone(self, job_id: UUID) -> None:
        """Give a job its own runner from now on."""
        await self._database.run(job_rows.set_own_runner, job_id)

    async def park(self, lease: Lease) -> Job | None:
        """Leave a pausing job; None if it was resumed meanwhile, or the lease is lost."""
        return await self._database.run(_move_leased, lease, (lifecycle.PARKED,))

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
                moved = await job_rows.apply_moves(
                    connection,
                    [job_id],
                    (Choice(move),),
                    actor=actor,
                    reason=reason,
                    stop_reason=stop_reason,
                )
                if moved:
                    return moved[0]
            job = await _existing(connection, job_id)
        raise IllegalMove(job_id, action, job.status)


async def _move_leased(
    connection: Connection, /, lease: Lease, choices: tuple[Choice, ...], **values: Any
) -> Job | None:
    """Make a move as the holder of the lease; None if that is not current, or not allowed."""
    moved = await _move_all(connection, [lease], choices, **values)
    return moved[0] if moved else None


async def _move_all(
    connection: Connection, /, leases: Sequence[Lease], choices: tuple[Choice, ...], **values: Any
) -> list[Job]:
    if not leases:
        return []
    return await job_rows.apply_moves(
        connection,
        [lease.job_id for lease in leases],
        choices,
        actor=leases[0].actor,
        leases=[lease.number for lease in leases],
        **values,
    )


def log_failure(log: BoundLogger, job: Job) -> None:
    """Log the permanent failure of a job, which needs a person."""
    log.error("job failed permanently", job=str(job.id), error=job.error_message)


def retry_delays(settings: Settings) -> dict[str, float]:
    return {"retry_delay": settings.retry_delay, "retry_delay_max": settings.retry_delay_max}


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
