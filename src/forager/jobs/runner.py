"""One run of a job: calls its handler under one lease, and records the result."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

from forager.clock import wait_for_event
from forager.db import outages
from forager.db.outages import retry_until_available
from forager.errors import DatabaseUnavailable, DiskFull, GiveUp, LeaseLost, error_with_type
from forager.jobs.context import JobContext
from forager.jobs.kinds import Completed, JobKind, Outcome, Paused, Stopped, Waiting
from forager.jobs.lifecycle import MOVE_BACK, MOVE_OUT, RELEASE, Status
from forager.jobs.queue import Queue, log_failure
from forager.logs import get_logger
from forager.metrics.catalog import JOB_RUNS, LEASE_LOSSES
from forager.processes.control import StopCause
from forager.tracing import Value, is_traced, span

log = get_logger("runner")

# a handler that was asked to stop gets this long before it is cancelled where it stands
STOP_GRACE = {
    StopCause.PAUSE: 1.0,
    StopCause.SHUTDOWN: 10.0,
    StopCause.ORPHANED: 5.0,
    StopCause.MOVE_OUT: 10.0,
    StopCause.MOVE_BACK: 10.0,
}
# and this long after the cancellation, before the process ends with all its jobs
CANCEL_GRACE = 3.0
DISK_FULL_DELAY = 60.0
MOVES_ON = {StopCause.MOVE_OUT: MOVE_OUT, StopCause.MOVE_BACK: MOVE_BACK}


class Runner:
    """Runs a handler until the job is completed, given back, paused or lost."""

    def __init__(
        self, context: JobContext, kind: JobKind, queue: Queue, *, leaves_release: bool = False
    ) -> None:
        """`leaves_release`: on a shutdown, the supervisor releases many jobs in one statement."""
        self.context = context
        self.release_left: StopCause | None = None
        self._leaves_release = leaves_release
        self.refused_to_stop = False
        self._kind = kind
        self._queue = queue

    async def run(self) -> None:
        """Run the job, and record how the run ended."""
        job = self.context.job
        parent = None
        if is_traced():
            parent = await retry_until_available(lambda: self._queue.trace_of(job.id), log)
        about: dict[str, Value] = {
            "job.id": str(job.id),
            "job.kind": job.kind,
            "job.lease": job.lease,
        }
        with span("run", parent=parent, attributes=about):
            while not await self._run_once():
                pass

    async def _run_once(self) -> bool:
        """Call the handler once and record how it ended; False to call it again."""
        try:
            return await self._settle(await self._call_handler())
        except LeaseLost as error:
            log.warning("lease lost", reason=error.message)
            LEASE_LOSSES.add("runner")
            return True
        except DatabaseUnavailable as error:
            # The handler resumes from its last commit: no retry is spent.
            log.warning("database unreachable, resumes when it is back", reason=error.message)
            await asyncio.sleep(outages.RETRY_INTERVAL)
            await retry_until_available(lambda: self._queue.leased([self.context.lease]), log)
            return False
        except DiskFull as error:
            return await self._wait_for_space(error)
        except Exception as error:
            return await self._fail(error)

    async def _call_handler(self) -> Outcome:
        """The handler's outcome; one that was asked to stop and does not is cancelled."""
        handler = asyncio.ensure_future(self._run_handler())
        try:
            await self._wait_for(handler)
        except asyncio.CancelledError:  # the job is dropped: wait until it can do no harm
            handler.cancel()
            await asyncio.wait({handler})
            raise
        if not handler.done():
            self.refused_to_stop = True
            return Stopped()
        return Stopped() if handler.cancelled() else handler.result()

    async def _run_handler(self) -> Outcome:
        try:
            return await self._kind.run(self.context)
        except SystemExit as error:  # it would end all jobs of this process
            raise RuntimeError(f"the handler called sys.exit({error.code})") from error

    async def _wait_for(self, handler: asyncio.Future[Any]) -> None:
        stopping: asyncio.Future[Any] = asyncio.ensure_future(self.context.stopping.wait())
        try:
            await asyncio.wait({handler, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if not handler.done():
            cause = self.context.stop_cause or StopCause.PAUSE
            await asyncio.wait({handler}, timeout=STOP_GRACE[cause])
        if not handler.done():
            handler.cancel()
            await asyncio.wait({handler}, timeout=CANCEL_GRACE)

    async def _settle(self, outcome: Outcome) -> bool:
        lease = self.context.lease
        if isinstance(outcome, Completed):
            with span("publish"):
                return await self._complete(outcome)
        if isinstance(outcome, Waiting):
            await retry_until_available(
                lambda: self._queue.release(lease, reason=outcome.reason, delay=outcome.seconds),
                log,
            )
            JOB_RUNS.add("waiting")
            return True
        if isinstance(outcome, Paused):
            return await self._pause(outcome)
        if not self.context.was_asked_to_stop:
            raise RuntimeError("the handler stopped without being asked to")
        cause = self.context.stop_cause
        if cause is None or cause is StopCause.PAUSE:
            return await self._leave_paused()
        JOB_RUNS.add("released")
        if cause is StopCause.SHUTDOWN and self._leaves_release:
            self.release_left = cause
            return True
        move = MOVES_ON.get(cause, RELEASE)
        await retry_until_available(
            lambda: self._queue.release(lease, reason=cause, move=move), log
        )
        return True

    async def _complete(self, outcome: Completed) -> bool:
        context = self.context
        try:
            # the fence comes first, so that `finish` writes nothing behind a lost lease
            async with context.transaction() as connection:
                reason = await outcome.finish(connection) if outcome.finish else None
                await self._queue.complete(
                    connection, context.lease, stop_reason=reason or outcome.stop_reason
                )
        except LeaseLost:
            # a pausing job keeps its lease, but cannot be completed before it is resumed
            return await self._leave_paused()
        JOB_RUNS.add("completed")
        return True

    async def _pause(self, outcome: Paused) -> bool:
        context = self.context
        async with context.transaction() as connection:
            paused = await self._queue.pause_leased(connection, context.lease, outcome.reason)
            if paused is not None and outcome.finish is not None:
                await outcome.finish(connection)
        return await self._leave_paused()

    async def _leave_paused(self) -> bool:
        """Exit, unless the job was resumed in the meantime: then continue under the same lease."""
        lease = self.context.lease
        if await retry_until_available(lambda: self._queue.park(lease), log) is not None:
            JOB_RUNS.add("paused")
            return True
        self.context.carry_on()
        leased = await retry_until_available(lambda: self._queue.leased([lease]), log)
        # a handler that refused to stop still runs, and must not run twice
        return self.refused_to_stop or lease.job_id not in leased

    async def _wait_for_space(self, error: DiskFull) -> bool:
        """Give the job back for a while; if even that cannot be written, wait here."""
        log.error("disk full, work waits", reason=error.message, retry_in=DISK_FULL_DELAY)
        try:
            await self._queue.release(
                self.context.lease, reason=error.message, delay=DISK_FULL_DELAY
            )
        except (DiskFull, DatabaseUnavailable):
            await wait_for_event(self.context.stopping, DISK_FULL_DELAY)
            return self.context.stopping.is_set()
        return True

    async def _fail(self, error: Exception) -> bool:
        permanent = isinstance(error, GiveUp)
        message = str(error) if permanent else _describe(error)  # with its hint
        log.error("run failed", error=message, permanent=permanent)
        if self.context.on_failure is not None:
            await self.context.on_failure()
        failed = await retry_until_available(
            lambda: self._queue.fail(self.context.lease, message, permanent=permanent), log
        )
        if failed is not None and failed.status is Status.FAILED:
            log_failure(log, failed)
        JOB_RUNS.add("failed")
        return True


def _describe(error: Exception) -> str:
    """The error and where it happened: the message alone rarely says enough."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (in {frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    return f"{error_with_type(error)}{where}"
