"""Rests: origins that want to be left alone for a while, and the entries that wait for them."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from forager.crawl.frontier.entry import Entry
from forager.crawl.settlement import Resting
from forager.fetch.robots.gate import origin_of

# entries that may wait for one origin in memory; more stay in the window and its table
MAX_ASIDE = 5_000


@dataclass(slots=True)
class _Rest:
    until: float
    reason: str
    entries: deque[Entry] = field(default_factory=deque)


class Rests:
    """Entries are only put aside here: in the frontier they stay where they are.

    By origin rather than by host: if nothing answers at http://, https:// may be well.
    """

    def __init__(self) -> None:
        self._rests: dict[str, _Rest] = {}

    def add(self, resting: Resting) -> None:
        until = time.monotonic() + resting.seconds
        rest = self._rests.setdefault(origin_of(resting.entry.url), _Rest(until, resting.reason))
        if until >= rest.until:
            rest.until, rest.reason = until, resting.reason
        rest.entries.append(resting.entry)

    def over(self) -> Entry | None:
        """An entry whose rest is over."""
        now = time.monotonic()
        for origin, rest in list(self._rests.items()):
            if rest.until <= now:
                if rest.entries:
                    return rest.entries.popleft()
                del self._rests[origin]
        return None

    def concerns(self, entry: Entry) -> bool:
        rest = self._rests.get(origin_of(entry.url)) if self._rests else None
        return rest is not None and rest.until > time.monotonic()

    def put_aside(self, entry: Entry) -> bool:
        """Keep an entry until its rest is over; False if too many wait already."""
        entries = self._rests[origin_of(entry.url)].entries
        if len(entries) >= MAX_ASIDE:
            return False
        entries.append(entry)
        return True

    def waits(self) -> list[tuple[float, str]]:
        """How long each rest still takes, and why."""
        now = time.monotonic()
        return [(rest.until - now, rest.reason) for rest in self._rests.values()]
