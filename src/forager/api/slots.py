"""How many of something heavy may go on at a time in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from forager.analytics.answers import Answer, answer
from forager.errors import NotYet
from forager.settings import Settings

RETRY_AFTER = 10


class Slots:
    """Whoever comes when all are taken is told to come back, not kept waiting."""

    def __init__(self, number: int, what: str) -> None:
        self._number = number
        self._what = what
        self._taken = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        if self._taken >= self._number:
            raise NotYet(
                f"{self._what} is already in progress, and its limit is reached",
                retry_after=RETRY_AFTER,
                hint="Try again when it has finished.",
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


# each is a process that may use two cores and 2 GB
ANALYSES = Slots(2, "an analysis")


async def analyse(settings: Settings, name: str, *, days: int, limit: int) -> Answer:
    """The answer, or NotYet while enough others are being made."""
    with ANALYSES.taken():
        return await answer(settings, name, days=days, limit=limit)
