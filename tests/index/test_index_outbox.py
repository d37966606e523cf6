"""What is written for a search engine, where there is one and where there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from forager.db.database import Database
from forager.documents.cleanup import DocumentCleanup
from forager.documents.search import SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.documents.search.service import BY_WORDS
from forager.index import engine as choice
from forager.index import store
from forager.index.client import EngineClient
from forager.index.engine import UNAVAILABLE, SearchEngine, forget_unfed_indexes, open_engine
from forager.index.feeder import Feeder
from forager.index.kind import LAYOUT, EngineRefused, IndexKind
from forager.outbox import store as outbox
from forager.outbox.claim import claimed
from forager.outbox.message import Failure, Lane
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.replacements import withdraw_products
from forager.products.search import search_products
from forager.settings import Search, Settings
from products.product_shop import Shop, lamp
from search_corpus import Corpus
from support.sql import execute

PAGES = {f"/{n}": [(f"Page {n}", "needle")] for n in range(3)}


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    """One that is not there."""
    async with EngineClient("http://127.0.0.1:1") as client:
        yield SearchEngine(client)


async def unsent(database: Database) -> list[tuple[Any, ...]]:
    return await execute(database, "SELECT topic, ref_id, payload[1] FROM outbox ORDER BY id")


async def listen(database: Database, *kinds: str) -> None:
    """Say that there are complete store."""
    async with database.connection() as connection:
        for kind in kinds or ("sections", "products"):
            assert await store.begin_building(
                connection, kind, name=f"x-{kind}", layout=LAYOUT, instead_of=None
            )
            assert await store.set_building_uuid(connection, kind, f"x-{kind}", "u")
            assert await store.complete(connection, kind, f"x-{kind}")


# --- enqueueing ----------------------------------------------------------------------------------


async def test_nothing_is_written_where_nobody_listens(
    database: Database, settings: Settings
) -> None:
    await Corpus(database).publish("a.example", PAGES)
    await (await Shop(database, settings).open()).visit("a", lamp())
    assert await unsent(database) == []
    assert settings.search is Search.POSTGRES
    async with open_engine(settings) as engine:
        assert engine is None


async def test_documents_are_told_when_they_come_and_when_they_go(database: Database) -> None:
    await listen(database, "sections")
    corpus = Corpus(database)
    await corpus.publish("a.example", PAGES)
    rows = await unsent(database)
    assert [(kind, sections) for kind, _, sections in rows] == [("sections", None)] * 3
    await corpus.publish("a.example", {**PAGES, "/new": [("New", "x"), ("More", "y")]})
    assert len(await unsent(database)) == 4
    await corpus.delete("a.example")
    async with database.connection() as connection:
        await connection.execute("DELETE FROM outbox")
        await connection.execute("UPDATE generations SET state = 'abandoned'")
    await DocumentCleanup(database).run_once()
    assert sorted(row[2] for row in await unsent(database)) == [1, 1, 1, 2]


async def test_products_are_told_when_something_changes(
    database: Database, settings: Settings
) -> None:
    await listen(database, "products")
    shop = await Shop(database, settings).open()
    [first, second] = await shop.stock({"a": lamp("10"), "b": lamp("20")})
    assert len(await unsent(database)) == 2
    await shop.stock({"a": lamp("10"), "b": lamp("20")})
    assert len(await unsent(database)) == 2
    await shop.visit("a", lamp("11"))
    assert (await unsent(database))[-1] == ("products", first.product_id, None)
    async with database.transaction() as connection:
        await withdraw_products(connection, [await shop.task("b")])
    assert (await unsent(database))[3:] == [("products", second.product_id, None)]
    other = await Shop(database, settings, host="other.example").open()
    page = await shop.page("a", lamp("11"), domain_id=other.domain_id)
    await shop.write(page)
    assert len(await unsent(database)) == 5


async def test_later_changes_have_higher_numbers(database: Database, settings: Settings) -> None:
    """Two writers of one product, and the second waits for the first."""
    await listen(database, "products")
    shop = await Shop(database, settings).open()
    await shop.visit("a", lamp("10"))
    await shop.visit("a", lamp("11"))
    numbers = await execute(database, "SELECT id FROM outbox ORDER BY id")
    assert len(numbers) == 2
    assert numbers[0] < numbers[1]


async def test_trouble_with_one_kind_keeps_no_other_waiting(database: Database) -> None:
    class Half(Feeder):
        async def feed(self, kind: IndexKind) -> int:
            if kind is INDEXED_SECTIONS:
                raise EngineRefused("none of these")
            return 7

    async with EngineClient("http://127.0.0.1:1") as client:
        feeder = Half(database, client, "x", (INDEXED_SECTIONS, INDEXED_PRODUCTS))
        assert await feeder.run_once() == 7


async def test_a_claim_is_a_lease_and_is_given_back(database: Database) -> None:
    await listen(database, "sections")
    await Corpus(database).publish("a.example", PAGES)
    lane = Lane("sections")
    async with database.connection() as connection:
        assert await outbox.has_due(connection, "sections")
        first = await outbox.claim(connection, [lane], limit=2, lease=60)
        rest = await outbox.claim(connection, [lane], limit=9, lease=60)
        assert (len(first), len(rest)) == (2, 1)
        assert not await outbox.has_due(connection, "sections")
        async with claimed(database, first):
            pass
        again = await outbox.claim(connection, [lane], limit=9, lease=60)
        assert {message.id for message in again} == {message.id for message in first}
        async with claimed(database, [*again, *rest]) as claim:
            taken = [message.id for message in again]
            await claim.settle(taken, [Failure(rest[0].id, "no", 3600)])
        assert not await outbox.has_due(connection, "sections")
        backlog = await outbox.select_backlog(connection, ["sections"])
        assert (backlog.waiting, backlog.refused) == (0, 1)


async def test_what_nobody_feeds_is_forgotten(database: Database) -> None:
    await listen(database)
    await Corpus(database).publish("a.example", PAGES)
    assert await forget_unfed_indexes(database) == 0
    assert len(await unsent(database)) == 3
    assert await forget_unfed_indexes(database, unfed_for=0) == 3
    assert await execute(database, "SELECT FROM search_indexes") == []


async def test_of_two_who_begin_only_one_is_right(database: Database) -> None:
    async with database.connection() as connection:
        for name, instead_of, begins in (
            ("one", None, True),
            ("two", None, False),
            ("three", "one", True),
        ):
            assert begins is await store.begin_building(
                connection, "sections", name=name, layout=1, instead_of=instead_of
            )
            assert begins is await store.set_building_uuid(connection, "sections", name, name)
        assert not await store.advance(connection, "sections", "one", 7)
        assert await store.advance(connection, "sections", "three", 7)
        assert await store.advance(connection, "sections", "three", 5)
        state = await store.select_index(connection, "sections")
        assert state is not None
        assert state.filled_to == 7
        assert not await store.complete(connection, "sections", "two")
        await store.forget_lost(connection, "sections", "three")
        assert await store.select_index(connection, "sections") is None


# --- who answers -------------------------------------------------------------------------------


async def test_postgresql_answers_until_the_index_is_complete(
    database: Database, settings: Settings, engine: SearchEngine
) -> None:
    await Corpus(database).publish("a.example", PAGES)
    page = await search(database, SearchRequest(query="needle"), engine)
    assert (len(page.items), page.note) == (3, choice.NOT_COMPLETE)
    await (await Shop(database, settings).open()).visit("a", lamp())
    found = await search_products(database, "lamp", engine=engine)
    assert (len(found.items), found.note) == (1, choice.NOT_COMPLETE)
    assert engine.note is None  # no request was sent


async def test_postgresql_answers_while_the_engine_does_not(
    database: Database, settings: Settings, engine: SearchEngine
) -> None:
    await listen(database)
    await Corpus(database).publish("a.example", PAGES)
    shop = await Shop(database, settings).open()
    await shop.visit("a", lamp())
    first = await search(database, SearchRequest(query="needle", limit=2), engine)
    assert (len(first.items), first.note) == (2, UNAVAILABLE)
    again = SearchRequest(query="needle", limit=2, cursor=first.next_cursor)
    rest = await search(database, again, engine)
    assert (len(rest.items), rest.note) == (1, UNAVAILABLE)
    found = await search_products(database, "lamp", engine=engine)
    assert (len(found.items), found.note) == (1, UNAVAILABLE)
    odd = await search(database, SearchRequest(query="needle_in"), engine)
    assert odd.note == f"{BY_WORDS} {UNAVAILABLE}"
    nothing = await search(database, SearchRequest(query='-"needle"'), engine)
    assert nothing.note is not None
    assert nothing.note.startswith("The query has only words to exclude")
    assert nothing.note.endswith(UNAVAILABLE)


# --- settings ------------------------------------------------------------------------------------


def test_an_engine_needs_a_url() -> None:
    with pytest.raises(ValidationError, match="opensearch_url is not set"):
        Settings(search=Search.OPENSEARCH)
    with pytest.raises(ValidationError) as raised:
        Settings(opensearch_url=SecretStr("ftp://me:secret@x"))
    assert "secret" not in str(raised.value)


def test_processes_that_are_started_get_the_url_whole(settings: Settings) -> None:
    url = "https://me:hunter2@engine.example:9200"
    settings = settings.model_copy(
        update={"search": Search.OPENSEARCH, "opensearch_url": SecretStr(url)}
    )
    assert "hunter2" not in repr(settings)
    assert Settings(**settings.for_child_process()).opensearch_url == SecretStr(url)


def test_nothing_that_talks_to_an_engine_is_imported_without_one() -> None:
    code = """
import sys
import forager.background, forager.documents.search, forager.products.search
import forager.cli.crawls.search
import forager.documents.writer, forager.products.writer
print(sorted(name for name in sys.modules if name.startswith("forager.index")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("client", "feeder", "reindex", "bulk", "writing"):
        assert f"forager.index.{name}" not in done.stdout
