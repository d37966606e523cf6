"""The window against the real table: every entry is handed out once, whatever happens between."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from forager.clock import local_time
from forager.crawl.frontier import window as windows
from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.frontier.hosts import HostQueues
from forager.crawl.frontier.window import Window
from forager.crawl.settlement import Postponed
from forager.crawl.store import frontier as store
from forager.db.database import Database
from forager.db.ids import new_id
from forager.extract.hosts import host_of
from forager.extract.keys import url_key
from forager.extract.urls import NormalizedUrl
from forager.fetch.budgets.view import HostPace


def entry(seq: int, depth: int, hosts: int = 1) -> FrontierEntry:
    url = NormalizedUrl(f"https://docs{seq % hosts}.example/{seq}")
    return FrontierEntry(depth=depth, seq=seq, key=url_key(url), url=url, via=Via.LINK)


def take(window: Window) -> FrontierEntry | None:
    """The next entry of a host that answers at once."""
    taken = window.queues.take()
    if taken is not None:
        window.queues.fetched(taken)
    return taken


class Frontier:
    """Plays the engine: takes entries, and commits them with what they led to."""

    def __init__(self, database: Database, chance: random.Random, hosts: int = 1) -> None:
        self.database = database
        self.hosts = hosts
        self.job_id: UUID = new_id()
        self.chance = chance
        self.next_seq = 0
        self.settled: list[int] = []
        self.in_hand: list[FrontierEntry] = []
        self.window = self.opened()

    def opened(self) -> Window:
        return Window(self.database, self.job_id, capacity=5)

    def found(self, depths: list[int]) -> list[FrontierEntry]:
        entries = [entry(self.next_seq + n, depth, self.hosts) for n, depth in enumerate(depths)]
        self.next_seq += len(depths)
        return entries

    async def commit(self, entries: list[FrontierEntry], found: list[FrontierEntry]) -> None:
        """Some are postponed, the others settled; a look at the table may come in between."""
        late = [e for e in entries if self.chance.random() < 0.2]
        done = [e for e in entries if e not in late]
        self.window.append(found)
        await self.window.refill()
        async with self.database.transaction() as connection:
            await store.delete_entries(connection, self.job_id, done)
            await store.postpone_entries(
                connection, self.job_id, [Postponed(e, 0.0, "") for e in late]
            )
            await store.insert_entries(connection, self.job_id, found)
        await self.window.refill()
        self.window.committed(entries)
        self.settled += [e.seq for e in done]

    async def step(self, budget: int) -> None:
        await self.window.refill()
        await self.window.add_retries()
        while (taken := take(self.window)) is not None:
            self.in_hand.append(taken)
            if len(self.in_hand) > self.chance.randrange(12):
                break
        self.chance.shuffle(self.in_hand)
        some = self.in_hand[: self.chance.randrange(1, 6)]
        del self.in_hand[: len(some)]
        depths = [
            max(0, e.depth + self.chance.choice((0, 1, 1, 2)))
            for e in some
            for _ in range(self.chance.randrange(6))
        ]
        await self.commit(some, self.found(depths[: max(0, budget - self.next_seq)]))


@pytest.mark.parametrize("hosts", [1, 3, 12])
@pytest.mark.parametrize("seed", range(4))
async def test_every_entry_is_handed_out_exactly_once(
    database: Database, seed: int, hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "REWIND_INTERVAL", 0.0)
    monkeypatch.setattr(windows, "MIN_SHARE", 1)
    frontier = Frontier(database, random.Random(seed), hosts)
    await frontier.commit([], frontier.found([0, 0, 1, 1]))
    while len(frontier.settled) < frontier.next_seq:
        await frontier.step(budget=120)
        if frontier.chance.random() < 0.05:  # a crash: memory is gone, the table is not
            frontier.in_hand.clear()
            frontier.window = frontier.opened()
    assert sorted(frontier.settled) == list(range(frontier.next_seq))
    await frontier.window.refill()
    assert frontier.window.exhausted
    assert frontier.next_seq > 60


async def test_shallow_entries_go_first(database: Database) -> None:
    frontier = Frontier(database, random.Random(0))
    await frontier.commit([], frontier.found([3, 1, 2]))
    await frontier.commit([], frontier.found([1, 0]))
    window = frontier.window
    await window.refill()
    taken = [take(window) for _ in range(5)]
    assert [e.depth for e in taken if e is not None] == [0, 1, 1, 2, 3]


async def test_a_host_with_many_entries_hides_no_other(database: Database) -> None:
    frontier = Frontier(database, random.Random(0), hosts=1)
    await frontier.commit([], frontier.found([1] * 40))
    frontier.hosts = 7
    await frontier.commit([], frontier.found([2] * 7))
    frontier.window = Window(database, frontier.job_id, capacity=40, many_hosts=True)
    hosts = set()
    for _ in range(12):
        await frontier.window.refill()
        if (taken := take(frontier.window)) is not None:
            hosts.add(taken.url.partition(".")[0])
    assert len(hosts) == 7


async def test_hosts_wait_for_their_pace_and_not_for_each_other(database: Database) -> None:
    frontier = Frontier(database, random.Random(0), hosts=3)
    await frontier.commit([], frontier.found([0] * 9))
    frontier.window = Window(database, frontier.job_id, many_hosts=True)
    queues = frontier.window.queues
    await frontier.window.refill()
    first = [queues.take() for _ in range(3)]
    assert len({each.url for each in first if each is not None}) == 3
    assert queues.take() is None  # nothing is known about the pace of any host yet
    slow, fast = (each for each in first[:2] if each is not None)
    queues.paced(host_of(slow.url), HostPace(local_time() + 60, 60.0, 5, "slow"))
    queues.paced(host_of(fast.url), HostPace(local_time(), 0.0, 5, ""))
    for each in (slow, fast):
        queues.sent(each)
        queues.fetched(each)
    taken = [queues.take() for _ in range(3)]
    assert [each and host_of(each.url) for each in taken] == [host_of(fast.url)] * 2 + [None]
    queues.defer(fast, 30.0, "busy")
    waits = queues.waits()
    assert ("slow" in {reason for _, reason in waits}, queues.take()) == (True, None)


async def test_entries_beyond_a_depth_wait(database: Database) -> None:
    frontier = Frontier(database, random.Random(0), hosts=2)
    await frontier.commit([], frontier.found([1, 2, 1, 2]))
    frontier.window = Window(database, frontier.job_id, many_hosts=True)
    await frontier.window.refill()
    queues = frontier.window.queues
    assert frontier.window.least_depth() == 1
    assert [take_up_to(queues, 1) for _ in range(3)] == [1, 1, None]
    assert take_up_to(queues, 2) == 2


def take_up_to(queues: HostQueues, deepest: int) -> int | None:
    taken = queues.take(deepest)
    if taken is None:
        return None
    queues.fetched(taken)
    return taken.depth
