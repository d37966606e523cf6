"""Worker, commands and doctor with a search engine."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress

import psutil
from pydantic import SecretStr

from forager.checks import Level
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index.checks import check_search
from forager.products.indexing import INDEXED_PRODUCTS
from forager.settings import Settings
from search_corpus import Corpus
from services.search_index import LIMIT, Searched, all_sent, pages, reindex_process
from services.servers.opensearch import OpenSearch
from support.sql import execute


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
    assert (found.level, found.message) == (
        Level.WARN,
        "the index of sections and products is missing or not complete",
    )
    assert "reindex" in (found.next_step or "")
    for kind in (INDEXED_SECTIONS, INDEXED_PRODUCTS):
        await empty.reindex(kind)
    await corpus.publish("a.example", pages(0, 3))
    found = await check_search(empty.database, settings)
    assert found.message == "the indexes are complete; 1 changes wait to be indexed"
    assert found.level is Level.OK
    await execute(empty.database, "UPDATE outbox SET created_at = now() - interval '1 day'")
    found = await check_search(empty.database, settings)
    assert found.level is Level.WARN
    away = settings.model_copy(update={"opensearch_url": SecretStr("http://u:p@127.0.0.1:1")})
    found = await check_search(empty.database, away)
    assert found.level is Level.FAIL
    assert "u:p" not in found.message
