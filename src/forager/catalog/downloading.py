"""The download stage: claims queued tasks, fetches their pages, and commits them in batches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from forager.archive import store as archive_store
from forager.archive.inventory import growth_of
from forager.archive.options import archive_options
from forager.archive.record import ResponseRecord, pack
from forager.archive.segment import ArchiveRef
from forager.archive.threads import in_thread
from forager.archive.writer import ArchiveWriter
from forager.catalog.attempt import (
    Attempt,
    HeldTask,
    Outcome,
    Stage,
    StageOfWorker,
    backoff,
    outcome_of_failure,
)
from forager.catalog.causes import Cause, cause_of, one_line
from forager.catalog.fetching import Fetching, Journey
from forager.catalog.holdings import Holdings
from forager.catalog.page_cache import PageCache, page_of
from forager.catalog.reader import used_parser
from forager.catalog.reading import tried_versions
from forager.catalog.rollouts import RolloutPlan, Rollouts
from forager.catalog.schedule import Completion, complete_tasks
from forager.catalog.settling import in_halves, patiently, say_lost, settle
from forager.catalog.store import dead_letters
from forager.catalog.store import stages as store
from forager.catalog.writer import touch_unchanged
from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.db.patience import Patience
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind, LeaseLost
from forager.extract.text import scalar_values
from forager.fetch.budgets import DEFAULT_CONCURRENCY
from forager.fetch.response import Request, Response
from forager.fetch.slots import DomainInactive, HostResting
from forager.fetch.user_agent import agent_header
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("tasks")

NOT_MODIFIED = 304
BATCH_SIZE = 100
BATCH_BYTES = 16 * 1024 * 1024
BATCH_SECONDS = 0.5
# of pages that are fetched and not committed yet; beyond it, no more tasks are claimed
BYTES_WAITING = 4 * BATCH_BYTES
# tasks are claimed when there is room for so many, unless there is nothing else to do
CLAIM_AT_LEAST = 8
# downloads that end at nearly the same time make one claim
CLAIM_INTERVAL = 0.02
# the rest of a host is heeded here for so long, then the database is asked again: it may be over
REST_KNOWN_FOR = 15.0
# a host may ask for a year, and a person may know better: tasks come back to ask
SHORTEST_REST, LONGEST_REST = 1.0, 3600.0
DATABASE_DELAY = 1.0
MAX_VALIDATOR = 1_000
# how long downloads under way may go on when the worker stops
LAST_MOMENT = 1.0


@dataclass(frozen=True, slots=True)
class Download:
    """What became of one task, and its page if there is one."""

    attempt: Attempt
    response: Response | None = None

    @property
    def task(self) -> HeldTask:
        return self.attempt.task

    @property
    def size(self) -> int:
        return 0 if self.response is None else len(self.response.body)


class Downloader:
    """Keeps downloads under way until told to stop. `wake` it when something was queued."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        worker_id: UUID,
        *,
        fetching: Fetching,
        rollouts: Rollouts,
        cache: PageCache,
        holdings: Holdings,
        on_downloaded: Callable[[], None],
    ) -> None:
        self._database = database
        self._settings = settings
        self._on_downloaded = on_downloaded
        self._who = StageOfWorker(worker_id, Stage.DOWNLOAD)
        self._fetching = fetching
        self._rollouts = rollouts
        self._cache = cache
        self._holdings = holdings
        self._archive = _archive_writer(database, settings, worker_id)
        self._segment = ""
        self._running: dict[int, asyncio.Task[Download]] = {}
        self._busy: Counter[int] = Counter()
        self._resting: dict[int, float] = {}
        self._done: list[Download] = []
        self._oldest = 0.0
        self._patience = Patience(log, "no tasks can be claimed now")
        self._changed = asyncio.Event()
        self._stopping = False
        self._more_queued = True
        self._next_look = self._next_claim = 0.0

    # --- the loop --------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            while not self._stopping:
                await self._commit_if_due()
                await self._claim_if_useful()
                await self._nap()
            await self._finish()
        finally:
            await self._abandon()
            await self._archive.close()

    def wake(self) -> None:
        self._more_queued = True
        self._changed.set()

    def stop(self) -> None:
        """Claim nothing more; what is fetched by now, or in a moment, is committed."""
        self._stopping = True
        self._changed.set()

    def drop(self, task_id: int) -> None:
        """The task was taken away: do not go on with it."""
        if task_id in self._running:
            self._running[task_id].cancel()

    async def _nap(self) -> None:
        now = time.monotonic()
        until = self._next_look
        if self._done:
            until = min(until, self._oldest + BATCH_SECONDS)
        if self._more_queued and self._has_room():
            until = min(until, self._next_claim)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - now)):
                await self._changed.wait()
        self._changed.clear()

    async def _finish(self) -> None:
        if self._running:
            await asyncio.wait(self._running.values(), timeout=LAST_MOMENT)
        await self._abandon()
        await self._commit()

    async def _abandon(self) -> None:
        """Stop what is under way. Its tasks are still ours, and are given back by the worker."""
        running = list(self._running.values())
        for download in running:
            download.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # --- claiming --------------------------------------------------------------------------

    async def _claim_if_useful(self) -> None:
        now = time.monotonic()
        is_time = now >= self._next_look
        if is_time:
            self._next_look = now + self._settings.poll_interval
        if not (is_time or (self._more_queued and now >= self._next_claim)):
            return
        room = self._settings.task_concurrency - len(self._running)
        if room < 1 or not (is_time or self._has_room()):
            return
        self._next_claim = now + CLAIM_INTERVAL
        self._more_queued = False
        with self._patience:
            # also when only some were given: others of the same domains may follow
            self._more_queued = bool(await self._claim(room))

    def _has_room(self) -> bool:
        """Whether it is worth a question: there is room for some, in the loop and in memory."""
        limit = self._settings.task_concurrency
        waiting = sum(download.size for download in self._done)
        room = limit - len(self._running)
        return waiting < BYTES_WAITING and room >= min(CLAIM_AT_LEAST, limit)

    async def _claim(self, room: int) -> int:
        if not self._holdings.may_claim:
            return 0
        plan = await self._rollouts.current(self._database)
        async with self._holdings.claiming:
            async with self._database.connection() as connection:
                tasks = await store.claim_queued(
                    connection,
                    self._who.worker_id,
                    limit=room,
                    busy=self._busy,
                    resting=self._resting_now(),
                    concurrency=DEFAULT_CONCURRENCY,
                )
            self._holdings.add(tasks)
        for task in tasks:
            self._start(task, plan)
        return len(tasks)

    def _resting_now(self) -> list[int]:
        now = local_time()
        self._resting = {id_: until for id_, until in self._resting.items() if until > now}
        return list(self._resting)

    def _start(self, task: HeldTask, plan: RolloutPlan) -> None:
        self._busy[task.domain_id] += 1
        download = asyncio.create_task(self._download(task, plan))
        self._running[task.id] = download
        download.add_done_callback(lambda done: self._arrived(task, done))

    def _arrived(self, task: HeldTask, done: asyncio.Task[Download]) -> None:
        self._running.pop(task.id, None)
        self._busy[task.domain_id] -= 1
        if self._busy[task.domain_id] <= 0:
            del self._busy[task.domain_id]
        if done.cancelled():
            # taken away, or the worker stops: in both cases the table says whose it is
            self._holdings.remove([task])
        else:
            if not self._done:
                self._oldest = time.monotonic()
            self._done.append(done.result())
        # its domain can take another one
        self._more_queued = True
        self._changed.set()

    # --- one download ----------------------------------------------------------------------

    async def _download(self, task: HeldTask, plan: RolloutPlan) -> Download:
        journey = self._fetching.journey(task.terms(self._settings))
        try:
            request = _request(task, plan)
            fetched = await journey.fetch(request)
        except HostResting as rest:
            if journey.domain.covers(rest.host):
                self._resting[task.domain_id] = local_time() + min(rest.seconds, REST_KNOWN_FOR)
            seconds = min(max(rest.seconds, SHORTEST_REST), LONGEST_REST)
            return _rested(task, journey, seconds, rest.message)
        except DomainInactive as error:
            # the scheduler leaves it alone until somebody switches the domain on again
            return _rested(task, journey, 0.0, error.message)
        except (DatabaseUnavailable, DiskFull) as error:
            return _rested(task, journey, DATABASE_DELAY, error.message)
        except Exception as error:
            return self._failed(task, journey, cause_of(error))
        response = fetched.response
        if response.status != NOT_MODIFIED:
            return Download(_seen(task, journey, Outcome.OK), response)
        if request.etag is None and request.last_modified is None:
            words = "the server answered 304 although nothing was known of the page"
            return self._failed(task, journey, Cause(ErrorKind.HTTP_SERVER, words))
        return Download(_seen(task, journey, Outcome.UNCHANGED))

    def _failed(self, task: HeldTask, journey: Journey, cause: Cause) -> Download:
        attempt = _seen(task, journey, outcome_of_failure(task, cause))
        delay = backoff(task, cause, self._settings)
        return Download(replace(attempt, cause=cause, delay=delay))

    # --- committing ------------------------------------------------------------------------

    async def _commit_if_due(self) -> None:
        if not self._done:
            return
        due = (
            len(self._done) >= BATCH_SIZE
            or time.monotonic() - self._oldest >= BATCH_SECONDS
            or sum(download.size for download in self._done) >= BATCH_BYTES
            or not self._running
        )
        if due:
            await self._commit()

    async def _commit(self) -> None:
        """Archive first, then everything else in one transaction."""
        batch, self._done = self._done, []
        if not batch:
            return
        batch = await self._archived(batch)
        await in_halves(batch, self._write, self._refuse)
        self._holdings.remove([download.task for download in batch])
        self._on_downloaded()

    async def _archived(self, batch: Sequence[Download]) -> list[Download]:
        pages = [download.response for download in batch if download.response is not None]
        frames = await in_thread(_packed, pages)
        refs = iter(await patiently(lambda: self._archive.write(frames)))
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
            await settle(connection, self._who, [download.attempt for download in mine])
        say_lost(Stage.DOWNLOAD, [d.task for d in batch], kept)
        for download in mine:
            if download.response is not None and download.attempt.ref is not None:
                self._cache.put(download.task.id, download.attempt.ref, page_of(download.response))

    async def _write_pages(self, connection: Connection, batch: Sequence[Download]) -> None:
        pages = [
            (download, download.response, download.attempt.ref)
            for download in batch
            if download.response is not None and download.attempt.ref is not None
        ]
        if not pages:
            return
        refs = [ref for _, _, ref in pages]
        await self._hold_segments(connection, refs)
        await archive_store.grow_segments(connection, growth_of(refs))
        await store.mark_downloaded(
            connection,
            [download.task.id for download, _, _ in pages],
            refs,
            [_validator(response, "ETag") for _, response, _ in pages],
            [_validator(response, "Last-Modified") for _, response, _ in pages],
        )

    async def _hold_segments(self, connection: Connection, refs: Sequence[ArchiveRef]) -> None:
        """Segments stay while their worker is known to live; one that goes says it is not."""
        names = sorted({ref.segment for ref in refs})
        if await archive_store.lock_segments(connection, names) != set(names):
            raise LeaseLost("the archive segments of this worker are being deleted")
        if self._segment and self._segment != names[-1]:
            # commits come one after the other: nothing will refer to the last one any more
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
        """What cannot be written is a failure of that one task."""
        task = download.task
        attempt = Attempt(
            task=task,
            outcome=outcome_of_failure(task, cause),
            cause=cause,
            delay=backoff(task, cause, self._settings),
        )
        async with self._database.transaction() as connection:
            if await store.lock_held(connection, self._who, [task]):
                await settle(connection, self._who, [attempt])


