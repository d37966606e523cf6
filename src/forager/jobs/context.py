"""The context of a handler: its job, commits under the lease, and requests to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from forager.db.batch import batch
from forager.db.database import Connection, Database
from forager.jobs.job import Checkpoint, Job, Lease
from forager.jobs.lifecycle import Status
from forager.jobs.shared import SharedServices
from forager.jobs.store import leases, moves, reads
from forager.metrics.catalog import COMMIT_SECONDS
from forager.processes.control import StopCause
from forager.settings import Settings

# a job that uses more than this part of the memory of its runner gets its own runner
MEMORY_SHARE = 1 / 8


class JobContext:
    """One run of one job: its payload, its commits, and requests to stop.

    A handler writes only inside `commit`, which stores everything or nothing. It raises LeaseLost
    if another worker has taken the job over: do not catch this error, because nothing that this
    run writes is stored any more.

        async with context.commit() as connection:
            await connection.execute("INSERT INTO lengths VALUES (%s)", (len(word),))
            await context.save(connection, processed=1, pending=9, data={"last": word})
    """

    def __init__(
        self,
        job: Job,
        lease: Lease,
        database: Database,
        settings: Settings,
        *,
        shared: SharedServices | None = None,
        alone: bool = True,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """`shared`: the services of the runner, which outlive this job. `alone`: whether it is the
        only job of its runner."""
        self.job = job
        self.lease = lease
        self.database = database
        self.settings = settings
        self.shared = SharedServices() if shared is None else shared
        # an estimate of the handler: with too much of it, the job moves to its own runner
        self.memory_mb = 0.0
        # called before a run that failed is recorded, while the lease is still valid
        self.on_failure: Callable[[], Awaitable[None]] | None = None
        self._alone = alone
        self.stopping = asyncio.Event()
        self.was_asked_to_stop = False
        self._causes: list[StopCause] = []
        self._on_progress = on_progress

    @property
    def stop_cause(self) -> StopCause | None:
        """The first cause to stop that was not revoked."""
        return self._causes[0] if self._causes else None

    def ask_to_stop(self, cause: StopCause) -> None:
        """Ask the handler to commit what it has and return."""
        if cause not in self._causes:
            self._causes.append(cause)
        self.was_asked_to_stop = True
        self.stopping.set()

    def carry_on(self) -> None:
        """Revoke a pause. Any other cause stays."""
        if StopCause.PAUSE in self._causes:
            self._causes.remove(StopCause.PAUSE)
        if not self._causes:
            self.stopping.clear()

    @asynccontextmanager
    async def commit(self) -> AsyncIterator[Connection]:
        """A transaction only the holder of the lease can make; a commit is a checkpoint.

        All statements leave in one round trip, so results can be read only after the block. The
        fence is the first of them: behind a lost lease nothing is executed.
        """
        began = time.perf_counter()
        async with self.database.connection() as connection:
            async with batch(connection):
                fence = await leases.hold_lease(connection, self.lease)
                yield connection
            row = await fence.fetchone()
        COMMIT_SECONDS.observe(time.perf_counter() - began)
        self._on_progress()
        if row is not None and row[0] == Status.PAUSED:
            self.ask_to_stop(StopCause.PAUSE)
        elif not self._alone and self.memory_mb > self._memory_share:
            self.ask_to_stop(StopCause.MOVE_OUT)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction under the lease whose results can be read inside the block."""
        async with self.database.transaction() as connection:
            await leases.hold_lease(connection, self.lease)
            yield connection

    async def update_progress(self, connection: Connection, percentage: int) -> None:
        """Write the progress of the job inside a commit; it never goes back."""
        await leases.update_progress(connection, self.lease.job_id, percentage)

    async def can_hand_over(self) -> bool:
        """Whether another worker renders, and this one does not."""
        return await self.database.run(
            reads.can_hand_over,
            self.lease.job_id,
            self.lease.worker_id,
            stale_after=self.settings.stale_after,
        )

    @property
    def _memory_share(self) -> float:
        return self.settings.job_memory_limit_mb * MEMORY_SHARE

    async def assign_source(self, source_id: str, *, host: str, payload: dict[str, Any]) -> bool:
        """Assign a source to a job that has none; False while the source has an active job."""
        try:
            async with self.transaction() as connection:
                await moves.assign_source(
                    connection, self.lease.job_id, source_id, host=host, payload=payload
                )
        except psycopg.errors.UniqueViolation:
            return False
        return True

    async def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint that `save` wrote; None for a job that starts."""
        return await self.database.run(leases.select_checkpoint, self.lease.job_id)

    async def save(
        self, connection: Connection, *, processed: int, pending: int, data: dict[str, Any]
    ) -> None:
        """Write counters and checkpoint inside a commit; 100 % is for completed jobs only."""
        whole = processed + pending
        percentage = min(99, 100 * processed // whole) if whole else 0
        await leases.save_progress(
            connection,
            self.lease.job_id,
            processed=processed,
            pending=pending,
            percentage=percentage,
            checkpoint=data,
        )
