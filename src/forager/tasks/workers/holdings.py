"""What a worker believes to hold, to be compared with what the tables say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from forager.tasks.stages.attempt import HeldTask


class Holdings:
    """The leases of a worker's tasks, in both stages."""

    def __init__(self) -> None:
        # held while tasks are claimed: until their answer has come, nobody can tell what is ours
        self.claiming = asyncio.Lock()
        self.may_claim = True
        self._leases: dict[int, int] = {}

    def add(self, tasks: Iterable[HeldTask]) -> None:
        self._leases.update((task.id, task.lease) for task in tasks)

    def remove(self, tasks: Iterable[HeldTask]) -> None:
        """Forget tasks, unless they have been claimed anew since."""
        for task in tasks:
            if self._leases.get(task.id) == task.lease:
                del self._leases[task.id]

    def leases(self) -> dict[int, int]:
        return dict(self._leases)
