"""Hosts of a crawl: a queue of entries for each, and a heap of hosts by the time of their turn.

A host that has to wait costs nothing: it is not looked at before its time comes, and no entry of it
is started before it can be sent. Hosts therefore never block each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from math import inf

from forager.clock import local_time
from forager.crawl.frontier.entry import FrontierEntry
from forager.fetch.budgets.view import HostPace
from forager.fetch.robots.gate import origin_of

LEAD = 0.3
"""An entry is started this long before its slot: robots.txt and a slot are looked up meanwhile."""
AHEAD = 50
"""Entries beyond its connections that are started for a host without a delay."""


@dataclass(slots=True, eq=False)
class HostQueue:
    """The entries of one origin, in order, and when the next one may be started.

    By origin rather than by host: if nothing answers at http://, https:// may be well.
    """

    origin: str
    entries: list[tuple[int, int, FrontierEntry]] = field(default_factory=list)
    # entries that are being fetched, and how many of them wait for their slot
    fetching: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    # None before the first slot
    pace: HostPace | None = None
    deferred_until: float = 0.0
    reason: str = ""
    # entries of it were left in the table
    is_cut: bool = False
    # the time at which the host is in the heap; None: it is not
    scheduled_at: float | None = None

    def ready_at(self) -> float:
        """When the next entry may be started; inf until a request is sent or has ended."""
        pace = self.pace
        if pace is None:
            return inf if self.fetching else self.deferred_until
        free = pace.connections - len(self.fetching)
        if pace.delay == 0:
            return self.deferred_until if free + AHEAD > 0 else inf
        if free <= 0:
            return inf
        slot_at = pace.next_at + len(self.waiting) * pace.delay
        return max(self.deferred_until, slot_at - LEAD)

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost when the host is forgotten."""
        return not (self.entries or self.fetching or self.is_cut or self.ready_at() > now)


class HostQueues:
    """All entries in memory, by host."""

    def __init__(self) -> None:
        self._hosts: dict[str, HostQueue] = {}
        self._heap: list[tuple[float, int, HostQueue]] = []
        self._numbers = count()
        self._size = 0

    def __len__(self) -> int:
        """The number of entries."""
        return self._size

    def __iter__(self) -> Iterator[HostQueue]:
        return iter(self._hosts.values())

    @property
    def hosts(self) -> int:
        return len(self._hosts)

    def of_entry(self, entry: FrontierEntry) -> HostQueue:
        """The queue of the host of an entry, which is made if there is none."""
        origin = origin_of(entry.url)
        host = self._hosts.get(origin)
        if host is None:
            host = self._hosts[origin] = HostQueue(origin)
        return host

    def add(self, entry: FrontierEntry) -> None:
        """Add an entry, or put one back: it keeps its place in the order."""
        host = self.of_entry(entry)
        heapq.heappush(host.entries, (entry.depth, entry.seq, entry))
        self._size += 1
        self._schedule(host)

    def take(self, deepest: int | None = None) -> FrontierEntry | None:
        """The next entry of the next host whose turn has come, if it is not too deep.

        The host counts as busy until `fetched`.
        """
        now = local_time()
        too_deep: list[HostQueue] = []
        try:
            while (host := self._next_host(now)) is not None:
                if deepest is None or host.entries[0][0] <= deepest:
                    return self._take(host)
                too_deep.append(host)
        finally:
            for each in too_deep:
                self._schedule(each)
        return None

    def _take(self, host: HostQueue) -> FrontierEntry:
        entry = heapq.heappop(host.entries)[2]
        self._size -= 1
        host.fetching.add(entry.seq)
        host.waiting.add(entry.seq)
        self._schedule(host)
        return entry

    def _next_host(self, now: float) -> HostQueue | None:
        while self._heap and self._heap[0][0] <= now:
            at, _, host = heapq.heappop(self._heap)
            if at == host.scheduled_at:
                host.scheduled_at = None
                return host
        return None

    def next_at(self) -> float | None:
        """When the turn of the next host comes; None if all wait for something else."""
        while self._heap:
            at, _, host = self._heap[0]
            if at == host.scheduled_at:
                return at
            heapq.heappop(self._heap)
        return None

    def least_depth(self) -> int | None:
        """The least depth of all entries, except those of deferred hosts."""
        now = local_time()
        depths = (
            host.entries[0][0]
            for host in self._hosts.values()
            if host.entries and host.deferred_until <= now
        )
        return min(depths, default=None)

    # --- what happens to requests ------------------------------------------------------------

    def paced(self, host_name: str, pace: HostPace) -> None:
        """A request was sent to a host, which sets its pace."""
        for scheme in ("http", "https"):
            host = self._hosts.get(f"{scheme}://{host_name}")
            if host is not None:
                host.pace = pace
                self._schedule(host)

    def sent(self, entry: FrontierEntry) -> None:
        """The entry has its slot."""
        host = self.of_entry(entry)
        host.waiting.discard(entry.seq)
        self._schedule(host)

    def fetched(self, entry: FrontierEntry) -> None:
        """The entry needs its host no longer; further calls have no effect."""
        host = self.of_entry(entry)
        host.waiting.discard(entry.seq)
        host.fetching.discard(entry.seq)
        self._schedule(host)

    def defer(self, entry: FrontierEntry, seconds: float, reason: str) -> None:
        """Put an entry back whose host must not be requested for a while."""
        host = self.of_entry(entry)
        until = local_time() + seconds
        if until >= host.deferred_until:
            host.deferred_until, host.reason = until, reason
        self.add(entry)

    def waits(self) -> list[tuple[float, str]]:
        """How long each host with entries has to wait, and why; without those that are busy."""
        now = local_time()
        found = []
        for host in self._hosts.values():
            if not host.entries or host.fetching:
                continue
            if host.deferred_until > now:
                found.append((host.deferred_until - now, host.reason))
            elif host.pace is not None:
                found.append((max(0.0, host.pace.next_at - now), host.pace.reason))
            else:
                found.append((0.0, ""))
        return found

    def prune(self) -> None:
        """Forget hosts without entries: they are known again when an entry comes."""
        now = local_time()
        idle = [origin for origin, host in self._hosts.items() if host.is_idle(now)]
        for origin in idle:
            del self._hosts[origin]

    def _schedule(self, host: HostQueue) -> None:
        at = host.ready_at() if host.entries else inf
        if at == host.scheduled_at:
            return
        host.scheduled_at = None if at == inf else at
        if at != inf:
            heapq.heappush(self._heap, (at, next(self._numbers), host))
