"""The supervisor: claims jobs, assigns them to runners, and monitors these."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any
from uuid import UUID

from forager.backoff import jittered
from forager.clock import local_time, wait_for_event
from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.outages import TRANSIENT_ERRORS, Outage, listen
from forager.errors import error_text
from forager.jobs.job import Job, Lease
from forager.jobs.kinds import load_kinds
from forager.jobs.lifecycle import Status
from forager.jobs.placement import Runners
from forager.jobs.queue import Queue
from forager.jobs.runners import HostedJob, RunnerProcess
from forager.jobs.settling import settle
from forager.jobs.store import reads
from forager.jobs.watchdog import job_services
from forager.jobs.workers import Registration
from forager.logs import get_logger
from forager.processes.control import StopCause
from forager.processes.identity import process_name
from forager.processes.signals import time_to_finish
from forager.processes.started import StartedProcess
from forager.processes.supervised import watch_limits
from forager.services.report import identify, run_services
from forager.settings import Settings

log = get_logger("supervisor")

# the database may be away or half open: no question to it takes longer than this
ANSWER_LIMIT = 15.0
RETRY_INTERVAL = 1.0
# a runner's lease is renewed only while it showed life this lately (or since the last renewal)
LIFE_SIGN = 5.0
# seconds for releasing the jobs of killed runners
RELEASE_RESERVE = 2.0
KILL_LIMIT = 5.0
START_DELAY = 10.0
# a worker without jobs polls this many times less often
IDLE_POLLS = 5.0
# notifications name the jobs that were moved; all are read this often, in case one was lost
STATE_POLL = 3.0
# how often jobs that have ended are given back while the worker stops
SETTLE_INTERVAL = 1.0


class Supervisor:
    """Runs jobs until it is stopped. With `only`, it runs only that job.

    When it stops, its jobs go back to the queue with all that they have committed.

        supervisor = Supervisor(database, settings)
        running = asyncio.create_task(supervisor.run())
        ...
        supervisor.stop()
        await running
    """

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
        self.runners = Runners(
            self.worker_id, settings, on_change=lambda: self._wake.set(), spare=spare
        )
        self._database = database.with_answer_limit(ANSWER_LIMIT)
        self._settings = settings
        self._renders = renders
        self._only = only
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
        self._last_beat = self._last_poll = -float("inf")
        self._pause = settings.poll_interval
        self._moved: set[UUID] = set()
        self._outage = Outage(log, "jobs wait for the database, will try again")
        self._revival = Outage(log, "the embedded database does not start")

    def stop(self) -> None:
        """Request a graceful stop: no new claims; runners commit and release their jobs."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Run jobs until `stop` is called. Outages of the database are waited for."""
        services = job_services(self._database, self._settings)
        identity = identify("jobs", process_name())
        async with run_services(self._database, self._settings, identity, services):
            await self._run_jobs()

    async def _run_jobs(self) -> None:
        background = [
            asyncio.ensure_future(task)
            for task in (
                # polling continues as well
                listen(self._database, reads.CHANNEL, self._note_move),
                watch_limits(lambda: list(self.runners.all), self._settings),
            )
        ]
        log.info("worker started", worker=str(self.worker_id), kinds=list(self._kinds))
        try:
            while not self._stopping.is_set():
                await self._run_round()
                for task in background:
                    if task.done():
                        task.result()  # none of them ends but by a bug
                await wait_for_event(self._wake, self._pause)
                self._wake.clear()
        finally:
            self._stopping.set()
            await self._shut_down()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    async def run_once(self) -> None:
        """One round: heartbeats, ended runners, states, new jobs."""
        self._pause = self._settings.poll_interval
        await self._beat_if_due()
        await self._settle_ended()
        await self._follow_states()
        self._registration.brake = self.runners.brake()
        if self._only is None and not any(self.runners.jobs()):
            await self._claim_if_pending()
        else:
            await self._claim()
        self.runners.discard_spare()

    async def _claim_if_pending(self) -> None:
        """Claim for a worker without jobs, if any are pending: a claim costs more than the check.

        While there are none, poll less often: a notification wakes it earlier.
        """
        due = await self._database.run(reads.select_next_due)
        if due is not None:
            await self._claim()
        if not any(self.runners.jobs()):
            interval = self._settings.poll_interval
            longest = jittered(min(IDLE_POLLS * interval, self._settings.heartbeat_interval))
            self._pause = max(interval, longest if due is None else min(due, longest))

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

    # --- claims ----------------------------------------------------------------------------

    async def _claim(self) -> None:
        if self._registration.brake is not None:
            return
        for own in (False, True):
            if limit := self.runners.free(own=own):
                await self._claim_for(own, limit)

    async def _claim_for(self, own: bool, limit: int) -> None:
        if self._stopping.is_set():
            return
        asked_at = local_time()
        # one that lost its lease may still be ending, and its job must not run twice meanwhile
        known = [job.id for _, job in self.runners.jobs()]
        jobs = await self._queue.claim(
            self.worker_id,
            kinds=list(self._kinds),
            limit=limit,
            renders=self._renders,
            only=self._only,
            own_runner=own,
            besides=known,
        )
        for job in jobs:
            await self._start(job, asked_at)
        if len(jobs) == limit:
            self._wake.set()

    async def _start(self, job: Job, renewed_at: float) -> None:
        try:
            runner = self.runners.place(job, self._kinds[job.kind], self._database.url, renewed_at)
        except OSError as error:  # too many processes or files, or no memory: not the job's fault
            reason = f"no runner could be started: {error_text(error)}"
            log.error("no runner could be started", job=str(job.id), reason=error_text(error))
            lease = Lease(job.id, job.lease, self.worker_id)
            await self._queue.release(lease, reason=reason, delay=START_DELAY)
            return
        log.info("job started", job=str(job.id), kind=job.kind, lease=job.lease, pid=runner.pid)

    # --- ends ------------------------------------------------------------------------------

    async def _settle_ended(self, queue: Queue | None = None) -> None:
        """Record the end of jobs and runners. What cannot be recorded now is tried again."""
        queue = queue or self._queue
        for runner in list(self.runners.all):
            has_exited = runner.exited.is_set()
            ended = [job for job in runner.jobs.values() if has_exited or job.ended]
            if ended:
                await settle(runner, ended, queue, stopping=self._stopping.is_set())
                for job in ended:
                    runner.forget(job)
            if has_exited:
                self.runners.all.remove(runner)
        self.runners.retire_idle()

    # --- leases and states -----------------------------------------------------------------

    async def _beat_if_due(self) -> None:
        now = time.monotonic()
        if now - self._last_beat < self._settings.heartbeat_interval:
            return
        await self._renew_leases()
        await self._release_unknown(self._queue)
        await self._registration.renew()
        self._move_back_survivors(now)
        self._last_beat = now

    async def _renew_leases(self) -> None:
        asked_at = local_time()
        within = max(LIFE_SIGN, self._settings.heartbeat_interval)
        alive = [
            job.lease
            for runner, job in self.runners.jobs()
            if job.is_leased and runner.shows_life(within)
        ]
        renewed = await self._queue.heartbeat(alive)
        for runner in self.runners.all:
            if jobs := [job for job in runner.jobs if job in renewed]:
                runner.renewed(jobs, asked_at)

    async def _release_unknown(self, queue: Queue) -> None:
        """Give back jobs that are ours by the table alone: the answer to the claim was lost."""
        known = {job.id for _, job in self.runners.jobs()}
        unknown = [
            lease for lease in await queue.leased_by(self.worker_id) if lease.job_id not in known
        ]
        if unknown:
            log.warning("gives back jobs it did not know of", jobs=len(unknown))
            await queue.release_many(unknown, reason="the answer to the claim was lost")

    def _move_back_survivors(self, now: float) -> None:
        """Jobs that ran alone because of lost runners, and do well, share a runner again."""
        for runner, job in self.runners.jobs():
            if runner.own and job.stop_sent is None and job.has_survived(now):
                runner.ask_job_to_stop(job, StopCause.MOVE_BACK)

    def _note_move(self, payload: str | None) -> None:
        if payload:
            self._moved.add(UUID(payload))
        self._wake.set()

    async def _follow_states(self) -> None:
        """Pass on what people did to running jobs, and drop those whose lease is lost."""
        now = time.monotonic()
        is_due = now - self._last_poll >= STATE_POLL
        moved, self._moved = self._moved, set()
        running = [
            (runner, job)
            for runner, job in self.runners.jobs()
            if job.is_leased and not runner.exited.is_set() and (is_due or job.id in moved)
        ]
        if running:
            leased = await self._queue.leased([job.lease for _, job in running])
            for runner, job in running:
                _follow(runner, job, leased.get(job.id))
        if is_due:
            self._last_poll = now

    # --- stopping --------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        """Let runners commit and give their jobs back; kill those that take too long."""
        runners = list(self.runners.all)
        log.info("worker stops", runners=len(runners))
        for runner in runners:
            runner.ask_to_stop(StopCause.SHUTDOWN)
        end = time.monotonic() + time_to_finish(self._settings.shutdown_grace)
        while any(not runner.exited.is_set() for runner in runners):
            if (left := end - time.monotonic()) <= 0:
                break
            await _exits(runners, min(left, SETTLE_INTERVAL))
            with contextlib.suppress(*TRANSIENT_ERRORS, TimeoutError):
                await self._release_ended()
        for runner in runners:
            runner.kill()
        await _exits(runners, KILL_LIMIT)
        try:
            await self._release_ended(last=True)
        except (*TRANSIENT_ERRORS, TimeoutError) as error:
            # a watchdog will find the jobs
            log.warning("stopped without giving jobs back", reason=error_text(error))
        log.info("worker stopped", worker=str(self.worker_id))

    async def _release_ended(self, *, last: bool = False) -> None:
        """Give back the jobs that have ended; the last time, all that are left."""
        limit = self._release_limit()
        queue = Queue(self._database.with_answer_limit(limit), self._settings)
        async with asyncio.timeout(limit):
            await self._settle_ended(queue)
            if last:
                await self._release_unknown(queue)
                await self._registration.end()

    def _release_limit(self) -> float:
        return max(0.5, min(RELEASE_RESERVE, self._settings.shutdown_grace / 4))


def _follow(runner: RunnerProcess, job: HostedJob, status: Status | None) -> None:
    if status is Status.PAUSED:
        runner.ask_job_to_stop(job, StopCause.PAUSE)
    elif status is Status.PROCESSING:
        runner.carry_on(job)
    elif status is None:
        runner.drop(job)


async def _exits(runners: list[RunnerProcess], timeout: float) -> None:
    if runners:
        exits = [asyncio.ensure_future(runner.exited.wait()) for runner in runners]
        await asyncio.wait(exits, timeout=max(0.0, timeout))
        for task in exits:
            task.cancel()
