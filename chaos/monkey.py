"""The chaos monkey: chooses faults and their times from a seed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from chaos.faults import Fault
from chaos.randomness import generator_for
from chaos.world import Hit, World

# a fault that does not apply, such as resuming when nothing is paused, is replaced by another
OTHERS = 20
LAST_WAIT = 90.0
POLL_INTERVAL = 0.2
ATTEMPTS = round(LAST_WAIT / POLL_INTERVAL)


@dataclass(frozen=True, slots=True)
class Done:
    """A fault that was injected, and when it ended."""

    kind: str
    what: str
    over_at: datetime
    jobs: frozenset[UUID]


class Monkey:
    """Injects faults one after another; longer ones overlap with the next."""

    def __init__(
        self,
        world: World,
        seed: int,
        *,
        faults: Sequence[Fault],
        in_order: bool,
        progress: Callable[[], Awaitable[None]],
    ) -> None:
        self.done: list[Done] = []
        self.begun = 0
        self._world = world
        self._seed = seed
        self._faults = faults
        self._in_order = in_order
        self._progress = progress
        self._running: set[asyncio.Task[None]] = set()

    async def inject(self, count: int, *, every: float) -> None:
        """Inject `count` faults, about one `every` seconds; return after the last has ended."""
        try:
            for number in range(count):
                # a separate generator for each fault, independent of how long the others take
                chance = generator_for(self._seed, number)
                await asyncio.sleep(chance.expovariate(1 / every) if every else 0)
                # a cluster that still restarts killed processes has no work to lose
                await self._progress()
                kinds = [self._faults[number]] if self._in_order else self._faults
                self._start(replace(self._world, chance=chance), kinds)
            if self._running:
                await asyncio.wait(self._running, timeout=LAST_WAIT)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
        for task in self._running:
            task.result()

    def _start(self, world: World, kinds: Sequence[Fault]) -> None:
        self.begun += 1
        task = asyncio.ensure_future(self._break_something(world, kinds))
        self._running.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        # a failed fault is kept, and its error is raised at the end
        if task.cancelled() or task.exception() is None:
            self._running.discard(task)

    async def _break_something(self, world: World, kinds: Sequence[Fault]) -> None:
        weights = [fault.weight for fault in kinds]
        for _ in range(ATTEMPTS if self._in_order else OTHERS):
            [fault] = world.chance.choices(kinds, weights)
            hit = await fault.run(world)
            if hit is not None:
                self._note(fault, hit)
                return
            # without another kind, wait: a killed process that still restarts cannot be frozen
            await asyncio.sleep(POLL_INTERVAL if self._in_order else 0)

    def _note(self, fault: Fault, hit: Hit) -> None:
        self.done.append(Done(fault.kind, hit.what, datetime.now(UTC), hit.jobs))
