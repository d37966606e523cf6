"""The loop of a stage: claim tasks, work on many at once, and commit their results in batches."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from forager.backoff import jittered
from forager.clock import wait_for_event
from forager.db.database import Connection, Database
from forager.db.outages import Outage, is_waiting_for_storage
from forager.failures.cause import Cause
from forager.logs import get_logger
from forager.metrics.catalog import LEASE_LOSSES
from forager.parsers.page_cache import PageCache
from forager.parsers.rollouts import RolloutPlan, Rollouts
from forager.processes.control import Tick
from forager.settings import Settings
from forager.tasks.hints import StageHints
from forager.tasks.rendering import RenderDecisions
from forager.tasks.stages.attempt import Attempt, LeasedTask, Stage, StageOfWorker, failed
from forager.tasks.stages.settle import commit_isolated, record, settle
from forager.tasks.store.stages import lock_leased

log = get_logger("tasks")


class StageResult(Protocol):
    """What a stage has found out about a task, until it is committed."""

    @property
    def task(self) -> LeasedTask: ...

    @property
    def attempt(self) -> Attempt: ...

    @property
    def size(self) -> int:
        """Bytes in memory until it is committed."""


Result = TypeVar("Result", bound=StageResult)


@dataclass(frozen=True, slots=True)
class StageParts:
    """What both stages of a worker share."""

    database: Database
    settings: Settings
    worker_id: UUID
    leases: TaskLeases
    decisions: RenderDecisions
    rollouts: Rollouts = field(default_factory=Rollouts)
    cache: PageCache = field(default_factory=PageCache)


# a stage without work is woken by notifications, and polls less often
IDLE_POLLS = 10.0


class StageLoop(ABC, Generic[Result]):
    """Works on tasks until it is stopped. Call `wake` when there are tasks to claim.

    With `hints` it claims only hinted tasks.
    """

    batch_size: ClassVar[int]
    batch_seconds: ClassVar[float]
    batch_bytes: ClassVar[float] = float("inf")
    # tasks are claimed when there is room for this many, or when nothing else is in progress
    claim_at_least: ClassVar[int] = 8
    # how long work in progress may continue when the worker stops
    last_moment: ClassVar[float]

    def __init__(self, worker: StageParts, stage: Stage, hints: StageHints | None) -> None:
        self._database = worker.database
        self._settings = worker.settings
        self._who = StageOfWorker(worker.worker_id, stage)
        self._rollouts = worker.rollouts
        self._cache = worker.cache
        self._decisions = worker.decisions
        self._leases = worker.leases
        self._hints = hints
        self._running: dict[int, asyncio.Task[Result]] = {}
        # how many of them each domain has
        self._busy: Counter[int] = Counter()
        self._done: list[Result] = []
        self._oldest = 0.0
        self._next_look = 0.0
        self._outage = Outage(log, f"no tasks to {stage} can be claimed now")
        self._changed = asyncio.Event()
        self._stopping = False
        if hints is not None:
            hints.attach(self.claim_now)

    @abstractmethod
    async def _claim(self, is_time: bool) -> None:
        """Claim tasks for the free room; `is_time` once per poll interval."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Whether a claim is worth its query."""

    @abstractmethod
    def _work(self, task: LeasedTask, plan: RolloutPlan) -> Coroutine[Any, Any, Result]:
        """Work on one task. Never raises."""

    @abstractmethod
    async def _store(self, connection: Connection, batch: Sequence[Result]) -> list[Attempt]:
        """Write the results of tasks that this worker still holds; returns what is to settle."""

    def _stored(self, batch: Sequence[Result]) -> None:
        """Called when results are committed."""

    def _freed(self, task: LeasedTask) -> None:
        """Called when a task is not in progress any more."""

    def _next_claim_at(self) -> float:
        return float("inf")

    async def close(self) -> None:
        """Release resources."""

    async def run(self) -> None:
        try:
            while not self._stopping:
                await self._commit_if_due()
                await self._claim_if_useful()
                await self._wait_for_change()
            if self._running:
                await asyncio.wait(self._running.values(), timeout=self.last_moment)
            await self._abandon()
            await self._commit()
        finally:
            await self._abandon()
            await self.close()

    def wake(self) -> None:
        self._changed.set()

    def claim_now(self) -> None:
        self.wake()

    def stop(self) -> None:
        """Claim nothing more; results that are complete now, or in a moment, are committed."""
        self._stopping = True
        self._changed.set()

    def drop(self, task_id: int) -> None:
        """Cancel work on a task that was taken away."""
        if task_id in self._running:
            self._running[task_id].cancel()

    async def _wait_for_change(self) -> None:
        if self._hints is not None:
            await self._hints.set_room(self._has_room())
        until = min(self._next_look, self._next_claim_at())
        if self._done:
            until = min(until, self._oldest + self.batch_seconds)
        await wait_for_event(self._changed, max(0.0, until - time.monotonic()))
        self._changed.clear()

    async def _abandon(self) -> None:
        """Cancel work in progress; the worker releases its tasks."""
        running = list(self._running.values())
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _claim_if_useful(self) -> None:
        now = time.monotonic()
        is_time = now >= self._next_look
        if is_time:
            is_idle = not (self._running or self._done)
            pause = self._settings.poll_interval
            self._next_look = now + (jittered(IDLE_POLLS * pause) if is_idle else pause)
        if self._leases.may_claim:
            with self._outage:
                await self._claim(is_time)

    async def _take(
        self, claim: Callable[[Connection], Awaitable[list[LeasedTask]]]
    ) -> list[LeasedTask]:
        """Claim tasks, and start them."""
        plan = await self._rollouts.current(self._database)
        async with self._leases.claiming:
            tasks = await self._database.run(claim)
            self._leases.add(tasks)
        for task in tasks:
            work = asyncio.create_task(self._work(task, plan))
            self._running[task.id] = work
            self._busy[task.domain_id] += 1
            work.add_done_callback(partial(self._arrived, task))
        return tasks

    def _arrived(self, task: LeasedTask, done: asyncio.Task[Result]) -> None:
        self._running.pop(task.id, None)
        self._busy -= Counter([task.domain_id])
        self._freed(task)
        if done.cancelled():
            # taken away, or the worker stops: in both cases the table has the owner
            self._leases.remove([task])
        else:
            if not self._done:
                self._oldest = time.monotonic()
            self._done.append(done.result())
        self._changed.set()

    def _bytes_waiting(self) -> int:
        return sum(result.size for result in self._done)

    async def _commit_if_due(self) -> None:
        due = (
            len(self._done) >= self.batch_size
            or time.monotonic() - self._oldest >= self.batch_seconds
            or self._bytes_waiting() >= self.batch_bytes
            or not self._running
        )
        if self._done and due:
            await self._commit()

    async def _commit(self) -> None:
        while self._done:
            batch, self._done = self._done[: self.batch_size], self._done[self.batch_size :]
            await self._write(batch)
            self._leases.remove([result.task for result in batch])

    async def _write(self, batch: Sequence[Result]) -> None:
        """Commit results together; each one that cannot be written fails alone."""
        await commit_isolated(batch, self._write_together, self._refuse)

    async def _write_together(self, batch: Sequence[Result]) -> None:
        async with self._database.transaction() as connection:
            kept = await lock_leased(connection, self._who, [result.task for result in batch])
            mine = [result for result in batch if result.task.id in kept]
            attempts = await self._store(connection, mine)
            settled = await settle(connection, self._who, attempts, self._settings)
        lost = [result.task.id for result in batch if result.task.id not in kept]
        if lost:
            LEASE_LOSSES.add("task", amount=len(lost))
            log.warning(
                "results dropped: the tasks were taken away", stage=self._who.stage, tasks=lost[:20]
            )
        record(self._who.stage, settled)
        self._stored(mine)

    async def _refuse(self, result: Result, cause: Cause) -> None:
        """Fail the one task whose result cannot be written."""
        # without its status and page, whose effects may be what cannot be written
        seen = result.attempt
        attempt = Attempt(task=seen.task, final_url=seen.final_url, duration_ms=seen.duration_ms)
        attempt = failed(attempt, cause, self._settings)
        async with self._database.transaction() as connection:
            kept = await lock_leased(connection, self._who, [result.task])
            mine = [attempt] if kept else []
            settled = await settle(connection, self._who, mine, self._settings)
        record(self._who.stage, settled)