def _request(task: HeldTask, plan: RolloutPlan) -> Request:
    """Conditional if the page is there already, read by the parser that would read it now."""
    active, canary = plan.versions_for(task.id)
    is_read = task.parser_version == read_by(*used_parser(task.url, active))
    if not is_read or tried_versions(task.url, active, canary) is not None:
        return Request(task.url)
    return Request(task.url, etag=task.etag, last_modified=task.last_modified)


def read_by(parser: str, version: str) -> str:
    """How a task remembers who read its page."""
    return f"{parser} {version}"


def _seen(task: HeldTask, journey: Journey, outcome: Outcome) -> Attempt:
    return Attempt(
        task=task,
        outcome=outcome,
        http_status=journey.status,
        final_url=journey.url if journey.url != task.url else None,
        proxy_id=journey.proxy_id,
        duration_ms=journey.duration_ms,
        size=journey.size,
    )


def _rested(task: HeldTask, journey: Journey, seconds: float, words: str) -> Download:
    """Nothing is held against the task: it waits, and spends no retry."""
    cause = Cause(ErrorKind.NOT_ALLOWED, one_line(words))
    return Download(replace(_seen(task, journey, Outcome.RESTED), cause=cause, delay=seconds))


def _validator(response: Response, name: str) -> str | None:
    """A header that can be sent back as it came."""
    value = response.headers.get(name, "")
    usable = value.isascii() and value.isprintable() and len(value) <= MAX_VALIDATOR
    return value if value and usable else None


def _packed(responses: Sequence[Response]) -> list[bytes]:
    return [pack(_record(response)) for response in responses]


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
        async with database.connection() as connection:
            await archive_store.register_segment(connection, name, None, worker_id=worker_id)

    return ArchiveWriter(
        options.open(),
        # a worker's id is used once, so it needs no lease beside it
        owner=f"worker-{worker_id.hex}",
        lease=0,
        register=register,
        info={"http-header-user-agent": agent_header(settings)},
        segment_limit=options.segment_bytes,
    )
