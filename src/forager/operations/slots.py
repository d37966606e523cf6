"""Slots for heavy work: when all are taken, a caller is rejected instead of waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from forager.errors import TooManyRequests

RETRY_AFTER = 10


class Slots:
    """When all slots are taken, a request is rejected with Retry-After instead of waiting.

    EXPORTS = Slots(4, "an export")

    with EXPORTS.taken():
        await export()
    """

    def __init__(self, number: int, what: str) -> None:
        self._number = number
        self._what = what
        self._taken = 0

    def check(self) -> None:
        """Raise TooManyRequests if no slot is free."""
        if self._taken >= self._number:
            raise TooManyRequests(
                f"{self._what} is already in progress, and its limit is reached",
                retry_after=RETRY_AFTER,
                hint="Try again when it has finished.",
            )

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take a slot for the block; raises TooManyRequests if none is free."""
        self.check()
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