class TaskLeases:
    """The leases of the tasks that a worker holds in both stages."""

    def __init__(self) -> None:
        # locked during a claim: until its response has arrived, the leased tasks are unknown
        self.claiming = asyncio.Lock()
        self.may_claim = True
        self._leased: dict[int, int] = {}
        self._since: dict[int, float] = {}
        self._has_settled = False

    def add(self, tasks: Iterable[LeasedTask]) -> None:
        now = time.monotonic()
        for task in tasks:
            self._leased[task.id] = task.lease
            self._since[task.id] = now

    def remove(self, tasks: Iterable[LeasedTask]) -> None:
        """Forget tasks, unless they have been claimed again since."""
        for task in tasks:
            if self._leased.get(task.id) == task.lease:
                del self._leased[task.id], self._since[task.id]
                self._has_settled = True

    def leased(self) -> dict[int, int]:
        """The leases by task."""
        return dict(self._leased)

    def tick(self) -> Tick:
        """Report progress: settled tasks, no leased tasks, or a wait for storage.

        Killing a worker that waits for storage would spend a retry of every task it holds.
        """
        progress = self._has_settled or not self._leased or is_waiting_for_storage()
        self._has_settled = False
        oldest = min(self._since.values(), default=time.monotonic())
        return Tick(progress, busy_for=time.monotonic() - oldest)
