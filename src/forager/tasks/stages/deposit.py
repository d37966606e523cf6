"""Where downloads are put: their pages into the archive, and what became of them into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from forager.archive import store as archive_store
from forager.archive.deletion import growth_of
from forager.archive.options import archive_options
from forager.archive.record import ResponseRecord, pack
from forager.archive.segment import ArchiveRef
from forager.archive.storage import in_thread
from forager.archive.writer import ArchiveWriter
from forager.db.database import Connection, Database
from forager.errors import LeaseLost
from forager.extract.text import scalar_values
from forager.fetch.response import Response, agent_header
from forager.parsers.page_cache import PageCache, page_of
from forager.products.writer import touch_unchanged
from forager.render.records import pack_page
from forager.settings import Settings
from forager.tasks.causes import Cause
from forager.tasks.hints import send_hints
from forager.tasks.rendering import RenderedDownload
from forager.tasks.schedule import Completion, complete_tasks
from forager.tasks.stages.attempt import (
    Attempt,
    HeldTask,
    Outcome,
    Stage,
    StageOfWorker,
    backoff,
    outcome_of_failure,
)
from forager.tasks.stages.settle import (
    commit_isolated,
    log_lost,
    record,
    retry_until_stored,
    settle,
)
from forager.tasks.store import dead_letters
from forager.tasks.store import stages as store

MAX_VALIDATOR = 1_000


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
    def task(self) -> HeldTask:
        return self.attempt.task

    @property
    def size(self) -> int:
        return 0 if self.response is None else len(self.response.body)


class Deposit:
    """Stores the downloads of one worker, batch after batch; `cache` gets their pages too."""

    def __init__(
        self, database: Database, settings: Settings, who: StageOfWorker, cache: PageCache
    ) -> None:
        self._database = database
        self._settings = settings
        self._who = who
        self._cache = cache
        self._archive = _archive_writer(database, settings, who.worker_id)
        self._segment = ""

    async def put(self, batch: Sequence[Download]) -> None:
        """Archive the pages, then write everything else in one transaction."""
        await commit_isolated(await self._archived(batch), self._write, self._refuse)

    async def close(self) -> None:
        await self._archive.close()

    async def _archived(self, batch: Sequence[Download]) -> list[Download]:
        frames = await in_thread(_packed, [each for each in batch if each.response is not None])
        refs = iter(await retry_until_stored(lambda: self._archive.write(frames)))
        return [
            download
            if download.response is None
            else replace(download, attempt=replace(download.attempt, ref=next(refs)))
            for download in batch
        ]

    async def _write(self, batch: Sequence[Download]) -> None:
        async with self._database.transaction() as connection:
            kept = await store.lock_held(connection, self._who, [d.task for d in batch])
            mine = [download for download in batch if download.task.id in kept]
            await self._write_pages(connection, mine)
            await self._write_unchanged(connection, mine)
            left = {download.task.id: True for download in mine if download.needs_browser}
            if left:
                await store.set_needs_browser(connection, left)
            attempts = [download.attempt for download in mine]
            settled = await settle(connection, self._who, attempts, self._settings)
        log_lost(Stage.DOWNLOAD, [d.task for d in batch], kept)
        record(Stage.DOWNLOAD, settled)
        for download in mine:
            if download.response is not None and download.attempt.ref is not None:
                page = page_of(download.response, rendered=download.rendered is not None)
                self._cache.put(download.task.id, download.attempt.ref, page)

    async def _write_pages(self, connection: Connection, batch: Sequence[Download]) -> None:
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
        await archive_store.grow_segments(connection, growth_of(refs))
        await store.mark_downloaded(
            connection,
            ids,
            refs,
            [_validator(response, "ETag") for _, response, _ in pages],
            [_validator(response, "Last-Modified") for _, response, _ in pages],
        )
        await send_hints(connection, self._settings, ids)

    async def _hold_segments(self, connection: Connection, refs: Sequence[ArchiveRef]) -> None:
        """Lock the segments of a batch, and close the previous one."""
        names = sorted({ref.segment for ref in refs})
        if await archive_store.lock_segments(connection, names) != set(names):
            raise LeaseLost("the archive segments of this worker are being deleted")
        if self._segment and self._segment != names[-1]:
            # commits are sequential: nothing will refer to the previous one any more
            await archive_store.close_segments_of(connection, self._who.worker_id, but=names[-1])
        self._segment = names[-1]

    async def _write_unchanged(self, connection: Connection, batch: Sequence[Download]) -> None:
        ids = [d.task.id for d in batch if d.attempt.outcome is Outcome.UNCHANGED]
        if ids:
            done = [Completion(task_id, price_changed=False) for task_id in ids]
            await complete_tasks(connection, done, settings=self._settings)
            await touch_unchanged(connection, ids)
            await dead_letters.resolve_of_tasks(connection, ids)

    async def _refuse(self, download: Download, cause: Cause) -> None:
        """Fail the one task whose result cannot be written."""
        task = download.task
        attempt = Attempt(
            task=task,
            outcome=outcome_of_failure(task, cause),
            cause=cause,
            delay=backoff(task, cause, self._settings),
        )
        async with self._database.transaction() as connection:
            if await store.lock_held(connection, self._who, [task]):
                await settle(connection, self._who, [attempt], self._settings)
        record(Stage.DOWNLOAD, [attempt])


def _validator(response: Response, name: str) -> str | None:
    """A header that can be sent back unchanged."""
    value = response.headers.get(name, "")
    usable = value.isascii() and value.isprintable() and len(value) <= MAX_VALIDATOR
    return value if value and usable else None


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
    options = archive_options(settings)

    async def register(name: str) -> None:
        await database.run(archive_store.register_segment, name, None, worker_id=worker_id)

    return ArchiveWriter(
        options.open(),
        # a worker ID is used once, so that no lease is needed
        owner=f"worker-{worker_id.hex}",
        lease=0,
        register=register,
        info={"http-header-user-agent": agent_header(settings)},
        segment_limit=options.segment_bytes,
    )
