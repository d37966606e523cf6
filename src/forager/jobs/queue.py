"""The queue: operations on jobs, for adapters and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack
from uuid import UUID

import psycopg
from structlog.stdlib import BoundLogger

from forager.db.cursor import Page, check_limit, decode_cursor, encode_cursor, page_of
from forager.db.database import Connection
from forager.db.retention import delete_rows
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.hints import Hint, action
from forager.jobs import lifecycle
from forager.jobs.admission import checked_job
from forager.jobs.job import Job, JobEvent, JobFilters, NewJob, StateCount
from forager.jobs.lifecycle import Choice, IllegalMove, Status, Transition
from forager.jobs.store import listing, reads
from forager.jobs.store import moves as job_rows
from forager.jobs.store.moves import merge_payload as merge_payload
from forager.jobs.store.reads import count_active as count_active
from forager.jobs.store.reads import select_jobs_by_id as select_jobs_by_id
from forager.jobs.store.reads import select_waiting_for_browser as select_waiting_for_browser
from forager.jobs.worker_queue import WorkerQueue
from forager.services.service import in_chunks
from forager.tracing import span

PRUNE_BATCH = 500


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that does the work: a new one, or the one its source already has."""

    job: Job
    created: bool


class Queue(WorkerQueue):
    """Enqueues jobs, lists them, and changes their state.

    Each change is one statement. It happens as a whole, or raises: NotFound for an unknown job,
    NotAllowed for a change that the state of the job does not permit.

        queue = Queue(database, settings)
        job = (await queue.enqueue(NewJob(kind="report", payload={"day": "2026-01-01"}))).job
        await queue.pause(job.id, actor="user ada")
    """

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


def log_failure(log: BoundLogger, job: Job) -> None:
    """Log the permanent failure of a job, which needs a person."""
    log.error("job failed permanently", job=str(job.id), error=job.error_message)


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
    """The error for an unknown job."""
    return NotFound(f"there is no job {job_id}", hint=Hint("{} lists jobs.", action("jobs list")))
