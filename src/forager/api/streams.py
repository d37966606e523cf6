"""Server-sent events of the progress of jobs, and downloads of files as they are written.

One query per interval serves all streams of this process, whichever jobs they watch. Without
streams there are no queries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from forager.api.services import Services
from forager.crawl.operations.crawls import CrawlProgress
from forager.crawl.operations.job_models import JobEvent
from forager.crawl.reports.report import CrawlReport, crawl_reports
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, NotFound, TooManyRequests, error_text
from forager.jobs import job as jobs
from forager.jobs.history import events_of_many
from forager.jobs.lifecycle import FINISHED
from forager.logs import get_logger
from forager.operations.slots import Slots
from forager.products.export import ProductsExportFormat
from forager.products.lookup import find_image, read_image

log = get_logger("api")

QUERY_INTERVAL = 0.5
HEARTBEAT = 15.0
# after this a client connects again, so that a key that was revoked meanwhile is noticed
LONGEST = 900.0
MAX_STREAMS = 1000
MAX_EVENTS = 1000
RETRY_MS = 2000


@dataclass(slots=True)
class WatchedJob:
    """A watched job, as of the last query."""

    report: CrawlReport | None = None
    events: list[jobs.JobEvent] = field(default_factory=list)
    gone: bool = False
    watchers: set[asyncio.Event] = field(default_factory=set)

    @property
    def has_ended(self) -> bool:
        return self.gone or (self.report is not None and self.report.job.status in FINISHED)

    def wake(self) -> None:
        for watcher in self.watchers:
            watcher.set()


class ProgressHub:
    """Queries all watched jobs together, and wakes the streams of those that changed."""

    def __init__(self, database: Database, *, interval: float = QUERY_INTERVAL) -> None:
        self._database = database
        self._interval = interval
        self._watched: dict[UUID, WatchedJob] = {}
        self._querying: asyncio.Task[None] | None = None
        self.closing = False

    def check_room(self) -> None:
        """Raise if there are too many streams; to be called before a response starts."""
        if sum(len(watched.watchers) for watched in self._watched.values()) >= MAX_STREAMS:
            raise TooManyRequests(
                f"{MAX_STREAMS} streams are open",
                retry_after=10,
                hint="Ask for the progress now and then instead.",
            )

    @asynccontextmanager
    async def watch(self, job_id: UUID) -> AsyncIterator[tuple[WatchedJob, asyncio.Event]]:
        """The job's state, kept up to date, and an event that is set when it changes."""
        watched = self._watched.setdefault(job_id, WatchedJob())
        changed = asyncio.Event()
        watched.watchers.add(changed)
        if self._querying is None or self._querying.done():
            self._querying = asyncio.create_task(self._query_repeatedly(), name="progress hub")
        try:
            yield watched, changed
        finally:
            watched.watchers.discard(changed)
            if not watched.watchers:
                self._watched.pop(job_id, None)

    async def close(self) -> None:
        """End all streams; their clients may connect to another process, or to this one later."""
        self.closing = True
        for watched in self._watched.values():
            watched.wake()
        if self._querying is not None:
            self._querying.cancel()
            await asyncio.gather(self._querying, return_exceptions=True)

    async def _query_repeatedly(self) -> None:
        while self._watched:
            try:
                await self.run_once()
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("progress cannot be read now", reason=error_text(error))
            await asyncio.sleep(self._interval)

    async def run_once(self) -> None:
        """Query every watched job once."""
        ids = list(self._watched)
        reports = await crawl_reports(self._database, ids)
        events = await self._new_events()
        for job_id in ids:
            watched = self._watched.get(job_id)
            if watched is not None:
                self._note(watched, reports.get(job_id), events.get(job_id, []))

    def _note(
        self, watched: WatchedJob, report: CrawlReport | None, events: list[jobs.JobEvent]
    ) -> None:
        known = watched.events[-1].id if watched.events else 0
        fresh = [event for event in events if event.id > known]
        changed = bool(fresh) or report != watched.report
        watched.gone = report is None
        watched.report = report
        watched.events = [*watched.events, *fresh][-MAX_EVENTS:]
        if changed or watched.gone:
            watched.wake()

    async def _new_events(self) -> dict[UUID, list[jobs.JobEvent]]:
        """Moves since the last one that is known of each job."""
        known = {
            job_id: watched.events[-1].id if watched.events else 0
            for job_id, watched in self._watched.items()
        }
        return await events_of_many(self._database, known, limit=MAX_EVENTS)


