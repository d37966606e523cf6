"""The window: the next entries of the frontier, in memory, in order, with a limit."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from forager.crawl.frontier.entry import Entry
from forager.crawl.settlement import Resting
from forager.crawl.store import frontier as store
from forager.db.database import Database
from forager.fetch.robots.gate import origin_of

CAPACITY = 10_000
LOW = 1_000
RETRY_BATCH = 200
START = (-1, -1)

Place = tuple[int, int]


class Window:
    """Reads the frontier behind a remembered place, so that no scan meets what is settled.

    Every entry up to the place is in memory, being fetched, or settled; whatever lies behind
    it is in the table. New entries mostly come behind, but not always: where a page redirects to
    is as deep as the page itself. Those are kept here, since they would not be read again.
    """

    def __init__(self, database: Database, job_id: UUID, *, capacity: int = CAPACITY) -> None:
        self._database = database
        self._job_id = job_id
        self._capacity = capacity
        self._low = min(LOW, capacity // 2)
        self._entries: list[tuple[int, int, Entry]] = []
        self._place: Place = START
        # nothing lies behind the place
        self._complete = False
        # entries behind the place are on their way into the table
        self._commit_awaited = False
        # seqs of all entries that are here or being fetched: none is given out twice
        self._held: set[int] = set()
        # seqs of the entries among them that are retried
        self._retrying: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left here or behind it in the table, except postponed entries."""
        return self._complete and not self._entries

    @property
    def retrying(self) -> list[int]:
        """The seqs of entries that are tried again, and not settled yet."""
        return list(self._retrying)

    def take(self) -> Entry | None:
        return heapq.heappop(self._entries)[2] if self._entries else None

    def put_back(self, entry: Entry) -> None:
        """An entry that could not be used now; it keeps its place in the order."""
        heapq.heappush(self._entries, (entry.depth, entry.seq, entry))

    def append(self, entries: Iterable[Entry]) -> None:
        """Entries of a commit that is about to be made; call `committed` when it is."""
        for entry in entries:
            place = (entry.depth, entry.seq)
            if place > self._place:
                if not self._complete or len(self._entries) >= self._capacity:
                    self._complete = False
                    self._commit_awaited = True
                    continue
                self._place = place
            self._hold(entry)
        if len(self._entries) > 2 * self._capacity:
            self._trim()

    def committed(self, settled: Iterable[Entry]) -> None:
        """After a commit: these entries are settled or postponed, and these were added."""
        seqs = {entry.seq for entry in settled}
        self._held -= seqs
        self._retrying -= seqs
        self._commit_awaited = False

    async def refill(self) -> None:
        """Read on in the table when the window runs low."""
        if self._complete or self._commit_awaited or len(self._entries) > self._low:
            return
        limit = self._capacity - len(self._entries)
        # entries that are being fetched may be settled before the result is here
        held = set(self._held)
        found = await self._database.run(
            store.select_entries, self._job_id, after=self._place, limit=limit
        )
        for entry in found:
            if entry.seq not in held:
                self._hold(entry)
        if found:
            self._place = (found[-1].depth, found[-1].seq)
        self._complete = len(found) < limit

    async def add_retries(self) -> None:
        """Add postponed entries that are due; their early places put them first."""
        due = await self._database.run(
            store.select_retries, self._job_id, besides=self.retrying, limit=RETRY_BATCH
        )
        for entry in due:
            if entry.seq not in self._held:
                self._retrying.add(entry.seq)
                self._hold(entry)

    def _hold(self, entry: Entry) -> None:
        if entry.seq not in self._held:
            self._held.add(entry.seq)
            self.put_back(entry)

    def _trim(self) -> None:
        """Leave the last entries to the table, where they are or are about to be."""
        self._entries.sort()
        dropped = self._entries[self._capacity :]
        del self._entries[self._capacity :]
        seqs = {seq for _, seq, _ in dropped}
        self._held -= seqs
        self._retrying -= seqs
        depth, seq, _ = self._entries[-1]
        self._place = (depth, seq)
        self._complete = False
        self._commit_awaited = True


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
        """Remaining seconds and reason of each rest."""
        now = time.monotonic()
        return [(rest.until - now, rest.reason) for rest in self._rests.values()]
