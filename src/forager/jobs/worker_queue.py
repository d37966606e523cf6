"""The queue as workers use it: claims, leases, and the ends of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.db.schema import SCHEMA_VERSION
from forager.errors import LeaseLost
from forager.extract.text import storable_message
from forager.jobs import lifecycle
from forager.jobs.job import Job, Lease
from forager.jobs.lifecycle import Choice, Status, Transition
from forager.jobs.store import leases as lease_rows
from forager.jobs.store import moves as job_rows
from forager.settings import Settings

# characters of the message of an error
MAX_MESSAGE = 8_000


class WorkerQueue:
    """Claims jobs for a worker, renews their leases, and ends their runs.

    Every change names the lease under which it is made: a worker whose job was taken over by
    another one gets None, or LeaseLost, and has changed nothing.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self.settings = settings

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


def retry_delays(settings: Settings) -> dict[str, float]:
    """The delays between retries, as parameters of a move."""
    return {"retry_delay": settings.retry_delay, "retry_delay_max": settings.retry_delay_max}
