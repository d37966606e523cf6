"""The parse stage: claims downloaded tasks, lets their pages be read, and commits in batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from forager.archive import store as archive_store
from forager.archive.errors import ArchiveError
from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.db.database import Connection, Database
from forager.db.patience import Patience
from forager.errors import ErrorKind, NotFound
from forager.logs import get_logger
from forager.parsers.page_cache import Page, PageCache, archived_page
from forager.parsers.reading import Parsed, Reading, ReadingPool
from forager.parsers.rollouts import RolloutPlan, Rollouts
from forager.parsers.trials import Trials
from forager.products.writer import ReadPage, Written, write_pages
from forager.settings import Settings
from forager.tasks.causes import Cause, cause_of, one_line
from forager.tasks.hints import StageHints
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
from forager.tasks.stages.download import read_by
from forager.tasks.stages.settle import in_halves, record, say_lost, settle
from forager.tasks.store import claims, dead_letters
from forager.tasks.store import stages as store
from forager.tasks.workers.holdings import Holdings

log = get_logger("tasks")

BATCH_SIZE = 200
BATCH_SECONDS = 0.25
# pages that are being read or wait for it, for each process
PER_PROCESS = 32
CLAIM_AT_LEAST = 8
# whoever downloaded a page has it in memory: others leave it to him for so long
LEFT_TO_OTHERS = 1.0
GOOD = frozenset({"ok", "suspect"})
LAST_MOMENT = 3.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One page that was read; without a reading, why there is none."""

    task: HeldTask
    duration_ms: int
    reading: Reading | None = None
    final_url: str | None = None
    cause: Cause | None = None


