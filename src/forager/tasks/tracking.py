"""Tracking: turns URLs of users, files and crawls into tasks, thousands at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from forager.db.database import Connection, Database
from forager.db.rows import select_now
from forager.extract.hosts import host_of
from forager.extract.keys import url_hash
from forager.extract.urls import NormalizedUrl, Refusal, normalize
from forager.fetch.domains.service import cover_hosts
from forager.hints import Hint
from forager.settings import Settings
from forager.tasks.store import tracking as store
from forager.tasks.store.tracking import NewTask
from forager.tasks.task import DEFAULT_PRIORITY
from forager.tasks.tracking_request import ANY_TERMS, BadLine, BadRow, RequestedTerms, TrackRequest

CHUNK = 5_000
# seconds to wait for a chunk that is being read
CLOSING = 0.5
SHOWN = 20
SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class FoundProduct:
    """A product page that a crawl found; `allow_private` as set for that crawl."""

    url: str
    allow_private: bool = False
    terms: RequestedTerms = ANY_TERMS


@dataclass(slots=True)
class Tracked:
    """The result of a tracking request, with the first bad lines."""

    added: int = 0
    known: int = 0
    updated: int = 0
    bad: int = 0
    first_bad: list[BadLine] = field(default_factory=list)

    @property
    def kept(self) -> int:
        """URLs that are tracked now, new or known."""
        return self.added + self.known


@dataclass(frozen=True, slots=True)
class _Named:
    request: TrackRequest
    url: NormalizedUrl
    host: str


# requests that are tracked together, and rejected ones
_Chunk = list[_Named | BadLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """One import: any number of requests, in chunks that are committed one by one.

    An interrupted import keeps the committed chunks, and can be repeated.
    """

    database: Database
    settings: Settings
    terms: RequestedTerms
    allow_private: bool
    found_by: str
    on_bad: Callable[[BadLine], None] | None = None
    tracked: Tracked = field(default_factory=Tracked)

    async def track(self, requests: Iterable[TrackRequest | BadLine]) -> Tracked:
        """Add the URLs, in chunks; the terms also apply to those that are known."""
        # the same time for all, so that popularity decides their order
        due = await self.database.run(select_now)
        chunks = _chunks(requests)
        following = _read_ahead(chunks)
        try:
            while chunk := await asyncio.shield(following):
                # the next chunk is read while the database works on this one
                following = _read_ahead(chunks)
                for bad in chunk:
                    if isinstance(bad, BadLine):
                        self._refuse(bad)
                named = [each for each in chunk if isinstance(each, _Named)]
                async with self.database.transaction() as connection:
                    await self._track_chunk(connection, named, due)
        finally:
            # a thread cannot be canceled, and the caller will close the file;
            # input from a terminal is not waited for
            await asyncio.wait([following], timeout=CLOSING)
            if not following.cancel():
                following.exception()  # the error that ended this is reported instead
        return self.tracked

    async def _track_chunk(
        self, connection: Connection, named: Sequence[_Named], due: datetime
    ) -> None:
        covers, refused = await cover_hosts(
            connection, {one.host for one in named}, allow_private=self.allow_private
        )
        tasks: dict[bytes, NewTask] = {}
        said: dict[NormalizedUrl, RequestedTerms] = {}
        for one in named:
            if one.host in refused:
                self._refuse(_bad(one.request, refused[one.host]))
                continue
            self.tracked.known += one.url in said
            # of a URL that is listed twice, the values of the later line apply
            said[one.url] = one.request.terms.or_else(said.get(one.url, ANY_TERMS))
            terms = said[one.url].or_else(self.terms)
            key = url_hash(one.url)
            tasks[key] = NewTask(covers[one.host].id, one.url, key, terms)
        added = await store.insert_tasks(
            connection,
            list(tasks.values()),
            due=due,
            default_priority=DEFAULT_PRIORITY,
            max_retries=self.settings.task_retries,
            found_by=self.found_by,
        )
        self.tracked.added += added
        self.tracked.known += len(tasks) - added
        if added < len(tasks):
            self.tracked.updated += await store.update_terms(connection, list(tasks.values()))

    def _refuse(self, bad: BadLine) -> None:
        self.tracked.bad += 1
        if len(self.tracked.first_bad) < SHOWN:
            self.tracked.first_bad.append(BadLine(bad.line, bad.reason, bad.text[:SHOWN_LENGTH]))
        if self.on_bad is not None:
            self.on_bad(bad)


async def track_found(
    connection: Connection, urls: Sequence[FoundProduct], found_by: str, *, max_retries: int = 3
) -> int:
    """Turn product pages into tasks, inside the transaction of the caller; returns the new ones.

    URLs that cannot be tracked are left out; known tasks stay as they are.
    """
    found = [(page, url) for page in urls if not isinstance(url := normalize(page.url), Refusal)]
    tasks: dict[bytes, NewTask] = {}
    for allowed in (False, True):
        part = [(page, url) for page, url in found if page.allow_private is allowed]
        hosts = {host_of(url) for _, url in part}
        covers, _ = await cover_hosts(connection, hosts, allow_private=allowed)
        for page, url in part:
            if (cover := covers.get(host_of(url))) is not None:
                key = url_hash(url)
                tasks[key] = NewTask(cover.id, url, key, page.terms)
    if not tasks:
        return 0
    return await store.insert_tasks(
        connection,
        list(tasks.values()),
        due=None,
        default_priority=DEFAULT_PRIORITY,
        max_retries=max_retries,
        found_by=found_by,
    )


def _bad(request: TrackRequest, reason: str | Hint) -> BadLine:
    if request.cells is None:
        return BadLine(request.line, reason, request.url)
    return BadRow(request.line, reason, request.url, request.cells)


def _chunks(requests: Iterable[TrackRequest | BadLine]) -> Iterator[_Chunk]:
    rest = iter(requests)
    while part := list(islice(rest, CHUNK)):
        yield [_named(request) for request in part]


def _named(request: TrackRequest | BadLine) -> _Named | BadLine:
    if isinstance(request, BadLine):
        return request
    url = normalize(request.url.strip())
    if isinstance(url, Refusal):
        return _bad(request, url.value)
    return _Named(request, url, host_of(url))


def _read_ahead(chunks: Iterator[_Chunk]) -> asyncio.Future[_Chunk | None]:
    """The next chunk, read by a daemon thread, which cannot delay the exit of the process."""
    reading: Future[_Chunk | None] = Future()
    reading.set_running_or_notify_cancel()

    def read() -> None:
        try:
            reading.set_result(next(chunks, None))
        except BaseException as error:  # raised where the chunk is awaited
            reading.set_exception(error)

    threading.Thread(target=read, name="reading ahead", daemon=True).start()
    return asyncio.wrap_future(reading)
