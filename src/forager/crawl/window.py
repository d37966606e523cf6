"""The window: the next entries of the frontier, in memory, in order, and never too many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from uuid import UUID

from forager.crawl import store
from forager.crawl.entry import Entry
from forager.db.database import Database

CAPACITY = 10_000
LOW = 1_000
RETRY_BATCH = 200
START = (-1, -1)


class Window:
    """Reads the frontier behind a remembered place, so that no scan meets what is settled.

    New entries come behind all others (greater depth or greater seq). While everything behind
    the place is in memory they are simply appended; else they wait in the table for their turn.
    """

    def __init__(self, database: Database, job_id: UUID) -> None:
        self._database = database
        self._job_id = job_id
        self._entries: deque[Entry] = deque()
        self._place = START
        self._complete = False
        self._retrying: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def exhausted(self) -> bool:
        """Nothing is left here, nor behind it in the table (entries being retried aside)."""
        return self._complete and not self._entries

    def take(self) -> Entry | None:
        return self._entries.popleft() if self._entries else None

    def put_back(self, entry: Entry) -> None:
        """An entry that could not be used now; it is first in line again."""
        self._entries.appendleft(entry)

    def append(self, entries: Iterable[Entry]) -> None:
        """Entries that were just discovered, in the order of their seq."""
        for entry in entries:
            place = (entry.depth, entry.seq)
            if not self._complete or len(self._entries) >= CAPACITY or place < self._place:
                # read again from the table when its turn comes
                self._complete = False
                continue
            self._entries.append(entry)
            self._place = place

    async def refill(self) -> None:
        """Read on in the table when the window runs low."""
        if self._complete or len(self._entries) > LOW:
            return
        limit = CAPACITY - len(self._entries)
        async with self._database.connection() as connection:
            found = await store.select_entries(
                connection, self._job_id, after=self._place, limit=limit
            )
        self._entries.extend(found)
        if found:
            self._place = (found[-1].depth, found[-1].seq)
        self._complete = len(found) < limit

    async def add_retries(self) -> None:
        """Take in postponed entries whose time has come; they go first."""
        async with self._database.connection() as connection:
            due = await store.select_retries(connection, self._job_id, limit=RETRY_BATCH)
        for entry in reversed(due):
            if entry.seq not in self._retrying:
                self._retrying.add(entry.seq)
                self._entries.appendleft(entry)

    def forget(self, entry: Entry) -> None:
        """An entry was settled or postponed again, and that is committed."""
        self._retrying.discard(entry.seq)
