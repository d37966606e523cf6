"""The activity of a crawl between its commits: its pace, and what it waits for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import psycopg

from forager.clock import wait_for_event
from forager.crawl.ledger import CrawlState
from forager.crawl.store import state as store
from forager.errors import DatabaseUnavailable
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.waits import HostWait
from forager.fetch.robots.gate import RobotsGate
from forager.jobs.context import JobContext
from forager.jobs.kinds import Outcome, Waiting

INTERVAL = 2.0
PACE_WINDOW = 30.0
LEAVE_WITHIN = 3.0


class Activity:
    """Writes pace and wait every two seconds, so that they are seen while nothing is committed."""

    def __init__(
        self, context: JobContext, state: CrawlState, budgets: Budgets, robots: RobotsGate
    ) -> None:
        self._context = context
        self._state = state
        self._budgets = budgets
        self._robots = robots
        self._samples: deque[tuple[float, int]] = deque()
        # the wait of the engine when nothing is under way
        self.idle_wait: Callable[[], HostWait | None] = lambda: None

    @asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """Report for as long as the block runs."""
        ended = asyncio.Event()
        reporting = asyncio.create_task(self._run(ended))
        try:
            yield
        finally:
            ended.set()
            # between two reports if possible: a cancelled one costs its connection
            await asyncio.wait({reporting}, timeout=LEAVE_WITHIN)
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)

    async def leave(self, outcome: Outcome) -> None:
        """Report why the job is put off, if it is."""
        wait = HostWait(outcome.reason) if isinstance(outcome, Waiting) else None
        await self._write(wait, 0.0)

    async def _run(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            await self.run_once()
            await wait_for_event(ended, INTERVAL)

    async def run_once(self) -> None:
        await self._write(self.wait(), self.pace(time.monotonic()))

    async def _write(self, wait: HostWait | None, pace: float) -> None:
        with suppress(DatabaseUnavailable, psycopg.Error):  # the commits report such trouble
            await self._context.database.run(
                store.update_activity,
                self._context.lease,
                reason=wait.reason if wait else None,
                seconds=wait.seconds if wait else None,
                pace=pace,
                elapsed=self._state.seconds,
            )

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
        waits = self._budgets.waits()
        if waits:
            return max(waits, key=lambda each: each.seconds or 0.0)
        loading = self._robots.loading()
        if loading:
            return HostWait(f"waiting for {loading[0]}/robots.txt")
        return self.idle_wait()
