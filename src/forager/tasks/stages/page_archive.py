"""Downloads, and where their pages are put: into the archive, and its references into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.archive.storage import in_thread
from forager.archive.warc_record import ResponseRecord, pack
from forager.archive.writer import ArchiveWriter, close_segments_of, lock_segments, record_growth
from forager.db.database import Connection, Database
from forager.errors import LeaseLost
from forager.extract.text import scalar_values
from forager.fetch.response import Response, agent_header
from forager.render.archive_records import pack_page
from forager.settings import Settings
from forager.tasks.hints import send_hints
from forager.tasks.rendering import RenderedDownload
from forager.tasks.stages.attempt import Attempt, LeasedTask
from forager.tasks.stages.settle import retry_until_stored
from forager.tasks.store.stages import mark_downloaded


@dataclass(frozen=True, slots=True)
class Download:
    """The outcome of one download, and its page if there is one."""

    attempt: Attempt
    # the page as parsed; `rendered` has the static response of a rendered one
    response: Response | None = None
    rendered: RenderedDownload | None = None
    # for a worker that renders
    needs_browser: bool = False

    @property
    def task(self) -> LeasedTask:
        return self.attempt.task

    @property
    def size(self) -> int:
        return 0 if self.response is None else len(self.response.body)


class PageArchive:
    """Stores the downloaded pages of one worker, batch after batch."""

    def __init__(self, database: Database, settings: Settings, worker_id: UUID) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._archive = _archive_writer(database, settings, worker_id)
        self._segment = ""

    async def close(self) -> None:
        await self._archive.close()

    async def archived(self, batch: Sequence[Download]) -> list[Download]:
        """The downloads with the locations of their pages, which are written now."""
        frames = await in_thread(_packed, [each for each in batch if each.response is not None])
        refs = iter(await retry_until_stored(lambda: self._archive.write(frames)))
        return [
            download
            if download.response is None
            else replace(download, attempt=replace(download.attempt, ref=next(refs)))
            for download in batch
        ]

    async def refer(self, connection: Connection, batch: Sequence[Download]) -> None:
        """Store the locations of pages with their tasks, which are parsed next."""
        pages = [
            (download, download.response, download.attempt.ref)
            for download in batch
            if download.response is not None and download.attempt.ref is not None
        ]
        if not pages:
            return
        refs = [ref for _, _, ref in pages]
        ids = [download.task.id for download, _, _ in pages]
        await self._hold_segments(connection, refs)
        await record_growth(connection, refs)
        await mark_downloaded(
            connection,
            ids,
            refs,
            [response.validator("ETag") for _, response, _ in pages],
            [response.validator("Last-Modified") for _, response, _ in pages],
        )
        await send_hints(connection, self._settings, ids)

    async def _hold_segments(self, connection: Connection, refs: Sequence[ArchiveRef]) -> None:
        """Lock the segments of a batch, and close the previous one."""
        names = sorted({ref.segment for ref in refs})
        if await lock_segments(connection, names) != set(names):
            raise LeaseLost("the archive segments of this worker are being deleted")
        if self._segment and self._segment != names[-1]:
            # commits are sequential: nothing will refer to the previous one any more
            await close_segments_of(connection, self._worker_id, but=names[-1])
        self._segment = names[-1]


def _packed(downloads: Sequence[Download]) -> list[bytes]:
    return [_frame(each) for each in downloads if each.response is not None]


def _frame(download: Download) -> bytes:
    rendered = download.rendered
    if rendered is not None:
        static = pack(_record(rendered.static))
        return pack_page(rendered.static.url, rendered.page, static)
    assert download.response is not None
    return pack(_record(download.response))


def _record(response: Response) -> ResponseRecord:
    return ResponseRecord(
        url=response.url,
        date=datetime.now(UTC),
        status=response.status,
        headers=[(scalar_values(n), scalar_values(v)) for n, v in response.headers.items()],
        body=response.body,
        reason=scalar_values(response.reason),
        ip=response.peer or None,
        protocol=f"http/{response.http_version}",
    )


def _archive_writer(database: Database, settings: Settings, worker_id: UUID) -> ArchiveWriter:
    # a worker ID is used once, so that no lease is needed
    owner, agent = f"worker-{worker_id.hex}", agent_header(settings)
    return ArchiveWriter.of(database, settings, owner, 0, user_agent=agent, worker_id=worker_id)
