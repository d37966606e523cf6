"""An index is rebuilt while it is written and searched."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from forager.documents.search import SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index import engine as choice
from forager.index import feeder, reindex
from forager.index import store as index_store
from forager.index.client import EngineClient
from forager.index.engine import SearchEngine
from forager.index.kind import EngineUnavailable, IndexKind
from forager.index.writing import BulkAction, IndexWriter
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.search import search_products
from forager.settings import Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus
from services.search_index import KINDS, LIMIT, Searched, look, pages, reindex_process, sections_in


async def test_an_index_is_rebuilt_while_it_is_written_and_searched(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "ROWS", 7)
    await corpus.publish("a.example", pages(0, 60))
    await index.feed()
    [before] = await index.indexes()
    reindexing = Reindexing(index)
    reindexing_task = asyncio.create_task(reindexing.run())
    looks = rounds = 0
    while not reindexing_task.done():
        rounds += 1
        number = 1 + rounds % 50
        await corpus.publish("b.example", pages(0, number, sections=1))
        await index.feed_all()
        page = await look(index, "needle", limit=100, source="b.example")
        assert page.note is None
        assert len(page.items) == number
        looks += 1
    done = await reindexing_task
    assert looks
    await index.feed()
    assert done.index != before
    assert await index.indexes() == [done.index]
    answer = await index.client.request("GET", f"_alias/{index.prefix}-sections")
    assert list(answer) == [done.index]
    sections = await index.row("SELECT count(*) FROM sections")
    assert (await index.entries(),) == sections


class Chased(reindex.Reindexer):
    """One beside which as many rows are written as it fills in."""

    def __init__(self, index: Searched, corpus: Corpus) -> None:
        super().__init__(index.database, index.client, index.prefix, grace=0)
        self._corpus = corpus
        self._batches = 0

    async def _remember(self, *values: Any) -> None:
        self._batches += 1
        await self._corpus.publish(f"b{self._batches}.example", pages(0, 2))
        await super()._remember(*values)


async def test_rows_that_are_written_meanwhile_are_not_filled_in(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "ROWS", 1)
    await corpus.publish("a.example", pages(0, 3))
    async with asyncio.timeout(LIMIT):
        done = await Chased(index, corpus).run(INDEXED_SECTIONS)
    assert done.rows == 3
    await index.feed()
    assert await index.entries() == (3 + 3 * 2) * 4


class Pausing(feeder.Feeder):
    """One that reads the state of the indexes, and continues on request."""

    def __init__(self, index: Searched) -> None:
        super().__init__(index.database, index.client, index.prefix, KINDS)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def _all_there(self, kind: IndexKind, targets: dict[str, str]) -> bool:
        answer = await super()._all_there(kind, targets)
        self.reached.set()
        await self.go.wait()
        return answer


async def test_a_feeder_that_knows_only_the_old_index_sends_it_nothing(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 3))
    paused = Pausing(index)
    feeding = asyncio.create_task(paused.feed(INDEXED_SECTIONS))
    async with asyncio.timeout(LIMIT):
        await paused.reached.wait()
    done = await index.reindex(INDEXED_SECTIONS)
    await corpus.publish("b.example", pages(0, 2))
    paused.go.set()
    assert await feeding == 0
    await index.feed()
    assert sections_in(await look(index, "needle", limit=100, source="b.example")) == 8
    assert await index.entries() == 20
    assert await index.indexes() == [done.index]


async def test_writing_makes_no_index(index: Searched, corpus: Corpus) -> None:
    await corpus.publish("a.example", pages(0, 1))
    writer = IndexWriter(index.database, index.client, INDEXED_SECTIONS)
    ids = [(await index.row("SELECT ref_id FROM outbox"))[0]]
    before = await index.indexes()
    name = f"{index.prefix}-sections-deleted"
    with pytest.raises(EngineUnavailable, match="alias"):
        await writer.write([name], await writer.sizes(ids), lambda _: 1)
    with pytest.raises(EngineUnavailable, match="alias"):
        await writer.delete([name], [BulkAction("1", 1, 1)])
    assert await index.indexes() == before


class Dying(EngineClient):
    async def create(self, name: str) -> str:
        await super().create(name)
        raise EngineUnavailable("killed")


async def test_a_reindex_that_is_killed_at_its_beginning_leaves_nothing(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    async with Dying(index.url) as client:
        with pytest.raises(EngineUnavailable, match="killed"):
            await reindex.Reindexer(index.database, client, index.prefix).run(INDEXED_SECTIONS)
    assert len(await index.indexes()) == 2
    await index.feed()  # the index in use is updated meanwhile
    assert (await index.unsent(), await index.entries()) == (0, 8)
    done = await index.reindex(INDEXED_SECTIONS)
    assert await index.indexes() == [done.index]
    assert (await index.entries(), done.resumed) == (8, False)


async def test_an_alias_that_is_missing_is_made(index: Searched) -> None:
    [name] = await index.indexes()
    alias = f"{index.prefix}-sections"
    gone = {"actions": [{"remove": {"index": name, "alias": alias}}]}
    await index.client.request("POST", "_aliases", gone)
    await index.feed()
    assert list(await index.client.request("GET", f"_alias/{alias}")) == [name]


class Swapping(EngineClient):
    """One whose first search is asked when another index has taken the place of the one asked."""

    def __init__(self, index: Searched, kind: IndexKind) -> None:
        super().__init__(index.url)
        self._index = index
        self._kind = kind
        self._swapped = False

    async def request(self, method: str, path: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        if path.endswith("/_search") and not self._swapped:
            self._swapped = True
            await self._index.reindex(self._kind)
        return await super().request(method, path, *arguments, **more)


async def test_a_search_in_an_index_that_is_replaced_asks_the_new_one(
    index: Searched, corpus: Corpus, settings: Settings
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    async with Swapping(index, INDEXED_SECTIONS) as client:
        page = await search(index.database, SearchRequest(query="needle"), SearchEngine(client))
    assert (sections_in(page), page.note) == (8, None)
    await index.reindex(INDEXED_PRODUCTS)
    await (await Shop(index.database, settings).open()).visit("a", lamp())
    async with Swapping(index, INDEXED_PRODUCTS) as client:
        found = await search_products(index.database, "lamp", engine=SearchEngine(client))
    assert (len(found.items), found.note) == (1, None)


class Reindexing(reindex.Reindexer):
    def __init__(self, index: Searched) -> None:
        super().__init__(index.database, index.client, index.prefix)

    async def run(self, kind: Any = INDEXED_SECTIONS) -> reindex.Reindexed:
        return await super().run(kind)


async def test_a_writer_that_began_before_the_index_is_waited_for(
    empty: Searched, corpus: Corpus
) -> None:
    await corpus.build("a.example", pages(0, 2))
    async with empty.database.transaction() as connection:
        await connection.execute("UPDATE sources SET updated_at = now()")
        making = asyncio.create_task(empty.reindex(INDEXED_SECTIONS))
        async with asyncio.timeout(LIMIT):
            while await empty.row("SELECT count(*) FROM search_indexes") != (1,):
                await connection.execute("")  # idle for long, it would be ended
                await asyncio.sleep(0.02)
        async with empty.database.connection() as other:
            own = await index_store.current_transaction(other)
            assert not await index_store.all_have_ended(other, own)
        assert not making.done()
    assert (await making).rows == 2


async def test_a_killed_reindex_continues_where_it_was(
    empty: Searched, corpus: Corpus, settings: Settings, tmp_path: Path
) -> None:
    await corpus.publish("a.example", pages(0, 40))
    for number in range(2):
        child = await reindex_process(empty, settings, slowly=True)
        async with asyncio.timeout(LIMIT):
            while await empty.row(FILLED_TO, 5 * number) != (True,):
                assert child.returncode is None
                await asyncio.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        await child.wait()
    assert (await look(empty, "needle")).note == choice.NOT_COMPLETE
    child = await reindex_process(empty, settings)
    out, err = await asyncio.wait_for(child.communicate(), LIMIT)
    assert child.returncode == 0, err
    sections, products = json.loads(out)
    assert sections["resumed"]
    assert sections["rows"] < 40
    assert products["rows"] == 0
    assert await empty.entries() == 160
    assert len(await empty.indexes()) == 2
    assert (await look(empty, "needle")).note is None


FILLED_TO = "SELECT coalesce(max(filled_to), 0) > %s FROM search_indexes"