async def progress_events(
    hub: ProgressHub, job_id: UUID, last_event_id: int
) -> AsyncIterator[bytes]:
    """`move` for each move after the last one the client knows, `progress` for each change."""
    stop_at = time.monotonic() + LONGEST
    sent: bytes | None = None
    async with hub.watch(job_id) as (watched, changed):
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not hub.closing and time.monotonic() < stop_at:
            for event in [e for e in watched.events if e.id > last_event_id]:
                last_event_id = event.id
                yield _message("move", JobEvent.of(event).model_dump_json(), event.id)
            if watched.report is not None:
                body = _message("progress", CrawlProgress.build(watched.report).model_dump_json())
                if body != sent:
                    yield body
                    sent = body
            if watched.has_ended:
                yield _message("end", "{}")
                return
            if not await _wait(changed):
                yield b": still here\n\n"


async def _wait(changed: asyncio.Event) -> bool:
    """Wait for a change; False if there was none for a while."""
    try:
        async with asyncio.timeout(HEARTBEAT):
            await changed.wait()
    except TimeoutError:
        return False
    changed.clear()
    return True


def _message(kind: str, data: str, event_id: int | None = None) -> bytes:
    head = "" if event_id is None else f"id: {event_id}\n"
    # JSON has no raw line breaks, so one data line holds all of it
    return f"{head}event: {kind}\ndata: {data}\n\n".encode()


# of files of products
MEDIA_TYPES = {
    ProductsExportFormat.CSV: "text/csv; charset=utf-8",
    ProductsExportFormat.JSONL: "application/x-ndjson",
    ProductsExportFormat.PARQUET: "application/vnd.apache.parquet",
}

DOWNLOADS = Slots(4, "an export")


def file_responses(media_types: Iterable[str]) -> dict[int | str, dict[str, Any]]:
    """The responses of an endpoint that streams a file."""
    content = {each: {"schema": {"type": "string"}} for each in media_types}
    description = "The file, streamed while it is written."
    return {200: {"description": description, "content": content}}


class StreamedDownload(StreamingResponse):
    """A streamed file, which takes a slot until it is sent."""

    def __init__(self, parts: AsyncGenerator[bytes, None], name: str, media_type: str) -> None:
        self._parts = parts
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        super().__init__(parts, headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with DOWNLOADS.taken():
                await super().__call__(scope, receive, send)
        finally:
            await self._parts.aclose()


async def download(parts: AsyncIterator[bytes], name: str, media_type: str) -> StreamedDownload:
    """The response; an error of the first part is raised before the file starts."""
    first = await anext(parts)
    return StreamedDownload(_again(first, parts), name, media_type)


async def _again(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    yield first
    async for part in rest:
        yield part


def response_file(body: bytes, name: str) -> Response:
    """An archived body for download; browsers never show it, because it belongs to another site."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(body, media_type="application/octet-stream", headers=headers)


# kinds that are nothing but pixels
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/bmp")
# an image comes from a foreign server: it may only be displayed, whatever it contains
IMAGE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=3600",
}


async def image_response(
    services: Services, product_id: int, position: int, if_none_match: str
) -> Response:
    """One of a product's images, or that it is the one the browser has."""
    found = await find_image(services.database, product_id, position)
    etag = f'"{found.content_hash.hex()}"'
    headers = {**IMAGE_HEADERS, "ETag": etag}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    if found.media_type not in IMAGE_TYPES:
        raise NotFound(f"image {position} of product {product_id} is of a kind that is not shown")
    data = await read_image(services.settings, found)
    return Response(data, headers=headers, media_type=found.media_type)
