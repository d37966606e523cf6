"""Reserved stretches of a host's time, in which this process alone may send."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf

LATENESS = 0.1
"""How much of a delay a request may be late, and at most how many seconds."""


@dataclass(slots=True)
class Window:
    """Some slots in a row: `due` is the next one, `last` the last, in local time."""

    due: float
    last: float
    delay: float
    # the database's time of `due`, less `due`
    offset: float = 0.0

    @property
    def lateness(self) -> float:
        return min(LATENESS, LATENESS * self.delay)

    def has_expired(self, now: float) -> bool:
        return now > self.last + self.lateness

    @property
    def is_over(self) -> bool:
        return self.due > self.last + self.lateness


class Lane:
    """One sequence of requests that keep their distance: a domain's, or a (domain, proxy) pair's.

    Slots that are not used in time are lost: whoever was frozen or busy finds his windows over
    and cannot catch up. Two requests are never closer than the delay less the lateness.
    """

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[Window] = deque()

    def add(self, window: Window) -> None:
        self._windows.append(window)

    def ready_at(self, now: float) -> float:
        """When the next request may go; never, if nothing is reserved."""
        windows = self._windows
        while windows:
            window = windows[0]
            if not window.is_over and not window.has_expired(now):
                return window.due
            windows.popleft()
        return inf

    def use(self, now: float) -> None:
        """A request goes now; `ready_at` said that it may."""
        window = self._windows[0]
        window.due = max(window.due, now - window.lateness) + window.delay

    def clear(self) -> None:
        self._windows.clear()

    def slots_left(self) -> int:
        return sum(_slots_in(window) for window in self._windows)

    def drop(self, *, before: float = 0.0, faster_than: float = 0.0) -> None:
        """Give up what a slow-down made invalid."""
        kept = [w for w in self._windows if w.due >= before and w.delay >= faster_than]
        self._windows = deque(kept)


def _slots_in(window: Window) -> int:
    if window.is_over:
        return 0
    return 1 + int((window.last + window.lateness - window.due) / window.delay)
