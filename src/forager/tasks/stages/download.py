"""The download stage: claims queued tasks, fetches their pages, and commits them in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from forager.clock import local_time
from forager.db.database import Connection
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind, Retry
from forager.extract.kinds import ContentKind, kind_of
from forager.failures.cause import Cause, cause_of, one_line
from forager.fetch.budgets.slots import DomainInactive, HostThrottled
from forager.fetch.budgets.terms import DEFAULT_CONCURRENCY
from forager.fetch.polite import Fetching, PageFetch
from forager.fetch.response import Request, Response
from forager.parsers.page_cache import page_of
from forager.parsers.reader import used_parser
from forager.parsers.reading import tried_versions
from forager.parsers.rollouts import RolloutPlan
from forager.products.writer import touch_unchanged
from forager.render.archive_records import rendered_response
from forager.tasks.hints import StageHints
from forager.tasks.rendering import TaskBrowser
from forager.tasks.schedule import Completion, complete_tasks
from forager.tasks.stages.attempt import Attempt, LeasedTask, Stage, TaskOutcome, failed
from forager.tasks.stages.loop import StageLoop, StageParts
from forager.tasks.stages.page_archive import Download, PageArchive
from forager.tasks.store import claims, dead_letters
from forager.tasks.store import hints as hint_store
from forager.tasks.store.stages import set_moved, set_needs_browser

NOT_MODIFIED = 304
PAGES = (ContentKind.HTML, ContentKind.XHTML)
BATCH_BYTES = 16 * 1024 * 1024
# of fetched and uncommitted pages; beyond it, no more tasks are claimed
BYTES_WAITING = 4 * BATCH_BYTES
# leased tasks per download: most of them wait for their hosts
LEASED_PER_DOWNLOAD = 16
# leased tasks per download that do not wait for their hosts
BEGUN_PER_DOWNLOAD = 6
# downloads that end at nearly the same time share one claim
CLAIM_INTERVAL = 0.02
# a claim that found few tasks may have checked many hosts: it is followed by a pause of this many
# times its duration
PAUSE_PER_CLAIM = 4.0
HINTS_PER_CLAIM = 500
# how long a host is skipped here before the database is checked again
THROTTLING_KNOWN_FOR = 15.0
# bounds of a Retry-After, which may be a year and may be reset by hand
MIN_DELAY, MAX_DELAY = 1.0, 3600.0
DATABASE_DELAY = 1.0


class Downloader(StageLoop[Download]):
    """Claims queued tasks, fetches their pages, and commits the responses in batches.

    A task is claimed only if its host has a slot soon. Until a batch is committed, its tasks stay
    leased, and another worker takes them over if this one dies.
    """

    batch_size = 100
    batch_seconds = 0.5
    batch_bytes = BATCH_BYTES
    last_moment = 1.0
    claim_at_least = 32

    def __init__(
        self,
        worker: StageParts,
        fetching: Fetching,
        browser: TaskBrowser,
        *,
        on_downloaded: Callable[[], None],
        hints: StageHints | None = None,
    ) -> None:
        super().__init__(worker, Stage.DOWNLOAD, hints)
        self._fetching = fetching
        self._on_downloaded = on_downloaded
        self._browser = browser
        # tasks with a page to render
        self._rendering: set[int] = set()
        self._archive = PageArchive(worker.database, worker.settings, worker.worker_id)
        self._throttled: dict[int, float] = {}
        self._more_queued = True
        self._next_claim = 0.0
        # the last domain that was served
        self._last_domain = 0

    def wake(self) -> None:
        self._more_queued = True
        super().wake()

    def claim_now(self) -> None:
        self._next_claim = 0.0
        self.wake()

    async def close(self) -> None:
        await self._archive.close()
        await self._browser.close()

    # --- claiming --------------------------------------------------------------------------

    def _room(self) -> int:
        """The number of tasks that can be claimed now.

        Tasks that wait for their host have a larger limit, and rendered pages a separate one.
        """
        most, leased = self._settings.task_concurrency, len(self._running)
        rendering = min(len(self._rendering), self._browser.room)
        if self._fetching.is_full:
            return 0
        begun = leased - min(leased, self._fetching.pages_waiting)
        return min(
            BEGUN_PER_DOWNLOAD * most + rendering - begun, LEASED_PER_DOWNLOAD * most - leased
        )

    def _has_room(self) -> bool:
        enough = self._room() >= min(self.claim_at_least, self._settings.task_concurrency)
        return enough and self._bytes_waiting() < BYTES_WAITING

    def _next_claim_at(self) -> float:
        can_claim = self._more_queued and self._leases.may_claim and self._has_room()
        return self._next_claim if can_claim else float("inf")

    async def _claim(self, is_time: bool) -> None:
        now = time.monotonic()
        if not (is_time or now >= self._next_claim_at()):
            return
        room = self._room()
        if room < 1:
            return
        self._next_claim = now + CLAIM_INTERVAL
        self._more_queued = False
        claimed = await self._claim_queued(room)
        # also after a partial claim: other tasks of the same domains may follow
        if claimed:
            self._more_queued = True
        if claimed < min(room, self.claim_at_least):
            took = time.monotonic() - now
            self._next_claim = max(self._next_claim, now + (1 + PAUSE_PER_CLAIM) * took)

    async def _claim_queued(self, room: int) -> int:
        among = None if self._hints is None else self._hints.begin_claim(HINTS_PER_CLAIM)
        if among == []:
            return 0
        tasks = await self._take(
            lambda connection: claims.claim_queued(
                connection,
                self._who.worker_id,
                limit=room,
                busy=self._busy,
                throttled=self._throttled_now(),
                rooms=self._fetching.rooms(self._busy),
                concurrency=DEFAULT_CONCURRENCY,
                among=among,
                after=self._last_domain,
                region=self._settings.region,
                task_proxies=self._settings.task_proxies,
                render_room=max(0, self._browser.room - len(self._rendering)),
            )
        )
        self._last_domain = last_domain(tasks, self._last_domain)
        if self._hints is not None and among is not None:
            waiting = await self._still_waiting(among, tasks)
            done = [task_id for task_id in among if task_id not in waiting]
            await self._hints.end_claim(done, has_room=self._has_room())
        return len(tasks)

    async def _still_waiting(self, named: Sequence[int], claimed: Sequence[LeasedTask]) -> set[int]:
        """Hinted tasks whose domains cannot take them yet; all others need no further attempt."""
        throttled = set(named) - {task.id for task in claimed}
        if not throttled:
            return throttled
        return await self._database.run(
            hint_store.select_queued,
            list(throttled),
            region=self._settings.region,
            task_proxies=self._settings.task_proxies,
            renders=self._browser.is_there,
        )

    def _throttled_now(self) -> list[int]:
        now = local_time()
        self._throttled = {id_: until for id_, until in self._throttled.items() if until > now}
        return list(self._throttled)

    def _work(self, task: LeasedTask, plan: RolloutPlan) -> Coroutine[Any, Any, Download]:
        return self._download(task, plan)

    def _freed(self, task: LeasedTask) -> None:
        self._rendering.discard(task.id)
        self._more_queued = True

    # --- one download ----------------------------------------------------------------------

    async def _download(self, task: LeasedTask, plan: RolloutPlan) -> Download:
        fetch = self._fetching.begin(task.terms(self._settings))
        try:
            reason = await self._decisions.reason(task)
            if reason is None:
                return await self._fetch_static(task, plan, fetch)
            if not self._browser.is_there:
                return _needs_browser_worker(task, fetch, reason)
            self._rendering.add(task.id)
            return await self._fetch_rendered(task, plan, fetch)
        except HostThrottled as throttled:
            if fetch.domain.covers(throttled.host):
                self._throttled[task.domain_id] = local_time() + min(
                    throttled.seconds, THROTTLING_KNOWN_FOR
                )
            seconds = min(max(throttled.seconds, MIN_DELAY), MAX_DELAY)
            return _deferred(task, fetch, seconds, throttled.message)
        except DomainInactive as error:
            return _deferred(task, fetch, 0.0, error.message)
        except (DatabaseUnavailable, DiskFull) as error:
            return _deferred(task, fetch, DATABASE_DELAY, error.message)
        except Exception as error:
            attempt = failed(
                _seen(task, fetch, TaskOutcome.FAILED), cause_of(error), self._settings
            )
            return Download(attempt)

    async def _fetch_static(
        self, task: LeasedTask, plan: RolloutPlan, fetch: PageFetch
    ) -> Download:
        # a check without a browser needs the whole page: that it is unchanged would show nothing
        request = Request(task.address) if task.needs_browser else _request(task, plan)
        response = await _fetch(fetch, request)
        if response.status == NOT_MODIFIED:
            return Download(_seen(task, fetch, TaskOutcome.UNCHANGED))
        return Download(_seen(task, fetch, TaskOutcome.OK), response)

    async def _fetch_rendered(
        self, task: LeasedTask, plan: RolloutPlan, fetch: PageFetch
    ) -> Download:
        response = await _fetch(fetch, _request(task, plan))
        if response.status == NOT_MODIFIED:
            if self._settings.render_skip_unchanged:
                return Download(_seen(task, fetch, TaskOutcome.UNCHANGED))
            before = await self._browser.static_before(task)
            response = before or await _fetch(fetch, Request(task.address))
        if kind_of(response.body, response.headers.get("Content-Type"), response.url) not in PAGES:
            return Download(_seen(task, fetch, TaskOutcome.OK), response)
        rendered = await self._browser.render(fetch, response)
        page = rendered_response(rendered.static, rendered.page)
        return Download(_seen(task, fetch, TaskOutcome.OK), page, rendered)

    # --- committing ------------------------------------------------------------------------

    async def _write(self, batch: Sequence[Download]) -> None:
        await super()._write(await self._archive.archived(batch))
        self._on_downloaded()

    async def _store(self, connection: Connection, batch: Sequence[Download]) -> list[Attempt]:
        await self._archive.refer(connection, batch)
        unchanged = [d.task.id for d in batch if d.attempt.outcome is TaskOutcome.UNCHANGED]
        if unchanged:
            done = [Completion(task_id, price_changed=False) for task_id in unchanged]
            await complete_tasks(connection, done, settings=self._settings)
            await touch_unchanged(connection, unchanged)
            await dead_letters.resolve_of_tasks(connection, unchanged)
        moved = {
            download.task.id: download.attempt.moved_to
            for download in batch
            if download.attempt.moved_to != download.task.moved_to
            and download.attempt.outcome is not TaskOutcome.DEFERRED
        }
        if moved:
            await set_moved(connection, moved)
        left = {download.task.id: True for download in batch if download.needs_browser}
        if left:
            await set_needs_browser(connection, left)
        return [download.attempt for download in batch]

    def _stored(self, batch: Sequence[Download]) -> None:
        for download in batch:
            if download.response is not None and download.attempt.ref is not None:
                page = page_of(download.response, rendered=download.rendered is not None)
                task = download.task
                self._cache.put(task.id, task.domain_id, download.attempt.ref, page)


def last_domain(tasks: Sequence[LeasedTask], start: int) -> int:
    """The last domain of the lowest priority that a claim reached, which began after `start`.

    The next claim begins after this domain.
    """
    lowest = min((task.priority for task in tasks), default=0)
    ids = [task.domain_id for task in tasks if task.priority == lowest]
    return max(ids, key=lambda id_: (id_ <= start, id_), default=start)


async def _fetch(fetch: PageFetch, request: Request) -> Response:
    response = await fetch.fetch_page(request)
    is_conditional = request.etag is not None or request.last_modified is not None
    if response.status == NOT_MODIFIED and not is_conditional:
        message = "the server answered 304 although nothing was known of the page"
        raise Retry(message, kind=ErrorKind.HTTP_SERVER)
    return response


def _request(task: LeasedTask, plan: RolloutPlan) -> Request:
    """A request; conditional if the stored page was read by the current parser version."""
    active, canary = plan.versions_for(task.id)
    is_retry = task.retry_count > 0
    is_read = task.parser_version == read_by(*used_parser(task.url, active))
    if not is_read or tried_versions(task.url, active, canary) is not None:
        return Request(task.address, is_retry=is_retry)
    return Request(
        task.address, etag=task.etag, last_modified=task.last_modified, is_retry=is_retry
    )


def read_by(parser: str, version: str) -> str:
    """The value of `parser_version`."""
    return f"{parser} {version}"


def _seen(task: LeasedTask, fetch: PageFetch, outcome: TaskOutcome) -> Attempt:
    return Attempt(
        task=task,
        outcome=outcome,
        http_status=fetch.status,
        final_url=fetch.url if fetch.url != task.url else None,
        proxy_id=fetch.proxy_id,
        duration_ms=fetch.duration_ms,
        size=fetch.size,
        moved_to=fetch.permanent_url if fetch.permanent_url != task.url else None,
    )


def _needs_browser_worker(task: LeasedTask, fetch: PageFetch, reason: str) -> Download:
    cause = Cause(ErrorKind.RENDER, f"left to a worker that renders ({reason})")
    attempt = replace(_seen(task, fetch, TaskOutcome.DEFERRED), cause=cause)
    return Download(attempt, needs_browser=True)


def _deferred(task: LeasedTask, fetch: PageFetch, seconds: float, message: str) -> Download:
    """Postpone a task without spending a retry."""
    cause = Cause(ErrorKind.NOT_ALLOWED, one_line(message))
    return Download(replace(_seen(task, fetch, TaskOutcome.DEFERRED), cause=cause, delay=seconds))
