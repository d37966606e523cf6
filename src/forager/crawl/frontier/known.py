"""The URLs that earlier runs of a crawl have met, loaded again when it resumes.

A crawl with many of them fetches meanwhile: its pages wait until the keys of the frontier are here,
and links that are still unknown are looked up among the settled URLs, which have an index.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.entry import PageLinks
from forager.crawl.frontier.window import START
from forager.crawl.settlement import Settlement
from forager.crawl.store import visited as store
from forager.db.database import Database
from forager.db.shared_query import SharedQuery
from forager.extract.keys import KEY_LENGTH

Row = TypeVar("Row")
Keys = tuple[bytes, ...]

# fewer URLs are loaded before the first request: that takes less than two seconds
FEW = 200_000
# URLs between two turns of the event loop, which other crawls share
AT_ONCE = 2_000


class KnownUrls:
    """Puts the URLs and contents of earlier runs into the memory of a crawl."""

    def __init__(
        self,
        database: Database,
        job_id: UUID,
        discovery: Discovery,
        remember_content: Callable[[bytes], None],
    ) -> None:
        self._database = database
        self._job_id = job_id
        self._discovery = discovery
        self._remember_content = remember_content
        self._first_seq = discovery.next_seq
        self._settled: SharedQuery[Keys, None] = SharedQuery(self._select_settled)
        self._loading: asyncio.Task[None] | None = None
        self._has_frontier = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        return self._loading is None or self._loading.done()

    @asynccontextmanager
    async def loading(self, count: int, *, first: bool = False) -> AsyncIterator[None]:
        """Load them: at once if they are few or needed `first`, otherwise during the block."""
        if not count:
            yield
            return
        self._discovery.reserve(count)
        if first or count <= FEW:
            await self._load_urls()
            yield
            return
        self._loading = asyncio.create_task(self._load())
        try:
            yield
        finally:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def look_up(self, visit: Settlement) -> None:
        """Return when the links of a page can be judged: what is known of them is in memory."""
        if self._loading is None:
            return
        if not self._loading.done():
            arrived = asyncio.ensure_future(self._has_frontier.wait())
            await asyncio.wait({arrived, self._loading}, return_when=asyncio.FIRST_COMPLETED)
            arrived.cancel()
        if self._loading.done():
            self._loading.result()
            return
        links = visit.links.keys if visit.links is not None else b""
        keys = [links[start : start + KEY_LENGTH] for start in range(0, len(links), KEY_LENGTH)]
        keys += [entry.key for entry in visit.found]
        unknown = tuple(key for key in keys if not self._discovery.knows(key))
        if unknown:
            await self._settled.find(unknown)

    async def _select_settled(self, wanted: Sequence[Keys]) -> dict[Keys, None]:
        keys = list({key for each in wanted for key in each})
        for row in await self._database.run(store.select_settled, self._job_id, keys):
            self._remember(row)
        return {}

    def _remember(self, row: store.Known, *, pending: bool = False) -> None:
        key, url, reason, content = row
        self._discovery.remember(key, url, reason, pending=pending)
        if content is not None:
            self._remember_content(content)

    async def _load(self) -> None:
        place = START
        while found := await self._run(store.select_pending_keys, after=place):
            keys, *at = found
            place = (at[0], at[1])
            for part in _parts(PageLinks(keys=keys).fingerprints()):
                self._discovery.remember_keys(part)
                await asyncio.sleep(0)
        self._has_frontier.set()
        await self._load_urls()

    async def _load_urls(self) -> None:
        async for chunk, pending in self._chunks():
            for part in _parts(chunk):
                for row in part:
                    self._remember(row, pending=pending)
                await asyncio.sleep(0)

    async def _chunks(self) -> AsyncIterator[tuple[list[store.Known], bool]]:
        """Pending and settled URLs in chunks, so that no connection is held for long."""
        place, key = START, b""
        while True:
            # later ones are of this run
            rows, place = await self._run(
                store.select_known_frontier, after=place, before=self._first_seq
            )
            if not rows:
                break
            yield rows, True
        while rows := await self._run(store.select_known_visited, after=key):
            yield rows, False
            key = rows[-1][0]

    async def _run(self, select: Callable[..., Awaitable[Row]], **place: Any) -> Row:
        return await self._database.run(select, self._job_id, **place)


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]
