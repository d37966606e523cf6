"""A search engine with separate indexes for one test."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pydantic import SecretStr

from forager.db.database import Database
from forager.documents.search import SearchPage, SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index.client import EngineClient
from forager.index.engine import SearchEngine
from forager.index.feeder import Feeder
from forager.index.kind import IndexKind
from forager.index.reindex import Reindexed, Reindexer
from forager.products.indexing import INDEXED_PRODUCTS
from forager.settings import Search, Settings
from search_corpus import Page
from services.servers.opensearch import OpenSearch
from support.waiting import eventually

KINDS = (INDEXED_SECTIONS, INDEXED_PRODUCTS)
# less than PostgreSQL lets a transaction wait, and enough for a machine that is very busy
WAIT_LIMIT = 9.0
LIMIT = 120.0
# a reindex that takes its time, so that it can be killed
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


@dataclass(frozen=True, slots=True)
class Searched:
    """The indexes of one database."""

    database: Database
    client: EngineClient
    prefix: str
    url: str

    @property
    def feeder(self) -> Feeder:
        return Feeder(self.database, self.client, self.prefix, KINDS)

    @property
    def engine(self) -> SearchEngine:
        """One that has met no trouble yet."""
        return SearchEngine(self.client)

    async def feed(self) -> None:
        feeder = self.feeder
        while await feeder.run_once():
            pass

    async def feed_all(self) -> None:
        """Return when the engine shows all changes, also those that another feeder has claimed."""

        async def all_shown() -> bool:
            await self.feed()
            return await self.unsent() == 0

        await eventually(all_shown, LIMIT)

    async def reindex(self, kind: IndexKind) -> Reindexed:
        return await Reindexer(self.database, self.client, self.prefix, grace=0).run(kind)

    async def entries(self, kind: str = "sections") -> int:
        """How many there are in the index that is in use."""
        answer = await self.client.request("GET", f"{self.prefix}-{kind}/_count")
        return int(answer["count"])

    async def indexes(self) -> list[str]:
        answer = await self.client.request("GET", f"{self.prefix}-*/_settings")
        return sorted(answer)

    async def unsent(self) -> int:
        return int((await self.row("SELECT count(*) FROM outbox"))[0])

    async def row(self, statement: Any, *values: object) -> tuple[Any, ...]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement, values)
            row = await cursor.fetchone()
        assert row is not None
        return row

    def settings(self, settings: Settings) -> Settings:
        """The same settings with this engine switched on."""
        update = {
            "search": Search.OPENSEARCH,
            "opensearch_url": SecretStr(self.url),
            "opensearch_prefix": self.prefix,
        }
        return settings.model_copy(update=update)


@asynccontextmanager
async def searched(
    opensearch: OpenSearch, database: Database, *complete: IndexKind
) -> AsyncIterator[Searched]:
    """Indexes of these kinds that are complete: they receive every change."""
    prefix = f"t{uuid4().hex[:16]}"
    async with EngineClient(opensearch.url) as own:
        index = Searched(database, own, prefix, opensearch.url)
        for kind in complete:
            await index.reindex(kind)
        yield index
        await own.request("DELETE", f"{prefix}-*")
        await own.request("DELETE", f"_index_template/{prefix}-*")


async def look(index: Searched, words: str, **more: Any) -> SearchPage:
    return await search(index.database, SearchRequest(query=words, **more), index.engine)


def sections_in(page: SearchPage) -> int:
    """How many sections were found, over all pages."""
    return sum(1 + hit.more_sections for hit in page.items)


def pages(first: int, last: int, sections: int = 4) -> dict[str, Page]:
    return {
        f"/{number}": Page(
            [(f"part {part} of {number}", f"needle {number} {part}") for part in range(sections)]
        )
        for number in range(first, last)
    }


async def all_sent(index: Searched) -> None:
    async def nothing_waits() -> bool:
        return await index.unsent() == 0

    await eventually(nothing_waits, LIMIT)


async def reindex_process(
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
