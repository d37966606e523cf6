"""The activity of crawls between their commits: their pace, and what they wait for.

One report of a runner covers all its crawls, in one statement.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Self

import psycopg

from forager.clock import wait_for_event
from forager.crawl.extraction.rereading import LEARNING
from forager.crawl.ledger import CrawlState
from forager.crawl.store import state as store
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull
from forager.fetch.budgets.view import BudgetView
from forager.fetch.budgets.waits import HostWait
from forager.fetch.robots.gate import RobotsGate
from forager.jobs.context import JobContext
from forager.jobs.job import Lease
from forager.jobs.kinds import Outcome, Paused, Waiting
from forager.logs import last_lines
from forager.processes.usage import read_usage

INTERVAL = 2.0
# beyond this many crawls, a row that says the same is written less often
FEW_CRAWLS = 20
# less than the age at which a report counts as outdated
RARE_INTERVAL = 8.0
PACE_WINDOW = 30.0
LEAVE_WITHIN = 3.0


@dataclass(frozen=True, slots=True)
class ActivityReport:
    """What a crawl waits for, its pace, its duration so far, and what its runner says."""

    lease: Lease
    reason: str | None
    seconds: float | None
    pace: float
    elapsed: float
    # memory of the runner; None: unknown
    memory_mb: int | None = None
    # the last log lines as JSON; None: as before
    lines: str | None = None


class Activity:
    """The activity of one crawl."""

    def __init__(
        self, context: JobContext, state: CrawlState, budgets: BudgetView, robots: RobotsGate
    ) -> None:
        self._context = context
        self._state = state
        self._budgets = budgets
        self._robots = robots
        self._samples: deque[tuple[float, int]] = deque()
        # the wait of the engine when nothing is under way
        self.idle_wait: Callable[[], HostWait | None] = lambda: None
        # when and with which reason the last report was written, and with which log lines
        self._reported: tuple[float, str | None] = (0.0, None)
        self._written: list[dict[str, str]] = []

    async def leave(self, outcome: Outcome | None = None) -> None:
        """Report the last log lines, and why the job is put off, if it is; None: it failed."""
        wait = HostWait(outcome.reason) if isinstance(outcome, Waiting | Paused) else None
        await _write(self._context.database, [self._report(wait, 0.0)])

    def report(self, now: float, interval: float) -> ActivityReport | None:
        """A report, unless the last one said the same and is more recent than the interval."""
        wait, pace = self.wait(), self.pace(now)
        reason = wait.reason if wait else None
        written_at, written = self._reported
        if reason == written and now - written_at < interval:
            return None
        self._reported = (now, reason)
        return self._report(wait, pace)

    def _report(self, wait: HostWait | None, pace: float) -> ActivityReport:
        return ActivityReport(
            self._context.lease,
            wait.reason if wait else None,
            wait.seconds if wait else None,
            pace,
            self._state.seconds,
            round(usage.memory_mb) if (usage := read_usage(os.getpid())) else None,
            self._new_lines(),
        )

    def _new_lines(self) -> str | None:
        lines = last_lines(str(self._context.job.id))
        if lines == self._written:
            return None
        self._written = lines
        return json.dumps(lines)

    def pace(self, now: float) -> float:
        """URLs processed per second over the last half minute."""
        done = self._state.ledger.processed
        self._samples.append((now, done))
        while now - self._samples[0][0] > PACE_WINDOW:
            self._samples.popleft()
        first, before = self._samples[0]
        return max(0, done - before) / (now - first) if now > first else 0.0

    def wait(self) -> HostWait | None:
        """The reason why most of the crawl waits; None if it is at work."""
        idle = self.idle_wait()
        if idle is not None and idle.reason == LEARNING:
            return idle
        waits = self._budgets.waits()
        if waits:
            return max(waits, key=lambda each: each.seconds or 0.0)
        loading = self._robots.loading()
        if loading:
            return HostWait(f"waiting for {loading[0]}/robots.txt")
        return idle


class ActivityReports:
    """Reports the activity of all crawls of a runner, so that it is seen between commits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._crawls: set[Activity] = set()
        self._started = asyncio.Event()
        self._ended = False
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended = True
        self._started.set()
        if self._running is not None:
            # between two reports if possible: a cancelled one costs its connection
            await asyncio.wait({self._running}, timeout=LEAVE_WITHIN)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    @asynccontextmanager
    async def reported(self, activity: Activity) -> AsyncIterator[None]:
        """Report a crawl for as long as the block runs."""
        self._crawls.add(activity)
        self._started.set()
        try:
            yield
        finally:
            self._crawls.discard(activity)

    async def _run(self) -> None:
        while not self._ended:
            # a new crawl is reported soon
            await wait_for_event(self._started, INTERVAL)
            self._started.clear()
            await self.run_once()

    async def run_once(self) -> None:
        now = time.monotonic()
        interval = 0.0 if len(self._crawls) <= FEW_CRAWLS else RARE_INTERVAL
        reports = [each.report(now, interval) for each in self._crawls]
        await _write(self._database, [report for report in reports if report is not None])


async def _write(database: Database, reports: Iterable[ActivityReport]) -> None:
    if reports := list(reports):
        with suppress(
            DatabaseUnavailable, DiskFull, psycopg.Error
        ):  # the commits report such errors
            await database.run(store.update_activity, reports)
