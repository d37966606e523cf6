"""The search engine receives every change; PostgreSQL decides on every answer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
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
from forager.index import engine, feeder
from forager.index.client import EngineClient
from forager.index.engine import Engine
from forager.index.writing import Action, payload_of, send
from forager.logs import configure_logs
from forager.products.filters import Filters
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.search import search_products
from forager.settings import Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus
from services.search_index import (
    LIMIT,
    Searched,
    all_sent,
    look,
    pages,
    reindex_process,
    searched,
    sections_in,
)
from services.servers.opensearch import OpenSearch
from support.sql import execute


def headings(page: SearchPage) -> list[str]:
    return sorted(hit.heading for hit in page.items)


async def test_sections_are_sent_and_deleted_sections_are_removed(
    index: Searched, corpus: Corpus
) -> None:
    await corpus.publish("a.example", pages(0, 3))
    await corpus.publish("a.example", pages(1, 4))
    assert await index.unsent() == 4  # a page that was there before is not sent again
    await index.feed()
    assert await index.unsent() == 0
    assert await index.entries() == 16
    await execute(index.database, "UPDATE sources SET keep_generations = 1")
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


async def test_an_entry_that_the_engine_rejects_is_still_found(
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


async def test_further_hits_are_requested_until_enough_are_visible(
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


async def test_the_password_appears_nowhere(
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
    child = await reindex_process(empty, settings)
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
        await all_sent(empty)
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
    await execute(empty.database, "UPDATE outbox SET created_at = now() - interval '1 day'")
    found = await check_search(empty.database, settings)
    assert found.level is Level.WARN
    away = settings.model_copy(update={"opensearch_url": SecretStr("http://u:p@127.0.0.1:1")})
    found = await check_search(empty.database, away)
    assert found.level is Level.FAIL
    assert "u:p" not in found.finding
