"""Building a generation: new documents, documents used again, links, resumption."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from built_site import BASE, SOURCE, Crawls, active_site, counts_of, document, page, pages
from forager.archive.segment import ArchiveRef
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.page import SampledPage, SectionNames
from forager.documents.writer import GenerationWriter
from forager.errors import GiveUp, LeaseLost
from forager.extract.keys import url_key
from forager.jobs.context import JobContext
from forager.jobs.job import Lease, NewJob
from support.sql import execute

STORED = ("documents", "sections", "section_search", "link_sets")


async def counted(database: Database) -> list[tuple[int, ...]]:
    """Of each generation: pages, added, changed, removed, unchanged."""
    return await execute(
        database,
        "SELECT pages, added, changed, removed, unchanged FROM generations ORDER BY number",
    )


async def test_the_first_crawl_makes_the_source_and_publishes(
    crawls: Crawls, database: Database
) -> None:
    assert await crawls.crawl({"": "home", "a": "alpha"}) is None
    assert await active_site(database) == {"": "home", "a": "alpha"}
    assert await counted(database) == [(2, 2, 0, 0, 0)]
    [source] = await execute(database, "SELECT id, base_url, text_config FROM sources")
    assert source == (SOURCE, BASE, "english")


async def test_sections_keep_tree_order_and_anchors(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "alpha"})
    [top, below] = await execute(
        database,
        "SELECT id, parent_id, heading, level, anchor, content, position FROM sections_active"
        " ORDER BY position",
    )
    assert top[1:] == (None, "Guide", 1, "guide", "About alpha.", 0)
    assert below[1:] == (top[0], "Details", 2, "details", "First line\nalpha\nlast line", 1)


async def test_search_rows_hold_words_identifiers_and_the_source(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    names = [SectionNames(("a_b",), ("a_b", "c.d")), SectionNames((), ("--no-verify", "it's"))]
    indexed = replace(document("alpha running"), names=names)
    await crawl.write([page("a", "alpha running", document=indexed)])
    await crawl.finish()
    [(number,)] = await execute(database, "SELECT number FROM sources")
    rows = await execute(
        database,
        """
        SELECT position FROM section_search
         WHERE tsv @@ to_tsquery('english', 'run')
           AND tsv @@ array_to_tsvector(ARRAY[%s])::text::tsquery
           AND head_tsv @@ array_to_tsvector(ARRAY[%s])::text::tsquery
           AND CASE position WHEN 0 THEN tsv @@ '''c.d''' AND head_tsv @@ '''a_b'''
                                     AND head_tsv @@ 'titl & guid'
                             ELSE tsv @@ '''--no-verify''' AND NOT head_tsv @@ 'titl' END
         ORDER BY position
        """,
        f"§{number}",
        f"§{number}",
    )
    assert rows == [(0,), (1,)]


async def test_pages_that_are_extracted_again_have_the_hash_of_the_new_text(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    await crawl.write([page("a", "alpha")])
    [(document_id,)] = await execute(database, "SELECT id FROM documents")
    key = url_key(f"{BASE}a")
    sampled = SampledPage(document_id, f"{BASE}a", key, b"", ArchiveRef("segment", 0, 1))
    again = replace(document("less"), extractor_version="1-x", simhash=7)
    async with crawl.context.commit() as connection:
        learned = {"digest": "x", "pages": 1}
        await crawl.writer.store_repeated(connection, learned, [(sampled, again)])
    assert await execute(database, "SELECT extractor_version, simhash FROM documents") == [
        ("1-x", 7)
    ]


async def test_identifiers_are_found_as_typed(crawls: Crawls, database: Database) -> None:
    crawl = await crawls.start()
    await crawl.write([page("a", "call pg_stat_activity.query with --no-verify")])
    for name in ("pg_stat_activity.query", "--no-verify"):
        rows = await execute(
            database, "SELECT 1 FROM section_search WHERE tsv @@ quote_literal(%s)::tsquery", name
        )
        assert rows == [(1,), (1,)]


async def test_an_unchanged_page_uses_its_document_again(
    crawls: Crawls, database: Database
) -> None:
    site: dict[str, str | None] = {"": "home", "a": "alpha", "b": "beta"}
    await crawls.crawl(site)
    before = await counts_of(database, *STORED)
    # the same content once more, an answer of 304, and one page that did change
    assert await crawls.crawl({"": "home", "a": None, "b": "better"}) is None
    after = await counts_of(database, *STORED)
    assert after["documents"] == before["documents"] + 1
    assert after["sections"] == before["sections"] + 2
    assert after["section_search"] == before["section_search"] + 2
    assert after["link_sets"] == before["link_sets"]
    assert await active_site(database) == {"": "home", "a": "alpha", "b": "better"}
    assert (await counted(database))[1] == (3, 0, 1, 0, 2)


async def test_content_that_comes_back_uses_its_old_document(
    crawls: Crawls, database: Database
) -> None:
    for text in ("one", "two", "one"):
        await crawls.crawl({"a": text})
    assert (await counts_of(database, "documents", "sections")) == {"documents": 2, "sections": 4}
    assert await active_site(database) == {"a": "one"}
    assert (await counted(database))[2] == (1, 0, 1, 0, 0)


async def test_a_304_keeps_validators_links_and_archive_reference(
    crawls: Crawls, database: Database
) -> None:
    first = await crawls.start()
    reference = ArchiveRef("job-x.1-000001.warc.zst", 10, 20)
    await first.write([page("", "home", archive=reference, last_modified="yesterday")])
    await first.finish()
    second = await crawls.start()
    key = url_key(BASE)
    known = (await second.writer.previous([key, b"no such key 1234"]))[key]
    assert (known.etag, known.last_modified) == ('"home"', "yesterday")
    assert known.link_set is not None
    assert await second.writer.links_of([known.link_set]) == {known.link_set: b"links of "}
    await second.write([page("", None)])
    await second.finish()
    lines = await execute(
        database,
        "SELECT document_id, etag, last_modified, link_set, segment, segment_offset,"
        " segment_length FROM generation_documents ORDER BY generation_id",
    )
    assert lines[0] == lines[1]


async def test_validators_are_kept_back_when_the_extractor_is_another(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "alpha"})
    crawl = await crawls.start()
    writer = await GenerationWriter.open(crawl.context, base_url=BASE, extractor_version="2")
    key = url_key(BASE + "a")
    known = (await writer.previous([key]))[key]
    assert (known.etag, known.last_modified) == (None, None)
    assert known.link_set is not None
    newer = page("a", "alpha", document=document("alpha", version="2"))
    await crawl.write([newer])
    await crawl.finish()
    # the content is the same, so nothing changed for readers; but there is a new document
    assert (await counted(database))[1] == (1, 0, 0, 0, 1)
    versions = await execute(database, "SELECT extractor_version FROM documents_active")
    assert versions == [("2",)]


async def test_a_resumed_job_continues_its_generation(crawls: Crawls, database: Database) -> None:
    first = await crawls.start()
    await first.write(pages({"": "home"}))
    await crawls.queue.release(first.context.lease, reason="test")
    again = await crawls.claim()
    assert again.writer.generation_id == first.writer.generation_id
    await again.write(pages({"a": "alpha"}))
    with pytest.raises(LeaseLost):
        await first.write(pages({"b": "beta"}))
    assert await again.finish() is None
    assert await active_site(database) == {"": "home", "a": "alpha"}
    assert await counted(database) == [(2, 2, 0, 0, 0)]


async def test_a_batch_that_fails_leaves_nothing(crawls: Crawls, database: Database) -> None:
    crawl = await crawls.start()
    plan = crawl.writer.plan(pages({"": "home"}), {})
    with contextlib.suppress(ZeroDivisionError):
        async with crawl.context.commit() as connection:
            await crawl.writer.write(connection, plan)
            raise ZeroDivisionError
    tables = ("documents", "sections", "section_search", "link_sets", "generation_documents")
    assert set((await counts_of(database, *tables)).values()) == {0}
    assert await counted(database) == [(0, 0, 0, 0, 0)]
    await crawl.write(pages({"": "home"}))
    assert await execute(database, "SELECT text_config FROM sources") == [("english",)]


async def test_the_base_is_pinned_when_the_job_begins(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "alpha"})
    crawl = await crawls.start()
    pinned = crawl.writer.base_id
    await crawls.queue.release(crawl.context.lease, reason="test")
    await execute(database, "UPDATE sources SET published_generation = NULL RETURNING 1")
    assert (await crawls.claim()).writer.base_id == pinned


async def test_the_language_is_settled_by_the_first_pages(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    await crawl.write([page("a", "x", document=document("häuser", language="de-AT"))])
    await crawl.write([page("b", "x", document=document("houses", language="en"))])
    assert await execute(database, "SELECT text_config FROM sources") == [("german",)]


async def test_pages_that_do_not_say_their_language_are_found_as_written(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    await crawl.write([page("a", "x", document=document("running", language=None))])
    assert await execute(database, "SELECT text_config FROM sources") == [("simple",)]


async def test_pages_without_title_anchor_etag_or_links_are_fine(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    bare = page("a", "x", document=document(""), etag=None, outlinks=None)
    await crawl.write([bare])
    assert await crawl.finish() is None
    assert await execute(database, "SELECT link_set FROM generation_documents") == [(None,)]


async def test_a_304_for_a_page_that_was_not_there_is_a_mistake(crawls: Crawls) -> None:
    crawl = await crawls.start()
    with pytest.raises(ValueError, match="not there before"):
        await crawl.write([page("a", None)])


async def test_a_job_needs_a_source(crawls: Crawls) -> None:
    job = (await crawls.queue.enqueue(NewJob(kind="selftest"))).job
    lease = Lease(job.id, job.lease, new_id())
    context = JobContext(job, lease, crawls.database, crawls.settings)
    with pytest.raises(GiveUp):
        await GenerationWriter.open(context, base_url=BASE, extractor_version="1")
