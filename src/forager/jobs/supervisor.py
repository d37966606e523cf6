"""The supervisor: claims jobs, starts a runner for each, and monitors it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from forager.clock import local_time, wait_for_event
from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.outages import TROUBLE, Outage, listen
from forager.jobs.job import Job, Lease
from forager.jobs.kinds import load_kinds
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.store import reads
from forager.jobs.watchdog import job_services
from forager.jobs.workers import Registration
from forager.logs import get_logger
from forager.metrics.recorded import JOB_RUNS
from forager.processes.control import Assignment, StopCause
from forager.processes.identity import process_name
from forager.processes.started import StartedProcess
from forager.processes.supervised import SupervisedProcess, watch_limits
from forager.services.report import identify, run_services
from forager.settings import Settings

log = get_logger("supervisor")

# the database may be away or half open: no question to it takes longer than this
ANSWER_LIMIT = 15.0
RETRY_INTERVAL = 1.0
# a runner's lease is renewed only while it showed life this lately (or since the last renewal)
LIFE_SIGN = 5.0
# seconds of the grace period reserved for releasing the jobs of killed runners
RELEASE_RESERVE = 2.0
KILL_LIMIT = 5.0
START_DELAY = 10.0


class Supervisor:
    """Runs jobs until it is stopped. With `only`, it runs only that job."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        renders: bool = False,
        only: UUID | None = None,
        spare: StartedProcess | None = None,
    ) -> None:
        """`renders`: whether its runners have a browser. `spare`: a process from `start_runner`,
        for the first job."""
        self.worker_id = new_id()
        self.runners: dict[UUID, RunnerProcess] = {}
        self._database = database.answering_within(ANSWER_LIMIT)
        self._settings = settings
        self._renders = renders
        self._only = only
        self._spare = spare
        self._queue = Queue(self._database, settings)
        self._registration = Registration(
            self._database,
            self.worker_id,
            capacity=settings.worker_capacity,
            region=settings.region,
            # others do not wait for a worker that runs only one job
            renders=renders and only is None,
        )
        self._kinds = load_kinds(settings.job_modules)
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._last_beat = -float("inf")
        self._outage = Outage(log, "jobs wait for the database, will try again")
        self._revival = Outage(log, "the embedded database does not start")

    def stop(self) -> None:
        """Request a graceful stop: no new claims; runners commit and release their jobs."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        services = job_services(self._database, self._settings)
        identity = identify("jobs", process_name())
        async with run_services(self._database, self._settings, identity, services):
            await self._run_jobs()

    async def _run_jobs(self) -> None:
        background = [
            asyncio.ensure_future(task)
            for task in (
                # polling continues as well
                listen(self._database, reads.CHANNEL, self._wake.set),
                watch_limits(lambda: list(self.runners.values()), self._settings),
            )
        ]
        log.info("worker started", worker=str(self.worker_id), kinds=self._kinds)
        try:
            while not self._stopping.is_set():
                await self._run_round()
                for task in background:
                    if task.done():
                        task.result()  # none of them ends but by a bug
                await wait_for_event(self._wake, self._settings.poll_interval)
                self._wake.clear()
        finally:
            self._stopping.set()
            await self._shut_down()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    async def run_once(self) -> None:
        """One round: heartbeats, ended runners, states, new jobs."""
        await self._beat_if_due()
        await self._settle_ended()
        await self._follow_states()
        await self._claim()

    # --- the loop --------------------------------------------------------------------------

    async def _run_round(self) -> None:
        """Run a round, but do not let an unreachable database delay a stop.

        Nothing that it does may end a worker: runners continue until their deadline, and the next
        round starts from what the tables say. Anything else is a bug in Forager: it ends the worker
        with an error, after the runners could commit, and the service manager restarts it.
        """
        round_ = asyncio.ensure_future(self.run_once())
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({round_, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not round_.done():
                await asyncio.wait({round_}, timeout=self._release_limit())
            if round_.done():
                with self._outage:
                    round_.result()
        finally:
            stop.cancel()
            round_.cancel()
        if self._outage.lasts:
            await self._wait_out()

    async def _wait_out(self) -> None:
        # renew first of all when it is back, and find claims whose answer was lost
        self._last_beat = -float("inf")
        revival: asyncio.Future[Any] = asyncio.ensure_future(self._revive())
        stop: asyncio.Future[Any] = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({revival, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        revival.cancel()

    async def _revive(self) -> None:
        with self._revival:
            await self._database.revive()
        await asyncio.sleep(RETRY_INTERVAL)

    # --- runners ---------------------------------------------------------------------------

    async def _claim(self) -> None:
        free = self._settings.worker_capacity - len(self.runners)
        # one that lost its lease may still be dying, and its job must not run twice meanwhile
        dying = any(runner.kill_reason for runner in self.runners.values())
        if free < 1 or dying or self._stopping.is_set():
            return
        asked_at = local_time()
        jobs = await self._queue.claim(
            self.worker_id,
            kinds=self._kinds,
            limit=free,
            renders=self._renders,
            only=self._only,
        )
        for job in jobs:
            await self._start(job, asked_at)

    async def _start(self, job: Job, renewed_at: float) -> None:
        lease = Lease(job.id, job.lease, self.worker_id)
        assignment = Assignment(
            worker_id=str(self.worker_id),
            database_url=self._database.url,
            renewed_at=renewed_at,
            settings=self._settings.for_child_process(),
            work={"job_id": str(job.id), "kind": job.kind, "lease": job.lease},
        )
        try:
            runner = RunnerProcess(lease, assignment, on_exit=self._wake.set, spare=self._spare)
        except OSError as error:  # too many processes or files, or no memory: not the job's fault
            reason = f"no runner could be started: {error}"
            log.error("no runner could be started", job=str(job.id), reason=str(error))
            await self._queue.release(lease, reason=reason, delay=START_DELAY)
            return
        self.runners[job.id] = runner
        log.info("job started", job=str(job.id), kind=job.kind, lease=job.lease, pid=runner.pid)

    async def _settle_ended(self) -> None:
        for job_id, runner in list(self.runners.items()):
            if runner.exited.is_set():
                # forgotten only when recorded; during an outage, the next round tries again
                await self._settle(runner, self._queue)
                del self.runners[job_id]

    async def _settle(self, runner: RunnerProcess, queue: Queue) -> None:
        """A runner is gone. If its job is still under its lease, it did not finish: requeue."""
        job_id = runner.lease.job_id
        status = (await queue.held([runner.lease])).get(job_id)
        if status not in (Status.PROCESSING, Status.PAUSED):
            log.info("runner left", job=str(job_id), status=status)
        elif self._stopping.is_set():
            await queue.release(runner.lease, reason=StopCause.SHUTDOWN)
        elif runner.unrenewed:
            log.warning("runner ended itself: its lease was not renewed", job=str(job_id))
            await queue.release(runner.lease, reason="the lease was not renewed in time")
        else:
            JOB_RUNS.add("lost")
            log.warning("runner lost", job=str(job_id), reason=runner.how_it_ended())
            await queue.fail(runner.lease, runner.how_it_ended())

    async def _beat_if_due(self) -> None:
        now = time.monotonic()
        if now - self._last_beat < self._settings.heartbeat_interval:
            return
        await self._renew_leases()
        await self._release_unknown(self._queue)
        await self._registration.renew()
        self._last_beat = now

    async def _renew_leases(self) -> None:
        asked_at = local_time()
        within = max(LIFE_SIGN, self._settings.heartbeat_interval)
        alive = [r.lease for r in self.runners.values() if r.shows_life(within)]
        for job_id in await self._queue.heartbeat(alive):
            self.runners[job_id].renewed(asked_at)

    async def _release_unknown(self, queue: Queue) -> None:
        """Give back jobs that are ours by the table alone: the answer to the claim was lost."""
        for lease in await queue.held_by(self.worker_id):
            if lease.job_id not in self.runners:
                log.warning("gives back a job it did not know of", job=str(lease.job_id))
                await queue.release(lease, reason="the answer to the claim was lost")

    async def _follow_states(self) -> None:
        """Pass on what people did to running jobs, and end runners whose lease is lost."""
        running = [r for r in self.runners.values() if not r.exited.is_set()]
        if not running:
            return
        held = await self._queue.held([r.lease for r in running])
        for runner in running:
            status = held.get(runner.lease.job_id)
            if status is Status.PAUSED:
                runner.ask_to_stop(StopCause.PAUSE)
            elif status is Status.PROCESSING:
                runner.carry_on()
            elif status is None:
                runner.kill("lease lost")

    # --- stopping --------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        """Let runners commit and give their jobs back; kill those that take too long."""
        runners = list(self.runners.values())
        log.info("worker stops", runners=len(runners))
        for runner in runners:
            runner.ask_to_stop(StopCause.SHUTDOWN)
        await _exits(runners, self._settings.shutdown_grace - self._release_limit())
        for runner in runners:
            runner.kill()
        await _exits(runners, KILL_LIMIT)
        try:
            async with asyncio.timeout(self._release_limit()):
                await self._release_all()
        except (*TROUBLE, TimeoutError) as error:
            # a watchdog will find the jobs
            log.warning("stopped without giving jobs back", reason=str(error))
        log.info("worker stopped", worker=str(self.worker_id))

    async def _release_all(self) -> None:
        queue = Queue(self._database.answering_within(self._release_limit()), self._settings)
        for job_id, runner in list(self.runners.items()):
            await self._settle(runner, queue)
            del self.runners[job_id]
        await self._release_unknown(queue)
        await self._registration.end()

    def _release_limit(self) -> float:
        return max(0.5, min(RELEASE_RESERVE, self._settings.shutdown_grace / 4))


async def _exits(runners: list[RunnerProcess], timeout: float) -> None:
    if runners:
        exits = [asyncio.ensure_future(runner.exited.wait()) for runner in runners]
        await asyncio.wait(exits, timeout=max(0.0, timeout))
        for task in exits:
            task.cancel()


class RunnerProcess(SupervisedProcess):
    """Runs one job under one lease."""

    def __init__(
        self,
        lease: Lease,
        assignment: Assignment,
        *,
        on_exit: Callable[[], None],
        spare: StartedProcess | None = None,
    ) -> None:
        self.lease = lease
        mark = f"{lease.worker_id} {lease.job_id} {lease.number}"
        super().__init__(
            "forager.jobs", assignment, name="runner", mark=mark, on_exit=on_exit, spare=spare
        )

    def how_it_ended(self) -> str:
        ended = super().how_it_ended()
        by_itself = self.kill_reason is None and (self.exit_code or 0) >= 0
        return f"{ended} before the job was finished" if by_itself else ended
