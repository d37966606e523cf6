"""Searches and messages while the engine is unavailable, incomplete or far behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from forager.db.database import Database
from forager.documents.search import SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index import engine, feeder, reindex
from forager.index import engine as choice
from forager.index.client import EngineClient
from forager.index.engine import SearchEngine, forget_unfed_indexes
from forager.index.kind import LAYOUT
from forager.logs import configure_logs
from forager.products.indexing import INDEXED_PRODUCTS
from forager.services.supervisor import ServiceSupervisor
from forager.settings import Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus
from services.search_index import LIMIT, Searched, all_sent, look, pages, searched, sections_in
from services.servers.opensearch import OpenSearch
from services.tcp_relay import Relay


@asynccontextmanager
async def killed(opensearch: OpenSearch) -> AsyncIterator[None]:
    """Without the engine; others need it afterwards."""
    await asyncio.to_thread(opensearch.kill)
    try:
        yield
    finally:
        await asyncio.to_thread(opensearch.start)


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
        used = SearchEngine(client)
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
    await all_sent(index)
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
        await all_sent(index)
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
