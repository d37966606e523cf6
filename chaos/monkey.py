"""The monkey: from a seed picks what to break, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from chaos.chance import seeded
from chaos.faults import Fault
from chaos.world import Hit, World

# nothing to break, for instance nobody to resume: another one is picked at once
OTHERS = 20
LAST_WAIT = 90.0


@dataclass(frozen=True, slots=True)
class Done:
    """A fault that happened, and when it was over."""

    kind: str
    what: str
    over_at: datetime
    jobs: frozenset[UUID]


class Monkey:
    """Breaks things one after another; those that last overlap with the next."""

    def __init__(
        self,
        world: World,
        seed: int,
        *,
        faults: Sequence[Fault],
        progress: Callable[[], Awaitable[None]],
    ) -> None:
        self.done: list[Done] = []
        self.begun = 0
        self._world = world
        self._seed = seed
        self._faults = faults
        self._progress = progress
        self._running: set[asyncio.Task[None]] = set()

    async def rage(self, count: int, *, every: float) -> None:
        """So many faults, one about every so many seconds; returns when the last is over."""
        try:
            for number in range(count):
                # a chance of its own for each: how long others take must not change what it does
                chance = seeded(self._seed, number)
                await asyncio.sleep(chance.expovariate(1 / every) if every else 0)
                # a machine that is still starting what was killed has nothing to lose
                await self._progress()
                self._start(replace(self._world, chance=chance))
            if self._running:
                await asyncio.wait(self._running, timeout=LAST_WAIT)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        for task in self._running:
            task.result()

    def _start(self, world: World) -> None:
        self.begun += 1
        task = asyncio.ensure_future(self._break_something(world))
        self._running.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        # one that failed stays, and its error is raised at the end
        if task.cancelled() or task.exception() is None:
            self._running.discard(task)

    async def _break_something(self, world: World) -> None:
        weights = [fault.weight for fault in self._faults]
        for _ in range(OTHERS):
            [fault] = world.chance.choices(self._faults, weights)
            hit = await fault.run(world)
            if hit is not None:
                self._note(fault, hit)
                return

    def _note(self, fault: Fault, hit: Hit) -> None:
        self.done.append(Done(fault.kind, hit.what, datetime.now(UTC), hit.jobs))
