"""A runner: the process that runs one job under one lease.

Started by a supervisor as `python -m forager.jobs.runner FD`. Everything it does is in the
database when it is committed, so it may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import traceback
from uuid import UUID

import uvloop

from forager.db.database import RUNNER_LIMITS, Database
from forager.errors import DatabaseUnavailable, DiskFull, GiveUp, LeaseLost
from forager.jobs.context import JobContext
from forager.jobs.control import Assignment, Continue, Stop, StopCause, Tick, decode, encode
from forager.jobs.guardian import Guardian
from forager.jobs.kinds import JobKind, kind_named, load_kinds
from forager.jobs.lease import Lease
from forager.jobs.outcome import Completed, Outcome, Stopped, Waiting
from forager.jobs.queue import Queue
from forager.logs import configure_logs, get_logger
from forager.settings import Settings

log = get_logger("runner")

TICK_INTERVAL = 1.0
# a handler that was asked to stop gets this long before it is cancelled where it stands
STOP_GRACE = {
    StopCause.PAUSE: 1.0,
    StopCause.SHUTDOWN: 10.0,
    StopCause.ORPHANED: 5.0,
    StopCause.LEASE_LOST: 0.0,
}
ORPHAN_LIMIT = 15.0
RECONNECT_INTERVAL = 0.5
DISK_FULL_DELAY = 60.0


class Runner:
    """Runs a handler until the job is completed, given back, paused or lost."""

    def __init__(self, context: JobContext, kind: JobKind, queue: Queue) -> None:
        self.context = context
        self._kind = kind
        self._queue = queue

    async def run(self) -> None:
        while not await self._run_once():
            pass

    async def _run_once(self) -> bool:
        """Call the handler once and record how it ended; False to call it again."""
        try:
            return await self._settle(await self._call_handler())
        except LeaseLost as error:
            log.warning("lease lost", reason=error.message)
            return True
        except DatabaseUnavailable as error:
            # What was committed is safe, and the handler starts from there: no retry is spent.
            log.warning("database away, will go on when it is back", reason=error.message)
            await asyncio.sleep(RECONNECT_INTERVAL)
            return False
        except DiskFull as error:
            return await self._wait_for_space(error)
        except Exception as error:
            return await self._fail(error)

    async def _call_handler(self) -> Outcome:
        """The handler's outcome; one that was asked to stop and does not is cancelled."""
        handler = asyncio.ensure_future(self._kind.run(self.context))
        stopping = asyncio.ensure_future(self.context.stopping.wait())
        try:
            await asyncio.wait({handler, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not handler.done():
                cause = self.context.stop_cause or StopCause.SHUTDOWN
                await asyncio.wait({handler}, timeout=STOP_GRACE[cause])
            if not handler.done():
                handler.cancel()
                await asyncio.wait({handler})
        finally:
            stopping.cancel()
        return Stopped() if handler.cancelled() else handler.result()

    async def _settle(self, outcome: Outcome) -> bool:
        lease = self.context.lease
        if isinstance(outcome, Completed):
            await self._complete(outcome)
            return True
        if isinstance(outcome, Waiting):
            await self._queue.release(lease, reason=outcome.reason, delay=outcome.seconds)
            return True
        if self.context.stop_cause is StopCause.PAUSE:
            return await self._leave_paused()
        await self._queue.release(lease, reason=self.context.stop_cause or "stopped")
        return True

    async def _complete(self, outcome: Completed) -> None:
        context = self.context
        async with context.database.transaction() as connection:
            # the fence comes first, so that `finish` writes nothing behind a lost lease
            await connection.execute(
                "SELECT hold_lease(%s, %s)", (context.lease.job_id, context.lease.number)
            )
            reason = await outcome.finish(connection) if outcome.finish else None
            await self._queue.complete(
                connection, context.lease, stop_reason=reason or outcome.stop_reason
            )

    async def _leave_paused(self) -> bool:
        """Leave, unless the job was resumed meanwhile: then go on under the same lease."""
        if await self._queue.park(self.context.lease) is not None:
            return True
        self.context.carry_on()
        held = await self._queue.held([self.context.lease])
        return self.context.lease.job_id not in held

    async def _wait_for_space(self, error: DiskFull) -> bool:
        """Give the job back for a while; if even that cannot be written, wait here."""
        log.error("disk full, work waits", reason=error.message, retry_in=DISK_FULL_DELAY)
        try:
            await self._queue.release(
                self.context.lease, reason=error.message, delay=DISK_FULL_DELAY
            )
        except (DiskFull, DatabaseUnavailable):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.context.stopping.wait(), DISK_FULL_DELAY)
            return False
        return True

    async def _fail(self, error: Exception) -> bool:
        permanent = isinstance(error, GiveUp)
        message = str(error) if permanent else _describe(error)
        log.error("run failed", error=message, permanent=permanent)
        await self._queue.fail(self.context.lease, message, permanent=permanent)
        return True


def _describe(error: Exception) -> str:
    """The error and where it happened: the message alone rarely says enough."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (in {frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


async def run_assignment(assignment: Assignment, control: socket.socket) -> None:
    """Everything one runner does, from its first message to its last commit."""
    settings = Settings(**assignment.settings)
    lease = Lease(UUID(assignment.job_id), assignment.lease, UUID(assignment.worker_id))
    stopped_early: list[Stop] = []
    context: JobContext | None = None

    def deliver(message: Stop | Continue) -> None:
        if context is None:
            stopped_early[:] = [message] if isinstance(message, Stop) else []
        elif isinstance(message, Stop):
            context.ask_to_stop(message.cause)
        else:
            context.carry_on()

    Guardian(
        control,
        renewed_at=assignment.renewed_at,
        lease_limit=settings.lease_limit,
        orphan_grace=ORPHAN_LIMIT,
        deliver=deliver,
        loop=asyncio.get_running_loop(),
    ).start()
    ticking = asyncio.ensure_future(_tick(control))
    database = Database(
        assignment.database_url, name=f"forager runner {lease.job_id}", limits=RUNNER_LIMITS
    )
    try:
        async with database:
            queue = Queue(database, settings)
            job = await _patiently(queue, lease)
            context = JobContext(
                job, lease, database, settings, on_progress=lambda: _send(control, progress=True)
            )
            for message in stopped_early:
                context.ask_to_stop(message.cause)
            await Runner(context, kind_named(job.kind), queue).run()
    finally:
        ticking.cancel()


async def _patiently(queue: Queue, lease: Lease):  # type: ignore[no-untyped-def]
    """The job, once the database can be reached."""
    while True:
        try:
            return await queue.get(lease.job_id)
        except DatabaseUnavailable:
            await asyncio.sleep(RECONNECT_INTERVAL)


async def _tick(control: socket.socket) -> None:
    """Say that the event loop turns. Only from the loop itself, never from a thread."""
    while True:
        _send(control)
        await asyncio.sleep(TICK_INTERVAL)


def _send(control: socket.socket, *, progress: bool = False) -> None:
    # a full socket means that the supervisor does not read: ticks are not worth waiting for
    with contextlib.suppress(BlockingIOError, OSError):
        control.send(encode(Tick(progress)), socket.MSG_DONTWAIT)


def _receive_assignment(control: socket.socket) -> Assignment:
    """Read the first line, and not a byte more: the guardian reads the rest."""
    line = b""
    while not line.endswith(b"\n"):
        byte = control.recv(1)
        if not byte:
            raise SystemExit(1)  # the supervisor died before it said what to run
        line += byte
    message = decode(line)
    assert isinstance(message, Assignment)
    return message


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    assignment = _receive_assignment(control)
    configure_logs(assignment.settings["log_level"], assignment.settings["log_format"])
    load_kinds(assignment.settings["job_modules"])
    uvloop.run(run_assignment(assignment, control))


if __name__ == "__main__":
    main()
