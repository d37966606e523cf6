"""The supervisor: claims jobs, starts a runner for each, and watches over them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from forager import __version__
from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.schema import SCHEMA_VERSION
from forager.errors import DatabaseUnavailable, DiskFull
from forager.jobs import store, workers
from forager.jobs.clock import awake_and_asleep
from forager.jobs.control import Assignment, Stop, StopCause
from forager.jobs.job import Job
from forager.jobs.kinds import load_kinds
from forager.jobs.lease import Lease
from forager.jobs.lifecycle import Status
from forager.jobs.limits import broken_limit
from forager.jobs.process import RunnerProcess
from forager.jobs.queue import Queue
from forager.jobs.upkeep import Upkeep
from forager.jobs.watchdog import Watchdog
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("supervisor")

# the database may be away or half open: no question to it takes longer than this
ANSWER_LIMIT = 20.0
RETRY_INTERVAL = 1.0
# between two looks this long something stopped us too, and nobody's silence means anything
OWN_GAP = 5.0


class Supervisor:
    """Runs jobs until told to stop. `only` makes it run that one job and no other."""

    def __init__(self, database: Database, settings: Settings, *, only: UUID | None = None) -> None:
        self.worker_id = new_id()
        self.runners: dict[UUID, RunnerProcess] = {}
        self._database = database
        self._settings = settings
        self._only = only
        self._queue = Queue(database, settings)
        self._kinds = load_kinds(settings.job_modules)
        self._wake = asyncio.Event()
        self._stopping = False
        self._last_beat = self._last_look = -float("inf")
        self._note: str | None = None

    def stop(self) -> None:
        """Ask for a graceful stop: no new claims, runners commit and give their jobs back."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        background = [
            asyncio.ensure_future(task)
            for task in (
                self._listen(),
                Watchdog(self._database, self._settings).run(),
                Upkeep(self._queue).run(),
            )
        ]
        log.info("worker started", worker=str(self.worker_id), kinds=self._kinds)
        try:
            while not self._stopping:
                await self._look_safely(self.run_once())
                await self._nap()
            await self._shut_down()
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            for runner in self.runners.values():
                runner.kill()

    async def run_once(self) -> None:
        """One look at everything: ended runners, limits, heartbeats, states, new jobs."""
        self._forgive_own_gap()
        await self._settle_ended()
        self._enforce_limits()
        await self._beat_if_due()
        await self._follow_states()
        await self._claim()

    # --- the loop --------------------------------------------------------------------------

    async def _look_safely(self, look: Coroutine[Any, Any, None]) -> None:
        """Nothing the database does may end a worker; runners go on under their own deadline."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                await look
        except (DatabaseUnavailable, DiskFull, TimeoutError) as error:
            reason = str(error) or f"no answer within {ANSWER_LIMIT:g} s"
            log.warning("database away, will try again", reason=reason)
            await self._revive()

    async def _revive(self) -> None:
        try:
            await self._database.revive()
        except DatabaseUnavailable as error:
            log.error("the embedded database does not start", reason=str(error))
        await asyncio.sleep(RETRY_INTERVAL)

    async def _nap(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), self._settings.poll_interval)
        self._wake.clear()

    async def _listen(self) -> None:
        """Wake the loop on every notification. Polling goes on all the same."""
        while True:
            try:
                async with self._database.listening(store.CHANNEL) as connection:
                    self._wake.set()  # what was sent while we did not listen is not lost
                    async for _ in connection.notifies():
                        self._wake.set()
            except (DatabaseUnavailable, DiskFull):
                await asyncio.sleep(RETRY_INTERVAL)

    def _forgive_own_gap(self) -> None:
        now = time.monotonic()
        if now - self._last_look > OWN_GAP:
            for runner in self.runners.values():
                runner.last_tick = runner.last_progress = now
        self._last_look = now

    # --- runners ---------------------------------------------------------------------------

    async def _claim(self) -> None:
        free = self._settings.worker_capacity - len(self.runners)
        if free < 1 or self._stopping:
            return
        asked_at = awake_and_asleep()
        jobs = await self._queue.claim(
            self.worker_id, kinds=self._kinds, limit=free, only=self._only
        )
        for job in jobs:
            self._start(job, asked_at)
        if len(jobs) == free:
            self._wake.set()

    def _start(self, job: Job, renewed_at: float) -> None:
        lease = Lease(job.id, job.lease, self.worker_id)
        assignment = Assignment(
            job_id=str(job.id),
            lease=job.lease,
            worker_id=str(self.worker_id),
            database_url=self._database.url,
            renewed_at=renewed_at,
            settings=self._settings.model_dump(mode="json", exclude={"database_url"}),
        )
        runner = RunnerProcess.start(lease, assignment)
        self.runners[job.id] = runner
        asyncio.ensure_future(self._wake_on_exit(runner))  # noqa: RUF006 - ends with the runner
        log.info("job started", job=str(job.id), kind=job.kind, lease=job.lease, pid=runner.pid)

    async def _wake_on_exit(self, runner: RunnerProcess) -> None:
        await runner.exited.wait()
        self._wake.set()

    async def _settle_ended(self) -> None:
        for job_id, runner in list(self.runners.items()):
            if runner.exited.is_set():
                await self._settle(runner)
                del self.runners[job_id]

    async def _settle(self, runner: RunnerProcess) -> None:
        """A runner is gone. If its job is still under its lease, it did not finish: requeue."""
        held = await self._queue.held([runner.lease])
        status = held.get(runner.lease.job_id)
        if status not in (Status.PROCESSING, Status.PAUSED):
            log.info("runner left", job=str(runner.lease.job_id), status=status)
            return
        if self._stopping:
            await self._queue.release(runner.lease, reason=StopCause.SHUTDOWN)
            return
        log.warning("runner lost", job=str(runner.lease.job_id), reason=runner.how_it_ended())
        await self._queue.fail(runner.lease, runner.how_it_ended())

    def _enforce_limits(self) -> None:
        for runner in self.runners.values():
            reason = broken_limit(runner, self._settings)
            if reason is not None:
                runner.kill(reason)

    async def _beat_if_due(self) -> None:
        now = time.monotonic()
        if now - self._last_beat < self._settings.heartbeat_interval:
            return
        asked_at = awake_and_asleep()
        alive = [r.lease for r in self.runners.values() if not r.exited.is_set()]
        for job_id in await self._queue.heartbeat(alive):
            self.runners[job_id].renewed(asked_at)
        await self._register()
        self._last_beat = now

    async def _follow_states(self) -> None:
        """Pass on what people did to running jobs, and end runners whose lease is lost."""
        running = [r for r in self.runners.values() if not r.exited.is_set()]
        if not running:
            return
        held = await self._queue.held([r.lease for r in running])
        for runner in running:
            status = held.get(runner.lease.job_id)
            if status is Status.PAUSED:
                runner.ask_to_stop(Stop(StopCause.PAUSE))
            elif status is Status.PROCESSING:
                runner.carry_on()
            elif status is None:
                runner.kill("lease lost")

    async def _register(self) -> None:
        """Show this worker to others; a database of another schema is a reason to say so."""
        async with self._database.connection() as connection:
            version = await workers.register(
                connection,
                worker_id=self.worker_id,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=__version__,
                capacity=self._settings.worker_capacity,
                state="stopping" if self._stopping else "running",
                note=self._note,
            )
        note = None
        if version != SCHEMA_VERSION:
            note = (
                f"claims nothing: the database has schema {version}, this worker knows"
                f" {SCHEMA_VERSION}; update and restart it"
            )
        if note and note != self._note:
            log.error("worker of another schema version", reason=note)
        self._note = note

    # --- stopping --------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        """Let runners commit and give their jobs back; kill those that take too long."""
        for runner in self.runners.values():
            runner.ask_to_stop(Stop(StopCause.SHUTDOWN))
        exits = [asyncio.ensure_future(r.exited.wait()) for r in self.runners.values()]
        if exits:
            log.info("worker stops, waiting for runners", runners=len(exits))
            await asyncio.wait(exits, timeout=self._settings.shutdown_grace)
        for runner in self.runners.values():
            runner.kill()
        await asyncio.gather(*exits)
        await self._look_safely(self._settle_ended())
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(DatabaseUnavailable, DiskFull))
            connection = await stack.enter_async_context(self._database.connection())
            await workers.unregister(connection, self.worker_id)
        log.info("worker stopped", worker=str(self.worker_id))
