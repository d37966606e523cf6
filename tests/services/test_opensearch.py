"""The search engine follows PostgreSQL, which decides on every answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import SecretStr

from forager.db.database import Database
from forager.doctor.check import Level
from forager.doctor.server import check_search
from forager.documents import publication
from forager.documents.cleanup import DocumentCleanup
from forager.documents.search import SearchPage, SearchRequest, search
from forager.documents.search import ranking as candidates
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index import engine, feeder, reindex
from forager.index import engine as choice
from forager.index import store as index_store
from forager.index.client import EngineClient
from forager.index.engine import Engine, forget_unfed_indexes
from forager.index.kind import LAYOUT, EngineUnavailable, Kind
from forager.index.writing import Action, IndexWriter, payload_of, send
from forager.logs import configure_logs
from forager.products.filters import Filters
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.search import search_products
from forager.services.supervisor import ServiceSupervisor
from forager.settings import Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus, Page
from services.search_index import KINDS, Searched, longer_limits, searched
from services.servers.opensearch import OpenSearch
from services.tcp_relay import Relay

__all__ = ["longer_limits"]

LIMIT = 120.0


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@pytest.fixture
async def index(opensearch: OpenSearch, database: Database) -> AsyncIterator[Searched]:
    async with searched(opensearch, database, INDEXED_SECTIONS) as index:
        yield index


@pytest.fixture
async def empty(opensearch: OpenSearch, database: Database) -> AsyncIterator[Searched]:
    """An engine that is not in use yet."""
    async with searched(opensearch, database) as index:
        yield index


async def look(index: Searched, words: str, **more: Any) -> SearchPage:
    return await search(index.database, SearchRequest(query=words, **more), index.engine)


def sections_in(page: SearchPage) -> int:
    """How many sections were found, over all pages."""
    return sum(1 + hit.more_sections for hit in page.items)


def headings(page: SearchPage) -> list[str]:
    return sorted(hit.heading for hit in page.items)


def pages(first: int, last: int, sections: int = 4) -> dict[str, Page]:
    return {
        f"/{number}": Page(
            [(f"part {part} of {number}", f"needle {number} {part}") for part in range(sections)]
        )
        for number in range(first, last)
    }


@asynccontextmanager
async def killed(opensearch: OpenSearch) -> AsyncIterator[None]:
    """Without the engine; others need it afterwards."""
    await asyncio.to_thread(opensearch.kill)
    try:
        yield
    finally:
        await asyncio.to_thread(opensearch.start)


async def until_told(index: Searched) -> None:
    async with asyncio.timeout(LIMIT):
        while await index.unsent():
            await asyncio.sleep(0.05)


# --- what is sent ------------------------------------------------------------------------------


async def test_sections_are_sent_and_deleted_sections_are_removed(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 3))
    await corpus.publish("a.example", pages(1, 4))
    assert await index.unsent() == 4  # a page that was there before is not sent again
    await index.feed()
    assert await index.unsent() == 0
    assert await index.entries() == 16
    async with index.database.connection() as connection:
        await connection.execute("UPDATE sources SET keep_generations = 1")
    await DocumentCleanup(index.database, reader_grace=0).run_once()
    await index.feed()
    await index.client.refresh(f"{index.prefix}-sections")
    assert await index.entries() == 12
    assert headings(await look(index, "needle", path="/0")) == []
    assert sections_in(await look(index, "needle", limit=100)) == 12


async def test_products_are_sent_after_every_kind_of_change(
    opensearch: OpenSearch, database: Database, settings: Settings
) -> None:
    async with searched(opensearch, database, INDEXED_PRODUCTS) as index:
        shop = await Shop(database, settings).open()
        written = await shop.stock({"a": lamp("10"), "b": lamp("20", name="Copper lamp")})
        await index.feed()

        async def found(words: str = "lamp", **filters: Any) -> list[int]:
            page = await search_products(database, words, Filters(**filters), engine=index.engine)
            assert page.note is None
            return sorted(product.id for product in page.items)

        a, b = (each.product_id for each in written)
        assert await found() == [a, b]
        assert await found(min_price=Decimal(15)) == [b]
        assert await found(category="lighting", brand="lumen & sons", sku="bl-100") == [a, b]
        assert await found(category="lamps") == []
        await shop.visit("a", lamp("17"))
        assert await index.unsent() == 1
        assert await found(min_price=Decimal(15)) == [a, b]  # as PostgreSQL has it
        await index.feed()
        assert await found(min_price=Decimal(15)) == [a, b]
        await shop.visit("a", lamp("17"))
        assert await index.unsent() == 0  # nothing has changed
        other = await Shop(database, settings, host="other.example").open()
        await shop.write(
            replace(await shop.page("b", lamp("20", name="Copper lamp")), domain_id=other.domain_id)
        )
        await index.feed()
        assert await found(domain="other.example") == [b]
        stored = await index.client.request("GET", f"{index.prefix}-products/_doc/{a}")
        assert stored["_source"] == {
            "product_id": a,
            "product_name": "Brass Desk Lamp",
            "description": "A heavy lamp of brass for reading at night.",
            "brand": "Lumen & Sons",
            "category": "Home > Lighting > Desk lamps",
            "domain_name": "shop.example",
            **{name: stored["_source"][name] for name in ("created_at", "updated_at")},
            "domain_id": shop.domain_id,
            "price": 17.0,
            "currency": "EUR",
            "availability": "in_stock",
            "rating": 4.5,
        }


async def test_the_mapping_is_the_one_of_the_template(index: Searched) -> None:
    await index.reindex(INDEXED_PRODUCTS)
    answer = await index.client.request("GET", f"{index.prefix}-products/_mapping")
    [found] = answer.values()
    properties = found["mappings"]["properties"]
    assert {name: properties[name]["type"] for name in SEED} == SEED
    assert found["mappings"]["dynamic"] == "strict"


SEED = {
    "product_id": "long",
    "product_name": "text",
    "description": "text",
    "brand": "keyword",
    "category": "keyword",
    "domain_name": "keyword",
    "created_at": "date",
}


async def test_an_old_message_cannot_overwrite(
    opensearch: OpenSearch, database: Database, settings: Settings
) -> None:
    async with searched(opensearch, database, INDEXED_PRODUCTS) as index:
        shop = await Shop(database, settings).open()
        written = await shop.visit("a", lamp("10", name="Old lamp"))
        [old] = [await index.row("SELECT id FROM outbox")]
        async with database.connection() as connection:
            rows = await INDEXED_PRODUCTS.select(connection, [written.product_id or 0])
        entry = INDEXED_PRODUCTS.entry(rows[0])
        stale = Action(entry.id, entry.ref_id, old[0], entry.body)
        await shop.visit("a", lamp("10", name="New lamp"))
        await index.feed()
        name = f"{index.prefix}-products"
        answer = await send(index.client, name, [stale], payload_of([stale]))
        assert answer.counts == {"known": 1}
        gone = Action(stale.id, stale.ref_id, old[0])
        assert (await send(index.client, name, [gone], payload_of([gone]))).counts == {"known": 1}
        stored = await index.client.request("GET", f"{name}/_doc/{stale.id}")
        assert stored["_source"]["product_name"] == "New lamp"
        # nor does it bring back what was deleted
        async with database.transaction() as connection:
            await connection.execute("DELETE FROM products")
            await connection.execute(
                "INSERT INTO outbox (topic, ref_id) VALUES ('products', %s)", (stale.ref_id,)
            )
        await index.feed()
        assert (await send(index.client, name, [stale], payload_of([stale]))).counts == {"known": 1}


async def test_an_entry_that_is_refused_is_found_all_the_same(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await corpus.publish("a.example", pages(0, 2, sections=1))
    broken = replace(
        INDEXED_SECTIONS,
        entry=lambda row: replace(
            INDEXED_SECTIONS.entry(row), body=b'{"unheard_of": 1}' if row["path"] == "/0" else b"{}"
        ),
    )
    one = feeder.Feeder(index.database, index.client, index.prefix, [broken])
    assert await one.run_once() == 2
    assert await one.run_once() == 0
    assert await index.row("SELECT attempts, last_error ~ 'strict' FROM outbox") == (1, True)
    assert headings(await look(index, "needle 0")) == ["part 0 of 0"]


# --- what readers see --------------------------------------------------------------------------


async def test_publishing_and_rolling_back_are_seen_at_once(
    index: Searched, corpus: Corpus
) -> None:
    for name in ("first", "second"):
        content = {"/a": [(name, "needle")], "/same": [("same", "needle")]}
        await corpus.publish("a.example", content)
        assert headings(await look(index, "needle")) == sorted([name, "same"])
    await index.feed()
    assert headings(await look(index, "needle")) == ["same", "second"]
    await publication.roll_back(index.database, "a.example")
    assert headings(await look(index, "needle")) == ["first", "same"]
    await publication.publish(index.database, "a.example", 2)
    assert headings(await look(index, "needle")) == ["same", "second"]


async def test_more_is_asked_for_until_enough_can_be_seen(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for round_ in range(4):
        crowd = {f"/{n}": [(f"old {n}", "needle " * (9 - round_))] for n in range(10)}
        await corpus.publish("a.example", crowd)
    await corpus.publish("a.example", {f"/{n}": [(f"new {n}", "a needle")] for n in range(10)})
    await index.feed()
    monkeypatch.setattr("forager.documents.search.ranking.WINDOWS", (5, 20, 100))
    page = await look(index, "needle", limit=20)
    assert headings(page) == [f"new {n}" for n in range(10)]
    assert not page.capped
    monkeypatch.setattr("forager.documents.search.ranking.WINDOWS", (5, 42))
    page = await look(index, "needle", limit=20)
    assert page.capped
    assert candidates.WINDOWS[-1] <= 10_000


async def test_phrases_mean_the_same_across_common_words(index: Searched, corpus: Corpus) -> None:
    texts = [
        "end of line", "end line", "end some line", "line of end", "end of the long line",
        "the end of a line", "it ends. Lines follow", "end of of line of end",
    ]  # fmt: skip
    await corpus.publish("a.example", {f"/{n}": [("x", text)] for n, text in enumerate(texts)})
    await index.feed()
    for query in (
        '"end of line"', '"end line"', '"the end of the line"', '"end of the line"',
        '"line of end" -"end of line"', 'long "of line"', '"lines follow" or "a line"',
    ):  # fmt: skip
        page = await look(index, query, limit=100)
        alone = await search(index.database, SearchRequest(query=query, limit=100))
        assert [hit.url for hit in page.items] == [hit.url for hit in alone.items], query
        assert page.note is None


async def test_a_search_continues_after_the_engine_has_gone(
    index: Searched, corpus: Corpus, opensearch: OpenSearch
) -> None:
    await corpus.publish("a.example", pages(0, 5))
    await index.feed()
    everything = [hit.url for hit in (await look(index, "needle", limit=100)).items]
    first = await look(index, "needle", limit=2)
    dead = Engine(EngineClient("http://127.0.0.1:1"))
    request = SearchRequest(query="needle", limit=100, cursor=first.next_cursor)
    rest = await search(index.database, request, dead)
    assert [hit.url for hit in (*first.items, *rest.items)] == everything
    await dead._client.__aexit__()


# --- an engine that is away --------------------------------------------------------------------


async def test_postgresql_answers_and_says_so_while_the_engine_is_down(
    index: Searched,
    corpus: Corpus,
    opensearch: OpenSearch,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    await index.feed()
    monkeypatch.setattr(engine, "COOLDOWN", 0.0)
    configure_logs("warning")
    used = index.engine
    request = SearchRequest(query="needle", limit=100)
    async with killed(opensearch):
        found = [await search(index.database, request, used) for _ in range(3)]
    assert [(sections_in(page), page.note) for page in found] == [(8, engine.UNAVAILABLE)] * 3
    said = capfd.readouterr().err
    assert said.count("the search engine does not answer, PostgreSQL does") == 1
    async with asyncio.timeout(LIMIT):
        while (await search(index.database, request, used)).note is not None:
            await asyncio.sleep(0.1)


async def test_only_one_search_waits_for_a_silent_engine(
    index: Searched, corpus: Corpus, opensearch: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    monkeypatch.setattr(engine, "ANSWER_LIMIT", 0.2)
    monkeypatch.setattr(engine, "COOLDOWN", 3600.0)
    async with Relay(opensearch.port, silent=True) as relay, EngineClient(relay.endpoint) as client:
        used = Engine(client)
        for _ in range(2):
            page = await search(index.database, SearchRequest(query="needle"), used)
            assert (sections_in(page), page.note) == (8, engine.UNAVAILABLE)
        assert used.note == engine.UNAVAILABLE


async def test_nothing_is_lost_when_the_engine_is_killed_while_it_is_fed(
    index: Searched, corpus: Corpus, opensearch: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeder, "PER_CLAIM", 20)
    monkeypatch.setattr(feeder, "POLL_INTERVAL", 0.05)
    await corpus.publish("a.example", pages(0, 400))
    feeding = asyncio.create_task(ServiceSupervisor([index.feeder.service()]).run())
    async with asyncio.timeout(LIMIT):
        while await index.unsent() >= 380:
            await asyncio.sleep(0.01)
    async with killed(opensearch):
        left = await index.unsent()
        await corpus.publish("b.example", pages(0, 100))
        assert await index.unsent() == left + 100
    # messages of a claim that was cut off come back when they are given back, or with the lease
    await until_told(index)
    feeding.cancel()
    with suppress(asyncio.CancelledError):
        await feeding
    assert await index.entries() == 2000
    assert sections_in(await look(index, "needle 399")) == 4


async def test_two_feeders_and_many_writers_agree(
    opensearch: OpenSearch, database: Database, settings: Settings
) -> None:
    async with searched(opensearch, database, INDEXED_PRODUCTS) as index:
        shop = await Shop(database, settings).open()
        await shop.stock({f"p{n}": lamp("10") for n in range(30)})
        feeding = [asyncio.create_task(_feed_on(index)) for _ in range(2)]
        for price in range(11, 31):
            await shop.stock({f"p{n}": lamp(str(price)) for n in range(30)})
        await until_told(index)
        for task in feeding:
            task.cancel()
        await asyncio.gather(*feeding, return_exceptions=True)
        answer = await index.client.request(
            "POST", f"{index.prefix}-products/_search", {"size": 100, "_source": ["price"]}
        )
        prices = [hit["_source"]["price"] for hit in answer["hits"]["hits"]]
        assert prices == [30.0] * 30


async def _feed_on(index: Searched) -> None:
    one = index.feeder
    while True:
        await one.run_once()
        await asyncio.sleep(0)


# --- completeness ------------------------------------------------------------------------------


async def test_a_store_that_is_full_needs_an_index_first(
    empty: Searched, corpus: Corpus, database: Database
) -> None:
    await corpus.publish("a.example", pages(0, 3))
    page = await look(empty, "needle", limit=100)
    assert (sections_in(page), page.note) == (12, choice.NOT_COMPLETE)
    assert await empty.unsent() == 0  # nothing is sent without an engine
    done = await empty.reindex(INDEXED_SECTIONS)
    assert (done.rows, done.resumed) == (3, False)
    page = await look(empty, "needle", limit=100)
    assert (sections_in(page), page.note) == (12, None)
    assert await empty.entries() == 12


async def test_an_index_that_was_switched_off_must_be_rebuilt(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 3))
    assert await index.unsent() == 3
    assert await forget_unfed_indexes(index.database) == 0  # others may have it switched on
    assert await forget_unfed_indexes(index.database, unfed_for=0) == 3
    assert await index.unsent() == 0
    assert (await look(index, "needle")).note == choice.NOT_COMPLETE
    await corpus.publish("a.example", pages(0, 4))
    assert await index.unsent() == 0


async def test_an_index_of_another_layout_is_not_asked(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    for module in (choice, feeder, reindex):
        monkeypatch.setattr(module, "LAYOUT", LAYOUT + 1)
    page = await look(index, "needle")
    assert (sections_in(page), page.note) == (8, choice.OTHER_LAYOUT)
    await index.feed()
    assert await index.unsent() == 2  # those of another test
    await index.reindex(INDEXED_SECTIONS)
    assert (await look(index, "needle")).note is None
    assert await index.unsent() == 0


async def test_an_index_that_the_engine_has_lost_is_noticed(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 2))
    await index.feed()
    [name] = await index.indexes()
    await index.client.delete(name)
    page = await look(index, "needle")
    assert (sections_in(page), page.note) == (8, engine.LOST)
    # an empty one of the same name is another
    await index.client.create(name)
    await corpus.publish("a.example", pages(0, 3))
    await index.feed()
    assert (await look(index, "needle")).note == choice.NOT_COMPLETE
    await index.reindex(INDEXED_SECTIONS)
    assert sections_in(await look(index, "needle", limit=100)) == 12
    assert await index.entries() == 12


async def test_an_index_that_is_far_behind_is_not_asked(
    index: Searched, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "MAX_UNSENT", 2)
    await corpus.publish("a.example", pages(0, 3))
    assert (await look(index, "needle")).note == choice.BEHIND
    await index.feed()
    assert (await look(index, "needle")).note is None


# --- rebuilding it -----------------------------------------------------------------------------


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
        await index.feed()
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


class Pausing(feeder.Feeder):
    """One that reads the state of the indexes, and continues on request."""

    def __init__(self, index: Searched) -> None:
        super().__init__(index.database, index.client, index.prefix, KINDS)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def _all_there(self, kind: Kind, targets: dict[str, str]) -> bool:
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
        await writer.delete([name], [Action("1", 1, 1)])
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

    def __init__(self, index: Searched, kind: Kind) -> None:
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
        page = await search(index.database, SearchRequest(query="needle"), Engine(client))
    assert (sections_in(page), page.note) == (8, None)
    await index.reindex(INDEXED_PRODUCTS)
    await (await Shop(index.database, settings).open()).visit("a", lamp())
    async with Swapping(index, INDEXED_PRODUCTS) as client:
        found = await search_products(index.database, "lamp", engine=Engine(client))
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
        child = await _reindex_process(empty, settings, slowly=True)
        async with asyncio.timeout(LIMIT):
            while await empty.row(FILLED_TO, 5 * number) != (True,):
                assert child.returncode is None
                await asyncio.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        await child.wait()
    assert (await look(empty, "needle")).note == choice.NOT_COMPLETE
    child = await _reindex_process(empty, settings)
    out, err = await asyncio.wait_for(child.communicate(), LIMIT)
    assert child.returncode == 0, err
    sections, products = json.loads(out)
    assert sections["resumed"]
    assert sections["rows"] < 40
    assert products["rows"] == 0
    assert await empty.entries() == 160
    assert len(await empty.indexes()) == 2
    assert (await look(empty, "needle")).note is None


async def _reindex_process(
    index: Searched, settings: Settings, *, slowly: bool = False
) -> asyncio.subprocess.Process:
    assert settings.database_url is not None
    environment = os.environ | {
        "FORAGER_DATABASE_URL": settings.database_url.get_secret_value(),
        "FORAGER_SEARCH": "opensearch",
        "FORAGER_OPENSEARCH_URL": index.url,
        "FORAGER_OPENSEARCH_PREFIX": index.prefix,
    }
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *(["-c", SLOWLY] if slowly else ["-m", "forager"]),
        *("search", "reindex", "--json"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


FILLED_TO = "SELECT coalesce(max(filled_to), 0) > %s FROM search_indexes"
SLOWLY = """
from forager.index import reindex
reindex.ROWS = 5
import time
from forager.index.writing import IndexWriter
serialize = IndexWriter._serialize
IndexWriter._serialize = lambda *a: (time.sleep(1.5), serialize(*a))[1]
from forager.__main__ import main
main()
"""


# --- from outside --------------------------------------------------------------------------------


async def test_the_password_is_said_nowhere(
    index: Searched, corpus: Corpus, opensearch: OpenSearch, capfd: pytest.CaptureFixture[str]
) -> None:
    await corpus.publish("a.example", pages(0, 1))
    configure_logs("debug")
    secret = "hunter2"
    async with EngineClient(f"http://user:{secret}@127.0.0.1:1") as client:
        page = await search(index.database, SearchRequest(query="needle"), Engine(client))
    async with EngineClient(f"http://user:{secret}@127.0.0.1:{opensearch.port}") as client:
        await client.request("GET", "_cluster/health")
        assert secret not in client.address
    assert page.note == engine.UNAVAILABLE
    said = capfd.readouterr().err
    assert "127.0.0.1:1" in said
    assert secret not in repr((said, page))


async def test_worker_and_commands_use_the_engine(
    empty: Searched, corpus: Corpus, settings: Settings
) -> None:
    """Everything by settings alone: a reindex, a worker that feeds, a search that asks."""
    await corpus.publish("a.example", pages(0, 3))
    child = await _reindex_process(empty, settings)
    assert await asyncio.wait_for(child.wait(), LIMIT) == 0
    assert settings.database_url is not None
    environment = os.environ | {
        "FORAGER_DATABASE_URL": settings.database_url.get_secret_value(),
        "FORAGER_SEARCH": "opensearch",
        "FORAGER_OPENSEARCH_URL": empty.url,
        "FORAGER_OPENSEARCH_PREFIX": empty.prefix,
    }
    forager = (sys.executable, "-m", "forager")
    worker = await asyncio.create_subprocess_exec(*forager, "worker", env=environment)
    try:
        await corpus.publish("b.example", pages(0, 5))
        await until_told(empty)
        assert await empty.entries() == 32
    finally:
        for process in [psutil.Process(worker.pid), *psutil.Process(worker.pid).children()]:
            with suppress(psutil.Error):
                process.terminate()
        await worker.wait()
    asked = await asyncio.create_subprocess_exec(
        *forager, "search", "needle", "--json", env=environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(asked.communicate(), LIMIT)
    assert json.loads(out)["note"] is None
    assert len(json.loads(out)["items"]) == 8


async def test_the_doctor_says_what_the_index_needs(
    empty: Searched, corpus: Corpus, settings: Settings, opensearch: OpenSearch
) -> None:
    settings = empty.settings(settings)
    await corpus.publish("a.example", pages(0, 2))
    found = await check_search(empty.database, settings)
    assert (found.level, found.finding) == (
        Level.WARN,
        "the index of sections and products is missing or not complete",
    )
    assert "reindex" in (found.advice or "")
    for kind in (INDEXED_SECTIONS, INDEXED_PRODUCTS):
        await empty.reindex(kind)
    await corpus.publish("a.example", pages(0, 3))
    found = await check_search(empty.database, settings)
    assert found.finding == "the indexes are complete; 1 changes wait to be indexed"
    assert found.level is Level.OK
    async with empty.database.connection() as connection:
        await connection.execute("UPDATE outbox SET created_at = now() - interval '1 day'")
    found = await check_search(empty.database, settings)
    assert found.level is Level.WARN
    away = settings.model_copy(update={"opensearch_url": SecretStr("http://u:p@127.0.0.1:1")})
    found = await check_search(empty.database, away)
    assert found.level is Level.FAIL
    assert "u:p" not in found.finding
