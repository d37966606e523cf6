"""One run: start the cluster, inject faults, let it recover, and check the promises."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from chaos.cluster import Cluster, running_cluster
from chaos.control import Control
from chaos.faults import FAULTS, Fault
from chaos.load import busy_cores
from chaos.monkey import Done, Monkey
from chaos.promises import Promises
from chaos.randomness import generator_for
from chaos.reader import Reader
from chaos.reaper import start_reaper
from chaos.recovery import Recovery, recoveries, refetched
from chaos.requests import Budget, excess, most_at_once
from chaos.site import Site
from chaos.store import checks, services
from chaos.user import ApiUnavailable, User
from chaos.violation import Promise, Violation
from chaos.world import World
from forager.archive.storage import open_storage
from forager.db.outages import retry_until_available
from forager.errors import DatabaseUnavailable, DiskFull
from forager.logs import get_logger

CHECK_INTERVAL = 1.0
POLL_INTERVAL = 0.2
FIRST_PAGES = 50
PROGRESS_LIMIT = 10.0
START_LIMIT = 300.0
# a disk may be full on purpose
UNAVAILABLE = (DatabaseUnavailable, DiskFull)
BUDGET = Budget(delay=0.02, concurrency=6)


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run; the same plan injects the same faults."""

    seed: int
    faults: int = 60
    seconds: float = 120.0
    workers: int = 3
    # jobs of a worker at the same time
    capacity: int = 3
    hosts: int = 4
    pages: int = 3000
    products: int = 60
    budget: Budget = BUDGET
    lost_answers: float = 0.005
    # processes that load the cores
    load: int = 0
    # names, separated by commas
    switch: str = ""
    kinds: Sequence[Fault] = FAULTS
    # inject these kinds one after another, not by chance
    in_order: bool = False
    # how long the work may take to finish after the last fault
    recovery_limit: float = 300.0
    # a promise that is broken on purpose needs to be detected only once
    until_violation: bool = False
    # the violations that end such a run; by default any
    expected: frozenset[Promise] = frozenset()
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements and violations of a run."""

    plan: Plan
    seconds: float
    done: list[Done]
    recoveries: list[Recovery]
    lost_answers: int
    checks: int
    lists_read: int
    jobs: dict[str, int]
    pages: int
    requests: int
    refetched: int
    messages: int
    messages_twice: int
    worst_excess: float
    most_at_once: int
    violations: list[Violation] = field(default_factory=list)


# called with the phase of a run and its numbers by name
ShowProgress = Callable[[str, dict[str, int]], None]


async def run(plan: Plan, show_progress: ShowProgress = lambda *_: None) -> Result:
    site = Site(plan.seed, hosts=plan.hosts, pages=plan.pages, products=plan.products)
    with scratch_folder(keep=plan.keep) as folder, site.served(), busy_cores(folder, plan.load):
        async with running_cluster(
            folder, workers=plan.workers, capacity=plan.capacity, switch=plan.switch
        ) as cluster:
            return await _Run(plan, site, cluster, show_progress).go()


class _Run:
    def __init__(
        self, plan: Plan, site: Site, cluster: Cluster, show_progress: ShowProgress
    ) -> None:
        self._plan = plan
        self._site = site
        self._cluster = cluster
        self._show_progress = show_progress
        self._control = Control(cluster.folder)
        self._promises = Promises(
            cluster.database,
            site,
            plan.budget,
            open_storage(cluster.folder / "home" / "archive"),
            self._control,
        )
        self._user = User(site, cluster.api_port, plan.budget)
        self._reader = Reader(self._user, cluster.database, self._promises.violations, plan.seed)
        world = World(site, cluster, self._control, self._user, generator_for(plan.seed, "world"))
        self._monkey = Monkey(
            world, plan.seed, faults=plan.kinds, in_order=plan.in_order, progress=self._progress
        )
        self._last_commit = 0
        self._phase = "starting"

    async def go(self) -> Result:
        started = time.monotonic()
        async with self._user:
            begun = await self._database_time()
            await self._user.set_up()
            beside = (
                self._user.keep_busy(),
                self._reader.keep_reading(),
                self._keep_checking(),
                self._keep_showing_progress(),
            )
            async with _in_background(*beside):
                await self._unless_found(self._inject_and_recover())
            self._phase = "judging"
            if not self._is_found:
                await self._promises.check_at_the_end(self._user.rounds, begun)
        return await self._result(time.monotonic() - started)

    @property
    def _is_found(self) -> bool:
        violations = self._promises.violations
        expected = self._plan.expected
        is_found = all(map(violations.of, expected)) if expected else bool(violations.found)
        return self._plan.until_violation and is_found

    async def _unless_found(self, work: Coroutine[Any, Any, None]) -> None:
        """Continue until the work is done or the expected violation is found."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and not self._is_found:
                await asyncio.wait({task}, timeout=POLL_INTERVAL)
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _inject_and_recover(self) -> None:
        await self._inject_faults()
        await self._recover()

    async def _inject_faults(self) -> None:
        """Inject faults from the first commits on, spread over the duration of the run."""
        self._site.prices_change = True
        await self._until(self._has_begun, START_LIMIT)
        self._phase = "breaking"
        self._control.lose_answers(self._plan.lost_answers)
        every = self._plan.seconds / self._plan.faults if self._plan.faults else 0.0
        await self._monkey.inject(self._plan.faults, every=every)
        self._control.lose_answers(0.0)

    async def _recover(self) -> None:
        """Wait until all jobs and tasks have finished and all messages are delivered."""
        self._phase = "recovering"
        self._user.orders = False
        self._site.prices_change = False
        since = await self._database_time()

        async def nothing_left() -> bool:
            async with self._cluster.database.connection() as connection:
                jobs = await checks.select_jobs(connection)
                stale = await checks.count_stale_tasks(connection, since)
            finished = {job.source_id for job in jobs if job.status == "completed"}
            self._user.orders = len(finished) < len(self._site.docs)
            ended = all(job.status in ("completed", "cancelled") for job in jobs)
            return ended and not stale and not self._user.orders

        async def has_ticked() -> bool:
            async with self._cluster.database.connection() as connection:
                return await services.has_ticked(connection, since)

        if not await self._until(has_ticked, self._plan.recovery_limit):
            self._promises.violations.add(Promise.SERVICES, "no scheduler tick after the faults")
        if not await self._until(nothing_left, self._plan.recovery_limit):
            self._note_stuck("jobs or tasks did not finish")
        await self._stop_tasks()

    async def _stop_tasks(self) -> None:
        async def all_settled() -> bool:
            with suppress(ApiUnavailable):
                await self._user.hold_tasks()
            async with self._cluster.database.connection() as connection:
                return await checks.count_unsettled(connection) == 0

        if not await self._until(all_settled, self._plan.recovery_limit):
            self._note_stuck("tasks or messages were not settled")

    def _note_stuck(self, message: str) -> None:
        waited = f"{message} within {self._plan.recovery_limit:g} s after the last fault"
        self._promises.violations.add(Promise.NOTHING_LOST, waited)

    # --- background work -------------------------------------------------------------------------

    async def _keep_checking(self) -> None:
        while True:
            with suppress(*UNAVAILABLE):
                await self._promises.check()
            await asyncio.sleep(CHECK_INTERVAL)

    async def _keep_showing_progress(self) -> None:
        while True:
            numbers = {
                "faults": len(self._monkey.done),
                "requests": self._site.requests,
                "lists read": self._reader.lists,
                "checks": self._promises.checks,
                "violations": len(self._promises.violations),
            }
            self._show_progress(self._phase, numbers)
            await asyncio.sleep(POLL_INTERVAL)

    async def _progress(self) -> None:
        """Wait for a new commit since the last fault, with a time limit."""

        async def has_progressed() -> bool:
            async with self._cluster.database.connection() as connection:
                last = await checks.select_last_commit(connection)
            has_grown, self._last_commit = last > self._last_commit, last
            return has_grown

        await self._until(has_progressed, PROGRESS_LIMIT)

    async def _has_begun(self) -> bool:
        first = min(FIRST_PAGES, self._plan.pages // self._plan.hosts // 3)
        return all(len(host.log) >= first for host in self._site.docs)

    async def _until(self, ask: Callable[[], Coroutine[Any, Any, bool]], limit: float) -> bool:
        """Poll until true, also while the database is unavailable; False after the time limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while True:
                    with suppress(*UNAVAILABLE):
                        if await ask():
                            return True
                    await asyncio.sleep(POLL_INTERVAL)
        return False

    async def _database_time(self) -> datetime:
        """The time of the database, which may still recover from a fault."""

        async def ask() -> datetime:
            async with self._cluster.database.connection() as connection:
                return await checks.select_now(connection)

        async with asyncio.timeout(self._plan.recovery_limit):
            return await retry_until_available(ask, get_logger("chaos"))

    # --- the result ------------------------------------------------------------------------------

    async def _result(self, seconds: float) -> Result:
        async with self._cluster.database.connection() as connection:
            commits = await checks.select_commits(connection)
            jobs = await checks.select_jobs(connection)
            settled = [
                await checks.select_outcomes(connection, job.id)
                for job in jobs
                if job.status == "completed"
            ]
        statuses = [job.status for job in jobs]
        site = self._site
        return Result(
            plan=self._plan,
            seconds=seconds,
            done=self._monkey.done,
            recoveries=recoveries(self._monkey.done, commits),
            lost_answers=self._control.count_lost_answers(),
            checks=self._promises.checks,
            lists_read=self._reader.lists,
            jobs={status: statuses.count(status) for status in sorted(set(statuses))},
            pages=sum(map(len, settled)),
            requests=site.requests,
            refetched=refetched(site).total(),
            messages=len(site.receiver.taken),
            messages_twice=site.receiver.twice,
            worst_excess=max(excess(host.log, self._plan.budget) for host in site.hosts),
            most_at_once=max(most_at_once(host.log) for host in site.hosts),
            violations=list(self._promises.violations.found),
        )


@asynccontextmanager
async def _in_background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work in the background of the block; an error in it ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


@contextmanager
def scratch_folder(*, keep: bool) -> Iterator[Path]:
    """A folder for one run, with a reaper that cleans up if this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="forager-chaos-"))
    reaper = start_reaper(folder)
    try:
        yield folder
    finally:
        reaper.kill()
        reaper.communicate()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
