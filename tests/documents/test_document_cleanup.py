"""Clean-up: old and abandoned generations go with everything only they had, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from built_site import SOURCE, Crawls, active_site, counts_of, page, pages
from forager.db.database import Database
from forager.documents.cleanup import CleanupResult, DocumentCleanup
from forager.documents.publication import publish, roll_back
from forager.documents.sources import delete_source, get_source
from forager.errors import NotAllowed, NotFound
from forager.jobs.lifecycle import Status
from support.sql import execute
from support.waiting import lock_waited_for

TABLES = (
    "generations", "generation_documents", "documents", "sections", "section_search", "link_sets"
)  # fmt: skip


@pytest.fixture
def cleanup(database: Database) -> DocumentCleanup:
    """One that waits for no reader, and deletes in small chunks."""
    return DocumentCleanup(database, reader_grace=0, chunk=2)


async def numbers(database: Database) -> list[int]:
    rows = await execute(database, "SELECT number FROM generations ORDER BY number")
    return [row[0] for row in rows]


async def assert_nothing_dangles(database: Database) -> None:
    [dangling] = await execute(
        database,
        """
        SELECT (SELECT count(*) FROM generation_documents m
                 WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = m.document_id)),
               (SELECT count(*) FROM generation_documents m
                 WHERE NOT EXISTS (SELECT FROM generations g WHERE g.id = m.generation_id)),
               (SELECT count(*) FROM documents d
                 WHERE NOT EXISTS (SELECT FROM generation_documents m WHERE m.document_id = d.id)),
               (SELECT count(*) FROM sections s
                 WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = s.document_id)),
               (SELECT count(*) FROM sections s FULL JOIN section_search x
                    ON (s.document_id, s.position) = (x.document_id, x.position)
                 WHERE s.id IS NULL OR x.document_id IS NULL),
               (SELECT count(*) FROM generation_documents m
                  JOIN generations g ON g.id = m.generation_id
                 WHERE m.link_set IS NOT NULL AND NOT EXISTS (
                    SELECT FROM link_sets l
                     WHERE (l.source_id, l.hash) = (g.source_id, m.link_set))),
               (SELECT count(*) FROM link_sets l WHERE NOT EXISTS (
                    SELECT FROM generation_documents m WHERE m.link_set = l.hash))
        """,
    )
    assert dangling == (0,) * 7


# --- retention -----------------------------------------------------------------------------------


async def test_the_last_generations_are_kept(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    for turn in range(8):
        await crawls.crawl({"same": "same", "a": f"text {turn}", f"only{turn}": f"only {turn}"})
    removed = await cleanup.run_once()
    assert removed == CleanupResult(generations=3, documents=6)
    assert await numbers(database) == [4, 5, 6, 7, 8]
    assert await active_site(database) == {"same": "same", "a": "text 7", "only7": "only 7"}
    await assert_nothing_dangles(database)
    assert await cleanup.run_once() == CleanupResult()


async def test_readers_have_time_to_finish(crawls: Crawls, database: Database) -> None:
    for turn in range(7):
        await crawls.crawl({"a": f"text {turn}"})
    assert await DocumentCleanup(database).run_once() == CleanupResult()
    await execute(
        database,
        "UPDATE generations SET retired_at = retired_at - interval '2 hours' WHERE number = 1"
        " RETURNING 1",
    )
    assert (await DocumentCleanup(database).run_once()).generations == 1
    assert await numbers(database) == [2, 3, 4, 5, 6, 7]


async def test_what_is_published_stays_however_old_it_is(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    for turn in range(4):
        await crawls.crawl({"a": f"text {turn}"})
    await publish(database, SOURCE, 1)
    await execute(database, "UPDATE sources SET keep_generations = 1 RETURNING 1")
    await cleanup.run_once()
    assert await numbers(database) == [1, 4]
    assert await active_site(database) == {"a": "text 0"}


async def test_what_a_running_job_builds_on_stays(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    for turn in range(3):
        await crawls.crawl({"a": f"text {turn}"})
    running = await crawls.start()
    await execute(database, "UPDATE sources SET keep_generations = 1 RETURNING 1")
    await roll_back(database, SOURCE, 1)
    await cleanup.run_once()
    # generation 2 is not needed, but while the job runs nothing of the source is deleted
    assert await numbers(database) == [1, 2, 3, 4]
    await running.write([page("a", None), page("b", "b")])
    await running.finish()
    await cleanup.run_once()
    assert await numbers(database) == [1, 4]
    await assert_nothing_dangles(database)


async def test_what_is_being_deleted_is_not_published(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    async with database.transaction() as connection:
        await connection.execute("UPDATE generations SET state = 'abandoned' WHERE number = 1")
        publishing = asyncio.create_task(publish(database, SOURCE, 1))
        await lock_waited_for(database)
    with pytest.raises(NotAllowed, match="being deleted"):
        await publishing
    assert await active_site(database) == {"a": "two"}


async def test_a_job_that_starts_waits_for_the_chunk_being_deleted(
    crawls: Crawls, database: Database
) -> None:
    """A deletion locks the source, which a writer must lock before it begins."""
    await crawls.crawl({"a": "one"})
    async with database.transaction() as connection:
        await connection.execute("SELECT FROM sources WHERE id = %s FOR UPDATE", (SOURCE,))
        starting = asyncio.create_task(crawls.start())
        await lock_waited_for(database)
        assert not starting.done()
    await (await starting).finish()


# --- generations that were never completed -------------------------------------------------------


async def test_a_cancelled_job_leaves_nothing(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    await crawls.crawl({"a": "one", "b": "b"})
    before = await counts_of(database, *TABLES)
    crawl = await crawls.start()
    await crawl.write(pages({"a": "two", "b": None, "c": "new"}))
    await crawls.queue.cancel(crawl.context.job.id)
    assert (await cleanup.run_once()).generations == 1
    assert await counts_of(database, *TABLES) == before
    assert await active_site(database) == {"a": "one", "b": "b"}
    await assert_nothing_dangles(database)


async def test_a_paused_or_waiting_job_keeps_its_generation(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    crawl = await crawls.start()
    await crawl.write(pages({"a": "one"}))
    await crawls.queue.release(crawl.context.lease, reason="test")
    assert await cleanup.run_once() == CleanupResult()
    await crawls.queue.pause(crawl.context.job.id)
    assert await cleanup.run_once() == CleanupResult()
    await crawls.queue.resume(crawl.context.job.id)
    again = await crawls.claim()
    assert await again.finish() is None
    assert await active_site(database) == {"a": "one"}


async def test_a_failed_job_can_be_retried_for_a_while(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    crawl = await crawls.start()
    job_id = crawl.context.job.id
    await crawl.write(pages({"a": "one"}))
    await crawl.ledger(fetched=1, reasons={})
    await crawls.queue.fail(crawl.context.lease, "broken", permanent=True)
    assert await cleanup.run_once() == CleanupResult()
    await execute(
        database,
        "UPDATE crawl_jobs SET completed_at = completed_at - interval '8 days' RETURNING 1",
    )
    assert (await cleanup.run_once()).generations == 1
    # its state was deleted with its pages, so a retry starts from scratch
    assert await counts_of(database, "crawl_states", "documents") == {
        "crawl_states": 0, "documents": 0
    }  # fmt: skip
    await crawls.queue.retry(job_id)
    again = await crawls.claim()
    assert again.writer.generation_id != crawl.writer.generation_id
    assert again.context.job.status is Status.PROCESSING


async def test_a_failed_job_that_was_overtaken_is_abandoned(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    crawl = await crawls.start()
    await crawl.write(pages({"a": "one"}))
    await crawls.queue.fail(crawl.context.lease, "broken", permanent=True)
    await crawls.crawl({"a": "two"})
    assert (await cleanup.run_once()).generations == 1
    assert await active_site(database) == {"a": "two"}


async def test_a_job_that_was_pruned(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    await crawls.crawl({"a": "one"})
    crawl = await crawls.start()
    await crawl.write(pages({"a": "two"}))
    await execute(database, "DELETE FROM crawl_jobs RETURNING 1")
    assert (await cleanup.run_once()).generations == 1
    assert await active_site(database) == {"a": "one"}
    assert await numbers(database) == [1]


# --- deleting a source ---------------------------------------------------------------------------


async def test_a_deleted_source_is_gone_at_once_and_then_for_good(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    for turn in range(3):
        await crawls.crawl({"a": f"text {turn}", "b": "b"})
    crawls.source = "another"
    await crawls.crawl({"a": "text 0"})
    await delete_source(database, SOURCE)
    assert await active_site(database) == {}
    with pytest.raises(NotFound):
        await get_source(database, SOURCE)
    assert await cleanup.delete_abandoned(SOURCE) == CleanupResult(
        generations=3, documents=4, sources=1
    )
    assert await counts_of(database, *TABLES, "sources") == {
        "generations": 1, "generation_documents": 1, "documents": 1, "sections": 2,
        "section_search": 2, "link_sets": 1, "sources": 1,
    }  # fmt: skip
    assert await active_site(database, "another") == {"a": "text 0"}


async def test_a_source_that_is_being_crawled_is_not_deleted(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    with pytest.raises(NotAllowed, match="being crawled"):
        await delete_source(database, SOURCE)
    await crawl.finish()
    await delete_source(database, SOURCE)


async def test_a_source_that_is_wanted_again_while_it_is_being_deleted(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    await crawls.crawl({"a": "one"})
    await delete_source(database, SOURCE)
    crawl = await crawls.start()
    assert crawl.writer.base_id is None
    await crawl.write(pages({"a": "one"}))
    assert await crawl.finish() is None
    assert (await cleanup.run_once()).generations == 1
    assert await active_site(database) == {"a": "one"}
    await assert_nothing_dangles(database)


async def test_pending_entries_of_the_search_index_are_flushed(
    crawls: Crawls, database: Database, cleanup: DocumentCleanup
) -> None:
    await crawls.crawl({"a": "one"})
    await cleanup.flush()
    pending = await execute(database, "SELECT gin_clean_pending_list('section_search_idx')")
    assert pending == [(0,)]


async def test_clean_up_beside_crawls_and_readers(crawls: Crawls, database: Database) -> None:
    """Clean-up without any grace period, concurrently with everything else."""
    await crawls.crawl({f"p{n}": "turn 0" for n in range(9)})
    await execute(database, "UPDATE sources SET keep_generations = 1 RETURNING 1")
    done = asyncio.Event()

    async def clean_up() -> int:
        removed = 0
        while not done.is_set():
            removed += (
                await DocumentCleanup(database, reader_grace=0, chunk=1).run_once()
            ).documents
        return removed

    async def read() -> None:
        while not done.is_set():
            site = await active_site(database)
            assert len(site) == 9
            assert len(set(site.values())) == 1

    working = asyncio.gather(clean_up(), clean_up(), read(), read())
    for turn in range(1, 25):
        text = f"turn {turn % 4}"
        assert await crawls.crawl({f"p{n}": text for n in range(9)}) is None
        assert not working.done()
    done.set()
    assert sum((await working)[:2]) > 0
    await DocumentCleanup(database, reader_grace=0).run_once()
    assert await numbers(database) == [25]
    await assert_nothing_dangles(database)
