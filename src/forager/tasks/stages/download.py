"""The download stage: claims queued tasks, fetches their pages, and commits them in batches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from forager.clock import local_time
from forager.db.database import Database
from forager.db.patience import Patience
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind
from forager.fetch.budgets.budget import DEFAULT_CONCURRENCY
from forager.fetch.budgets.slots import DomainInactive, HostResting
from forager.fetch.polite import Fetching, Journey
from forager.fetch.response import Request
from forager.logs import get_logger
from forager.parsers.page_cache import PageCache
from forager.parsers.reader import used_parser
from forager.parsers.reading import tried_versions
from forager.parsers.rollouts import RolloutPlan, Rollouts
from forager.settings import Settings
from forager.tasks.causes import Cause, cause_of, one_line
from forager.tasks.hints import StageHints
from forager.tasks.stages.attempt import (
    Attempt,
    HeldTask,
    Outcome,
    Stage,
    StageOfWorker,
    backoff,
    outcome_of_failure,
)
from forager.tasks.stages.deposit import Deposit, Download
from forager.tasks.store import claims
from forager.tasks.store import hints as hint_store
from forager.tasks.workers.holdings import Holdings

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
# how long downloads under way may go on when the worker stops
LAST_MOMENT = 1.0


class Downloader:
    """Keeps downloads under way until told to stop. `wake` it when something was queued.

    With `hints` it claims only what those name.
    """

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
        hints: StageHints | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._on_downloaded = on_downloaded
        self._who = StageOfWorker(worker_id, Stage.DOWNLOAD)
        self._fetching = fetching
        self._rollouts = rollouts
        self._holdings = holdings
        self._deposit = Deposit(database, settings, self._who, cache)
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
        self._hints = hints
        if hints is not None:
            hints.attach(self._look_now)

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
            await self._deposit.close()

    def wake(self) -> None:
        self._more_queued = True
        self._changed.set()

    def _look_now(self) -> None:
        self._next_claim = 0.0
        self.wake()

    def stop(self) -> None:
        """Claim nothing more; what is fetched by now, or in a moment, is committed."""
        self._stopping = True
        self._changed.set()

    def drop(self, task_id: int) -> None:
        """The task was taken away: do not go on with it."""
        if task_id in self._running:
            self._running[task_id].cancel()

    async def _nap(self) -> None:
        if self._hints is not None:
            await self._hints.room(self._has_room())
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
            claimed = await self._claim(room)
            self._more_queued = self._more_queued or bool(claimed)

    def _has_room(self) -> bool:
        """Whether it is worth a question: there is room for some, in the loop and in memory."""
        limit = self._settings.task_concurrency
        waiting = sum(download.size for download in self._done)
        room = limit - len(self._running)
        return waiting < BYTES_WAITING and room >= min(CLAIM_AT_LEAST, limit)

    async def _claim(self, room: int) -> int:
        among = None if self._hints is None else self._hints.begin_look(claims.LOOK_AHEAD)
        if not self._holdings.may_claim or among == []:
            return 0
        plan = await self._rollouts.current(self._database)
        async with self._holdings.claiming:
            async with self._database.connection() as connection:
                tasks = await claims.claim_queued(
                    connection,
                    self._who.worker_id,
                    limit=room,
                    busy=self._busy,
                    resting=self._resting_now(),
                    concurrency=DEFAULT_CONCURRENCY,
                    among=among,
                    region=self._settings.region,
                    task_proxies=self._settings.task_proxies,
                )
            self._holdings.add(tasks)
        for task in tasks:
            self._start(task, plan)
        if self._hints is not None and among is not None:
            waiting = await self._still_waiting(among, tasks)
            done = [task_id for task_id in among if task_id not in waiting]
            await self._hints.looked(done, has_room=self._has_room())
        return len(tasks)

    async def _still_waiting(self, named: Sequence[int], claimed: Sequence[HeldTask]) -> set[int]:
        """Those whose domains cannot take them yet; all others are claimed, gone, or not for us."""
        rest = set(named) - {task.id for task in claimed}
        if not rest:
            return rest
        async with self._database.connection() as connection:
            return await hint_store.select_queued(
                connection,
                list(rest),
                region=self._settings.region,
                task_proxies=self._settings.task_proxies,
            )

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
        batch, self._done = self._done, []
        if not batch:
            return
        await self._deposit.put(batch)
        self._holdings.remove([download.task for download in batch])
        self._on_downloaded()


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
