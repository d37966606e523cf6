"""A crawl that is killed inside a commit: readers notice nothing, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from built_site import Crawls, active_site, counts_of, page, pages
from forager.db.database import Database
from forager.documents.cleanup import DocumentCleanup
from forager.jobs.job import Lease
from support.sql import execute

CHILD = Path(__file__).with_name("generation_child.py")
TABLES = ("generation_documents", "documents", "sections", "section_search", "link_sets")


@pytest.fixture
async def killed(crawls: Crawls, database_url: str) -> Lease:
    """What is left of a process that was killed: its lease."""
    await crawls.crawl({"a": "one", "b": "two"})
    path = os.pathsep.join([str(CHILD.parent.parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, CHILD, database_url],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline().split()
        child.kill()
    assert said, "the child ended before it had begun"
    return Lease(UUID(said[0]), int(said[1]), UUID(said[2]))


async def test_readers_keep_what_they_had(killed: Lease, database: Database) -> None:
    assert await active_site(database) == {"a": "one", "b": "two"}


async def test_resumed_it_publishes_what_an_undisturbed_crawl_would(
    crawls: Crawls, killed: Lease, database: Database
) -> None:
    await crawls.queue.release(killed, reason="its process was killed")
    again = await crawls.claim()
    lines = await execute(
        database,
        "SELECT count(*) FROM generation_documents WHERE generation_id = %s",
        again.writer.generation_id,
    )
    assert lines == [(2,)]
    await again.write(pages({"c": "whole"}))
    assert await again.finish() is None
    assert await active_site(database) == {"a": "changed", "b": "two", "c": "whole"}
    [counts] = await execute(
        database,
        "SELECT pages, added, changed, unchanged, removed FROM generations WHERE number = 2",
    )
    assert counts == (3, 1, 1, 1, 0)


async def test_abandoned_it_leaves_nothing(
    crawls: Crawls, killed: Lease, database: Database
) -> None:
    await crawls.queue.cancel(killed.job_id)
    assert (await DocumentCleanup(database).run_once()).generations == 1
    left = await counts_of(database, *TABLES)
    assert left == {
        "generation_documents": 2, "documents": 2, "sections": 4, "section_search": 4,
        "link_sets": 2,
    }  # fmt: skip
    crawl = await crawls.start()
    await crawl.write([page("a", None), page("b", None)])
    assert await crawl.finish() is None
