"""The window: the next entries of the frontier, in memory, by host, with a limit."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from forager.clock import local_time
from forager.crawl.frontier.entry import FrontierEntry
from forager.crawl.frontier.hosts import HostQueue, HostQueues
from forager.crawl.store import frontier as store
from forager.db.database import Database

CAPACITY = 10_000
LOW = 1_000
RETRY_BATCH = 200
# hosts that are known before those without entries are forgotten
MANY_HOSTS = 1_000
# a host has at least this many entries here, and at most the share of a host among a few
MIN_SHARE = 4
FEW_HOSTS = 16
START = (-1, -1)
# seconds between two readings from an earlier place
REWIND_INTERVAL = 2.0

Place = tuple[int, int]


class Window:
    """Reads the frontier behind a remembered place, so that no scan meets what is settled.

    Every entry up to the place is in memory, being fetched, settled, or cut; whatever lies behind
    it is in the table. New entries mostly come behind, but not always: where a page redirects to
    is as deep as the page itself. Those are kept here, since they would not be read again.

    Each host has a share of the capacity, so that a host with many entries hides no other. The
    entries beyond it are cut: they stay in the table, and are read from there when the queue of the
    host runs low, from the first of them on.
    """

    def __init__(
        self,
        database: Database,
        job_id: UUID,
        *,
        capacity: int | None = None,
        many_hosts: bool = False,
    ) -> None:
        """`many_hosts`: there may be more hosts in the table than here."""
        self._database = database
        self._job_id = job_id
        self._capacity = CAPACITY if capacity is None else capacity
        self._low = min(LOW, self._capacity // 2)
        self._many_hosts = many_hosts
        self.queues = HostQueues()
        self._place: Place = START
        # before the first entry that was cut
        self._cut_from: Place | None = None
        self._rewound_at = 0.0
        # hosts for whose entries the table is read again
        self._seeking: list[HostQueue] = []
        # nothing lies behind the place
        self._complete = False
        # entries behind the place are on their way into the table
        self._commit_awaited = False
        # seqs of all entries that are here or being fetched: none is given out twice
        self._known: set[int] = set()
        # seqs of the entries among them that are retried
        self._retrying: set[int] = set()

    def __len__(self) -> int:
        return len(self.queues)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left here or in the table, except postponed entries."""
        return self._complete and self._cut_from is None and not len(self.queues)

    @property
    def retrying(self) -> list[int]:
        """The seqs of entries that are tried again, and not settled yet."""
        return list(self._retrying)

    def least_depth(self) -> int | None:
        """The least depth that entries may have, here or in the table."""
        depths = [self.queues.least_depth()]
        if self._cut_from is not None:
            depths.append(self._cut_from[0])
        if not self._complete:
            depths.append(self._place[0])
        return min((depth for depth in depths if depth is not None), default=None)

    def append(self, entries: Iterable[FrontierEntry]) -> None:
        """Entries of a commit that is about to be made; call `committed` when it is."""
        for entry in entries:
            place = (entry.depth, entry.seq)
            if place > self._place:
                if not self._complete or len(self.queues) >= self._capacity:
                    self._complete = False
                    self._commit_awaited = True
                    continue
                self._place = place
            if not self._hold_or_cut(entry):
                self._commit_awaited = True

    def committed(self, settled: Iterable[FrontierEntry]) -> None:
        """After a commit: these entries are settled or postponed, and these were added."""
        seqs = {entry.seq for entry in settled}
        self._known -= seqs
        self._retrying -= seqs
        self._commit_awaited = False

    async def refill(self) -> None:
        """Read on in the table when the window runs low, or a host whose entries were cut does."""
        if self._commit_awaited:
            return
        if self.queues.hosts > MANY_HOSTS:
            self.queues.prune()
        self._rewind_if_needed()
        if self._complete or not self._needs_entries():
            return
        full = self._full_hosts()
        limit = self._rows_to_read()
        # entries that are being fetched may be settled before the result is here
        known = set(self._known)
        found = await self._database.run(
            store.select_entries,
            self._job_id,
            after=self._place,
            besides=[host.origin for host in full],
            limit=limit,
        )
        for host in full:
            self._cut(host, self._place)
        for entry in found:
            if entry.seq not in known:
                self._hold_or_cut(entry)
        if found:
            self._place = (found[-1].depth, found[-1].seq)
        self._complete = len(found) < limit

    async def add_retries(self) -> None:
        """Add postponed entries that are due; their early places put them first."""
        due = await self._database.run(
            store.select_retries, self._job_id, besides=self.retrying, limit=RETRY_BATCH
        )
        for entry in due:
            if entry.seq not in self._known:
                self._retrying.add(entry.seq)
                self._hold(entry)

    def _needs_entries(self) -> bool:
        # further hosts may lie behind the entries of a host that is full
        enough = self._capacity - 1 if self._has_shares() else self._low
        if len(self.queues) <= enough or any(map(self._is_low, self._seeking)):
            return True
        # after a rewind, entries that are not as deep as those here may lie behind the place
        depth = self.queues.least_depth()
        return depth is not None and self._place[0] < depth

    def _rows_to_read(self) -> int:
        room = max(self._low, self._capacity - len(self.queues))
        if not self._seeking:
            return room
        return min(room, max(RETRY_BATCH, 2 * self._share() * len(self._seeking)))

    # --- shares of hosts -----------------------------------------------------------------------

    def _has_shares(self) -> bool:
        return self._many_hosts or self.queues.hosts > 1

    def _share(self) -> int:
        hosts = max(FEW_HOSTS, self.queues.hosts) if self._has_shares() else 1
        return max(MIN_SHARE, self._capacity // hosts)

    def _is_low(self, host: HostQueue) -> bool:
        return len(host.entries) <= self._share() // 2

    def _full_hosts(self) -> list[HostQueue]:
        """Hosts that need no entries now; a crawl of one host has none."""
        if not self._has_shares():
            return []
        share = self._share()
        return [host for host in self.queues if len(host.entries) >= share]

    def _hold_or_cut(self, entry: FrontierEntry) -> bool:
        """Hold an entry if its host has room, and leave it in the table otherwise."""
        host = self.queues.of_entry(entry)
        is_full = self._has_shares() and len(host.entries) >= self._share()
        if is_full or len(self.queues) >= 2 * self._capacity:
            self._cut(host, (entry.depth, entry.seq - 1))
            return False
        self._hold(entry)
        return True

    def _cut(self, host: HostQueue, place: Place) -> None:
        host.is_cut = True
        self._cut_from = place if self._cut_from is None else min(self._cut_from, place)

    def _rewind_if_needed(self) -> None:
        """Read again from the first entry that was cut, if its host or the window runs low."""
        if self._cut_from is None:
            return
        now = local_time()
        if len(self.queues) and now < self._rewound_at + REWIND_INTERVAL:
            return
        low = [host for host in self.queues if host.is_cut and self._is_low(host)]
        if not low and not (self._complete and not len(self.queues)):
            return
        self._rewound_at = now
        self._seeking = low
        self._place = min(self._place, self._cut_from)
        self._cut_from = None
        self._complete = False
        for host in self.queues:
            host.is_cut = False

    def _hold(self, entry: FrontierEntry) -> None:
        if entry.seq not in self._known:
            self._known.add(entry.seq)
            self.queues.add(entry)
