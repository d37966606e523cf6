"""What a worker believes to hold, to be compared with what the tables say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from forager.processes.control import Tick
from forager.tasks.stages.attempt import HeldTask
from forager.tasks.stages.settle import waits_for_storage


class Holdings:
    """The leases of a worker's tasks, in both stages."""

    def __init__(self) -> None:
        # held while tasks are claimed: until their answer has come, what is ours is unknown
        self.claiming = asyncio.Lock()
        self.may_claim = True
        self._leases: dict[int, int] = {}
        self._since: dict[int, float] = {}
        self._has_settled = False

    def add(self, tasks: Iterable[HeldTask]) -> None:
        now = time.monotonic()
        for task in tasks:
            self._leases[task.id] = task.lease
            self._since[task.id] = now

    def remove(self, tasks: Iterable[HeldTask]) -> None:
        """Forget tasks, unless they have been claimed again since."""
        for task in tasks:
            if self._leases.get(task.id) == task.lease:
                del self._leases[task.id], self._since[task.id]
                self._has_settled = True

    def leases(self) -> dict[int, int]:
        return dict(self._leases)

    def tick(self) -> Tick:
        """A worker makes progress when it settles tasks, while it holds none, and while it waits
        for storage that is unavailable: killing it would spend a retry of every task it holds.
        """
        progress = self._has_settled or not self._leases or waits_for_storage()
        self._has_settled = False
        oldest = min(self._since.values(), default=time.monotonic())
        return Tick(progress, busy_for=time.monotonic() - oldest)
