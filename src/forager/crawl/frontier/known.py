"""The URLs that earlier runs of a crawl have met, loaded again when it resumes.

A crawl with many of them fetches meanwhile: URLs that are not known yet are looked up in the tables
before they are judged, those of all pages that wait in one query.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar
from uuid import UUID

from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.window import START
from forager.crawl.store import visited as store
from forager.db.database import Database
from forager.db.shared_query import SharedQuery
from forager.errors import StatementTimedOut

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
        self._lookups: SharedQuery[Keys, None] = SharedQuery(self._find)
        self._loading: asyncio.Task[None] | None = None
        # pending URLs up to here are in memory
        self._place = START

    @property
    def is_complete(self) -> bool:
        """Whether all known URLs are loaded."""
        return self._loading is None or self._loading.done()

    @asynccontextmanager
    async def loading(self, count: int) -> AsyncIterator[None]:
        """Load them: at once if they are few, otherwise during the block."""
        if not count:
            yield
            return
        self._discovery.reserve(count)
        if count <= FEW:
            await self._load()
            yield
            return
        self._loading = asyncio.create_task(self._load())
        try:
            yield
        finally:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def look_up(self, keys: Iterable[bytes]) -> None:
        """Return when these URLs can be judged: what is known of them is in memory."""
        if self._loading is None:
            return
        if not self._loading.done():
            unknown = tuple(key for key in keys if not self._discovery.knows(key))
            if unknown:
                await self._lookups.find(unknown)
        if self._loading.done():
            self._loading.result()

    async def _find(self, wanted: Sequence[Keys]) -> dict[Keys, None]:
        keys = list({key for each in wanted for key in each})
        while not self.is_complete:
            # too much to read at once: less of it is left when more is loaded
            with suppress(StatementTimedOut):
                settled, pending = await self._database.run(
                    store.select_known,
                    self._job_id,
                    keys,
                    after=self._place,
                    before=self._first_seq,
                )
                for row in settled:
                    self._remember(row)
                self._discovery.remember_keys(pending)
                break
        return {}

    def _remember(self, row: store.Known, *, pending: bool = False) -> None:
        key, url, reason, content = row
        self._discovery.remember(key, url, reason, pending=pending)
        if content is not None:
            self._remember_content(content)

    async def _load(self) -> None:
        """Load pending and settled URLs in chunks, so that no connection is held for long."""
        while True:
            # later ones are of this run
            rows, place = await self._database.run(
                store.select_known_frontier, self._job_id, after=self._place, before=self._first_seq
            )
            if not rows:
                break
            await self._take_in(rows, pending=True)
            self._place = place
        key = b""
        while rows := await self._database.run(store.select_known_visited, self._job_id, after=key):
            await self._take_in(rows)
            key = rows[-1][0]

    async def _take_in(self, rows: Sequence[store.Known], *, pending: bool = False) -> None:
        for part in _parts(rows):
            for row in part:
                self._remember(row, pending=pending)
            await asyncio.sleep(0)


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]