class ParseStage:
    """Keeps pages being read until told to stop. `wake` it when something was downloaded.

    With `hints` it claims only what those name, and what this worker has downloaded.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        worker_id: UUID,
        *,
        pool: ReadingPool,
        rollouts: Rollouts,
        cache: PageCache,
        holdings: Holdings,
        hints: StageHints | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._who = StageOfWorker(worker_id, Stage.PARSE)
        self._pool = pool
        self._trials = Trials(database, pool)
        self._rollouts = rollouts
        self._cache = cache
        self._holdings = holdings
        self._storage = archive_options(settings).open()
        self._limit = PER_PROCESS * pool.processes
        self._running: dict[int, asyncio.Task[ReadTask]] = {}
        self._done: list[ReadTask] = []
        self._oldest = 0.0
        self._patience = Patience(log, "no pages can be claimed now")
        self._changed = asyncio.Event()
        self._stopping = False
        self._next_look = 0.0
        self._others_may_wait = False
        self._hints = hints
        if hints is not None:
            hints.attach(self.wake)

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

    def wake(self) -> None:
        self._changed.set()

    def stop(self) -> None:
        """Claim nothing more; what is read by now, or in a moment, is committed."""
        self._stopping = True
        self._changed.set()

    def drop(self, task_id: int) -> None:
        """The task was taken away: do not go on with it."""
        if task_id in self._running:
            self._running[task_id].cancel()

    async def _nap(self) -> None:
        if self._hints is not None:
            await self._hints.room(self._room() >= CLAIM_AT_LEAST)
        until = self._next_look
        if self._done:
            until = min(until, self._oldest + BATCH_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._changed.wait()
        self._changed.clear()

    async def _finish(self) -> None:
        if self._running:
            await asyncio.wait(self._running.values(), timeout=LAST_MOMENT)
        await self._abandon()
        await self._commit()

    async def _abandon(self) -> None:
        running = list(self._running.values())
        for reading in running:
            reading.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # --- claiming --------------------------------------------------------------------------

    async def _claim_if_useful(self) -> None:
        """What this worker has in memory first; then, once per interval, what others have left."""
        now = time.monotonic()
        is_time = now >= self._next_look
        if is_time:
            self._next_look = now + self._settings.poll_interval
        room = self._room()
        if room < CLAIM_AT_LEAST or not self._holdings.may_claim:
            return
        with self._patience:
            own = self._cache.task_ids(room)
            room -= len(claimed := await self._claim(room, own))
            # held, taken by somebody else or withdrawn: whoever claims it later reads the archive
            self._cache.forget([task_id for task_id in own if task_id not in claimed])
            if room < CLAIM_AT_LEAST:
                return
            if self._hints is not None:
                await self._claim_hinted(self._hints, room)
            elif is_time or self._others_may_wait:
                self._others_may_wait = len(await self._claim(room, None)) == room

    def _room(self) -> int:
        return self._limit - len(self._running)

    async def _claim_hinted(self, hints: StageHints, room: int) -> None:
        if not hints:
            return
        named = hints.begin_look(room)
        await self._claim(room, named)
        # what could not be claimed is not to be read any more, or by somebody else
        await hints.looked(named, has_room=self._room() >= CLAIM_AT_LEAST)

    async def _claim(self, room: int, among: Sequence[int] | None) -> set[int]:
        """Claim `among` these, or any that others have left; which ones were."""
        if among == []:
            return set()
        plan = await self._rollouts.current(self._database)
        async with self._holdings.claiming:
            async with self._database.connection() as connection:
                tasks = await claims.claim_downloaded(
                    connection,
                    self._who.worker_id,
                    limit=room,
                    among=among,
                    waited=LEFT_TO_OTHERS,
                    region=self._settings.region,
                )
            self._holdings.add(tasks)
        for task in tasks:
            self._start(task, plan)
        return {task.id for task in tasks}

    def _start(self, task: HeldTask, plan: RolloutPlan) -> None:
        page = None if task.ref is None else self._cache.take(task.id, task.ref)
        reading = asyncio.create_task(self._read(task, page, plan))
        self._running[task.id] = reading
        reading.add_done_callback(lambda done: self._arrived(task, done))

    def _arrived(self, task: HeldTask, done: asyncio.Task[ReadTask]) -> None:
        self._running.pop(task.id, None)
        if done.cancelled():
            self._holdings.remove([task])
        else:
            if not self._done:
                self._oldest = time.monotonic()
            self._done.append(done.result())
        self._changed.set()

    # --- one page --------------------------------------------------------------------------

    async def _read(self, task: HeldTask, page: Page | None, plan: RolloutPlan) -> ReadTask:
        started = time.monotonic()
        read = ReadTask(task, 0)
        try:
            if page is None and task.ref is not None:
                page = archived_page(await read_response(self._storage, task.ref))
            if page is not None:
                reading = await self._read_by_plan(task, page, plan)
                moved = page.url if page.url != task.url else None
                read = replace(read, reading=reading, final_url=moved)
        except (ArchiveError, NotFound) as error:
            words = one_line(f"the archived page cannot be read: {error.message}")
            read = replace(read, cause=Cause(ErrorKind.INTERNAL, words))
        except Exception as error:  # a fault of ours must not take the other pages with it
            read = replace(read, cause=cause_of(error))
        return replace(read, duration_ms=int((time.monotonic() - started) * 1000))

    async def _read_by_plan(self, task: HeldTask, page: Page, plan: RolloutPlan) -> Reading:
        """By what counts, and by what is on trial: whatever that does, the first one stands."""
        active, canary = plan.versions_for(task.id)
        parsed = await self._pool.parse(page, active)
        if canary is None:
            return Reading(parsed, None)
        tried = await self._trials.read(page, plan, active, canary, to_blame=not parsed.broke)
        return Reading(parsed, tried)

    # --- committing ------------------------------------------------------------------------

    async def _commit_if_due(self) -> None:
        if not self._done:
            return
        old = time.monotonic() - self._oldest >= BATCH_SECONDS
        if len(self._done) >= BATCH_SIZE or old or not self._running:
            await self._commit()

    async def _commit(self) -> None:
        while self._done:
            batch, self._done = self._done[:BATCH_SIZE], self._done[BATCH_SIZE:]
            await in_halves(batch, self._write, self._refuse)
            self._holdings.remove([read.task for read in batch])

    async def _write(self, batch: Sequence[ReadTask]) -> None:
        async with self._database.transaction() as connection:
            kept = await store.lock_held(connection, self._who, [read.task for read in batch])
            mine = [read for read in batch if read.task.id in kept]
            written = await self._write_products(connection, mine)
            attempts = [self._attempt(read, written.get(read.task.id)) for read in mine]
            await settle(connection, self._who, attempts)
            await self._complete(connection, mine, written)
        say_lost(Stage.PARSE, [read.task for read in batch], kept)
        record(Stage.PARSE, attempts)

    async def _write_products(
        self, connection: Connection, batch: Sequence[ReadTask]
    ) -> dict[int, Written]:
        refs = await _lasting_refs(connection, batch)
        active = [_read_page(r, r.reading.active, refs, "active") for r in batch if r.reading]
        canary = [
            _read_page(r, r.reading.canary, refs, "canary")
            for r in batch
            if r.reading is not None and r.reading.canary is not None
        ]
        answers = await write_pages(connection, [*active, *canary], settings=self._settings)
        return {answer.task_id: answer for answer in answers[: len(active)]}

    def _attempt(self, read: ReadTask, written: Written | None) -> Attempt:
        task = read.task
        attempt = Attempt(
            task=task,
            outcome=Outcome.OK,
            final_url=read.final_url,
            duration_ms=read.duration_ms,
        )
        if read.reading is None and read.cause is None:
            # the archive was cleaned up before the page was read: it must be fetched again
            words = Cause(ErrorKind.INTERNAL, "the archived page was deleted before it was read")
            return replace(attempt, outcome=Outcome.RESTED, cause=words)
        cause = read.cause or _cause(read, written)
        if cause is None:
            return attempt
        return replace(
            attempt,
            outcome=outcome_of_failure(task, cause),
            cause=cause,
            delay=backoff(task, cause, self._settings),
        )

    async def _complete(
        self, connection: Connection, batch: Sequence[ReadTask], written: dict[int, Written]
    ) -> None:
        good = [read for read in batch if _is_good(written.get(read.task.id))]
        if not good:
            return
        ids = [read.task.id for read in good]
        done = [
            Completion(id_, None if written[id_].is_new else written[id_].price_changed)
            for id_ in ids
        ]
        await complete_tasks(connection, done, settings=self._settings)
        await store.mark_read(connection, ids, [_version(read) for read in good])
        await dead_letters.resolve_of_tasks(connection, ids)

    async def _refuse(self, read: ReadTask, cause: Cause) -> None:
        """What cannot be written is a failure of that one task."""
        attempt = self._attempt(replace(read, reading=None, cause=cause), None)
        async with self._database.transaction() as connection:
            if await store.lock_held(connection, self._who, [read.task]):
                await settle(connection, self._who, [attempt])
        record(Stage.PARSE, [attempt])


async def _lasting_refs(connection: Connection, batch: Sequence[ReadTask]) -> set[str]:
    """The segments that an extraction may refer to as well: those that are not being deleted."""
    names = {read.task.segment for read in batch if read.task.segment is not None}
    return await archive_store.lock_segments(connection, sorted(names)) if names else set()


def _read_page(read: ReadTask, parsed: Parsed, lasting: set[str], role: str) -> ReadPage:
    task = read.task
    ref: ArchiveRef | None = task.ref if task.segment in lasting else None
    return ReadPage(
        task_id=task.id,
        domain_id=task.domain_id,
        url=task.url,
        url_hash=task.url_hash,
        final_url=read.final_url,
        parser=parsed.parser,
        version=parsed.version,
        product=parsed.product,
        error=parsed.error,
        language=parsed.language,
        ref=ref,
        role=role,
        problems=parsed.problems,
    )


def _is_good(written: Written | None) -> bool:
    return written is not None and written.outcome in GOOD


def _cause(read: ReadTask, written: Written | None) -> Cause | None:
    """Why the page counts as not read; None if it does."""
    if written is None or _is_good(written):
        return None
    broke = read.reading is not None and read.reading.active.product is None
    kind = ErrorKind.PARSE if broke else ErrorKind.VALIDATION
    return Cause(kind, one_line(written.reason or "the page has no product"))


def _version(read: ReadTask) -> str | None:
    active = read.reading.active if read.reading else None
    return None if active is None else read_by(active.parser, active.version)
