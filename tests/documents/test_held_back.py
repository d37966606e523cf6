"""Generations that are held back: listed, explained, and never called anything else."""

from __future__ import annotations

from built_site import SOURCE, Crawls, pages
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.publication import publish
from forager.documents.search import SearchRequest, search
from forager.documents.sources import list_held_back
from forager.jobs.queue import Queue
from forager.settings import Settings

MANY = {f"page-{n}": f"text {n}" for n in range(30)}


async def test_a_held_back_generation_is_listed_until_there_is_a_better_one(
    database: Database, queue: Queue, settings: Settings
) -> None:
    crawls = Crawls(database, queue, settings)
    await crawls.crawl(MANY)
    assert await list_held_back(database) == []
    assert await crawls.crawl({"page-1": "all that is left"}) is not None
    [held_back] = await list_held_back(database)
    assert (held_back.source_id, held_back.number) == (SOURCE, 2)
    assert held_back.note is not None
    assert await list_held_back(database, user_id=new_id()) == []
    await crawls.crawl(MANY)
    assert await list_held_back(database) == []


async def test_one_that_was_published_all_the_same_needs_nobody(
    database: Database, queue: Queue, settings: Settings
) -> None:
    crawls = Crawls(database, queue, settings)
    await crawls.crawl(MANY)
    await crawls.crawl({"page-1": "all that is left"})
    await publish(database, SOURCE, 2, force=True)
    assert await list_held_back(database) == []


async def test_a_search_of_other_sources_says_which_source_was_never_published(
    database: Database, queue: Queue, settings: Settings
) -> None:
    await Crawls(database, queue, settings).crawl(MANY)
    crawl = await Crawls(database, queue, settings, source="blocked").start()
    await crawl.write(pages({"a": "the only page"}))
    await crawl.ledger(fetched=1, reasons={"http_403": 9})
    assert await crawl.finish() is not None
    found = await search(database, SearchRequest(query="text"))
    assert found.items
    assert found.note is not None
    assert "blocked is not searched: generation 1 of blocked is held back: 9 of 10" in found.note
    assert "sources publish blocked --force" in found.note
    elsewhere = await search(database, SearchRequest(query="text", source=SOURCE))
    assert "blocked" not in (elsewhere.note or "")
