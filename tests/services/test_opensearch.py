"""The search engine receives every change and ranks; PostgreSQL checks what readers see."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents import publication
from forager.documents.cleanup import DocumentCleanup
from forager.documents.search import SearchPage, SearchRequest, SectionKind, search
from forager.documents.search import ranking as candidates
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.errors import InvalidInput
from forager.index import engine, feeder
from forager.index.client import EngineClient
from forager.index.engine import SearchEngine
from forager.index.writing import BulkAction, payload_of, send
from forager.logs import configure_logs
from forager.products.filters import Filters
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.search import search_products
from forager.settings import Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus
from services.search_index import Searched, look, pages, searched, sections_in
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
        assert await found("bl-100") == [a, b]
        assert await found("brass -copper") == [a]
        assert await found('"copper lamp" OR teapot') == [b]
        assert await found("lumen") == [a, b]
        assert await found(has_problems=True) == []
        await shop.visit("a", lamp("17"))
        assert await index.unsent() == 1
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
            "sku": "BL-100",
            "gtin": stored["_source"]["gtin"],
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
        stale = BulkAction(entry.id, entry.ref_id, old[0], entry.body)
        await shop.visit("a", lamp("10", name="New lamp"))
        await index.feed()
        name = f"{index.prefix}-products"
        answer = await send(index.client, name, [stale], payload_of([stale]))
        assert answer.counts == {"known": 1}
        gone = BulkAction(stale.id, stale.ref_id, old[0])
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


async def test_an_entry_that_the_engine_rejects_waits(index: Searched, corpus: Corpus) -> None:
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


async def test_publishing_and_rolling_back_are_seen_at_once(
    index: Searched, corpus: Corpus
) -> None:
    for name in ("first", "second"):
        content = {"/a": [(name, "needle")], "/same": [("same", "needle")]}
        await corpus.publish("a.example", content)
        await index.feed()
        assert headings(await look(index, "needle")) == sorted([name, "same"])
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
    monkeypatch.setattr("forager.documents.search.ranking.WINDOWS", (5, 45))
    page = await look(index, "needle", limit=20)
    assert page.capped
    assert candidates.WINDOWS[-1] <= 10_000


TEXTS = {
    "/phrase": [("Lines", "the end of a line")],
    "/words": [("Ends", "a line has two ends")],
    "/name": [("asyncio.gather", "Run awaitables concurrently.")],
    "/option": [("Hooks", "Use --no-verify to skip them.")],
    "/heading": [("Backups", "How to keep data.")],
    "/text": [("Operating", "Make backups of the data, and test the backup.")],
    "/other": [("Zebra", "An animal.")],
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"end of a line"', ["/phrase"]),
        ("line ends", ["/phrase", "/words"]),
        ("line -two", ["/phrase"]),
        ("zebra or gather", ["/name", "/other"]),
        ("zebra OR gather awaitables", ["/name", "/other"]),
        ("gather", ["/name"]),
        ("asyncio.gather", ["/name"]),
        ("--no-verify", ["/option"]),
        ("verify", ["/option"]),
        ("backup", ["/heading", "/text"]),
        ("ZEBRAS", ["/other"]),
        ("an animal of zebra and nothing", ["/other"]),
    ],
)
async def test_the_engine_finds_words_phrases_and_names(
    index: Searched, corpus: Corpus, query: str, found: list[str]
) -> None:
    await corpus.publish("a.example", TEXTS)
    await index.feed()
    page = await look(index, query, limit=100)
    assert sorted(urlsplit(hit.url).path for hit in page.items) == found, page.note


async def test_the_order_is_the_one_of_the_engine(index: Searched, corpus: Corpus) -> None:
    texts = {f"/{n}": [(f"part {n}", "needle " * (n + 1))] for n in range(5)}
    await corpus.publish("a.example", texts)
    await index.feed()
    page = await look(index, "needle", limit=2)
    rest = await look(index, "needle", limit=100, cursor=page.next_cursor)
    hits = [*page.items, *rest.items]
    query = {"query": {"match": {"content": "needle"}}, "size": 5, "_source": ["url"]}
    asked = await index.client.request("POST", f"{index.prefix}-sections/_search", query)
    ranked = [hit["_source"]["url"] for hit in asked["hits"]["hits"]]
    assert [urlsplit(hit.url)._replace(fragment="").geturl() for hit in hits] == ranked
    assert all(hit.highlights for hit in hits)


async def test_without_results_postgresql_suggests(index: Searched, corpus: Corpus) -> None:
    await corpus.publish("a.example", {"/a": [("transaction", "a transaction")]})
    await index.feed()
    page = await look(index, "transacton")
    assert (page.suggestion, len(page.items)) == ("transaction", 1)


async def test_filters_and_owners(index: Searched, corpus: Corpus) -> None:
    await corpus.publish("a.example", {"/x/1": [("one", "needle")], "/y/2": [("two", "needle")]})
    await corpus.publish("b.example", {"/x/3": [("three", "needle")]})
    await index.feed()
    assert headings(await look(index, "needle", path="/x")) == ["one", "three"]
    assert headings(await look(index, "needle", source="b.example")) == ["three"]
    assert headings(await look(index, "needle", user_id=new_id())) == []
    assert headings(await look(index, "needle", kind=SectionKind.DEFINITION)) == []
    assert headings(await look(index, "needle", language="de")) == []


async def test_products_by_pages(
    opensearch: OpenSearch, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.products.search.PORTION", 3)
    async with searched(opensearch, database, INDEXED_PRODUCTS) as index:
        shop = await Shop(database, settings).open()
        await shop.stock({str(n): lamp(name=f"Lamp {'lamp ' * n}") for n in range(8)})
        await index.feed()
        whole = await search_products(database, "lamp", limit=100, engine=index.engine)
        paged, cursor = [], None
        while True:
            page = await search_products(
                database, "lamp", limit=3, cursor=cursor, engine=index.engine
            )
            paged += page.items
            if (cursor := page.next_cursor) is None:
                break
        assert (len(paged), paged) == (8, whole.items)
        first = await search_products(database, "lamp", limit=3, engine=index.engine)
        with pytest.raises(InvalidInput, match="another list"):
            await search_products(database, "lamp", limit=3, cursor=first.next_cursor)


async def test_postgresql_answers_after_the_engine_has_gone(
    index: Searched, corpus: Corpus, opensearch: OpenSearch
) -> None:
    await corpus.publish("a.example", pages(0, 5))
    await index.feed()
    first = await look(index, "needle", limit=2)
    dead = SearchEngine(EngineClient("http://127.0.0.1:1"))
    request = SearchRequest(query="needle", limit=100, cursor=first.next_cursor)
    rest = await search(index.database, request, dead)
    assert (len(rest.items), rest.note) == (3, engine.UNAVAILABLE)
    await dead._client.__aexit__()


async def test_the_password_appears_nowhere(
    index: Searched, corpus: Corpus, opensearch: OpenSearch, capfd: pytest.CaptureFixture[str]
) -> None:
    await corpus.publish("a.example", pages(0, 1))
    configure_logs("debug")
    secret = "hunter2"
    async with EngineClient(f"http://user:{secret}@127.0.0.1:1") as client:
        page = await search(index.database, SearchRequest(query="needle"), SearchEngine(client))
    async with EngineClient(f"http://user:{secret}@127.0.0.1:{opensearch.port}") as client:
        await client.request("GET", "_cluster/health")
        assert secret not in client.address
    assert page.note == engine.UNAVAILABLE
    said = capfd.readouterr().err
    assert "127.0.0.1:1" in said
    assert secret not in repr((said, page))
