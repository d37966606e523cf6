"""The window against the real table: every entry is handed out once, whatever happens between."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from forager.crawl.frontier.entry import Entry, Via
from forager.crawl.frontier.window import Window
from forager.crawl.settlement import Postponed
from forager.crawl.store import frontier as store
from forager.db.database import Database
from forager.db.ids import new_id
from forager.extract.keys import url_key
from forager.extract.urls import NormalisedUrl


def entry(seq: int, depth: int) -> Entry:
    url = NormalisedUrl(f"https://docs.example/{seq}")
    return Entry(depth=depth, seq=seq, key=url_key(url), url=url, via=Via.LINK)


class Frontier:
    """Plays the engine: takes entries, and commits them with what they led to."""

    def __init__(self, database: Database, chance: random.Random) -> None:
        self.database = database
        self.job_id: UUID = new_id()
        self.chance = chance
        self.next_seq = 0
        self.settled: list[int] = []
        self.in_hand: list[Entry] = []
        self.window = self.opened()

    def opened(self) -> Window:
        return Window(self.database, self.job_id, capacity=5)

    def found(self, depths: list[int]) -> list[Entry]:
        entries = [entry(self.next_seq + n, depth) for n, depth in enumerate(depths)]
        self.next_seq += len(depths)
        return entries

    async def commit(self, entries: list[Entry], found: list[Entry]) -> None:
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
        while (taken := self.window.take()) is not None:
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


@pytest.mark.parametrize("seed", range(4))
async def test_every_entry_is_handed_out_exactly_once(database: Database, seed: int) -> None:
    frontier = Frontier(database, random.Random(seed))
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
    taken = [window.take() for _ in range(5)]
    assert [e.depth for e in taken if e is not None] == [0, 1, 1, 2, 3]
