"""Operations on tasks, for all adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.extract.keys import url_hash
from forager.extract.urls import Refusal, normalize
from forager.hints import Hint
from forager.products.lookup import select_attempts
from forager.products.product import AttemptRecord
from forager.settings import Settings
from forager.settings.crawling import RenderMode, parse_render
from forager.tasks.holds import domain_ids_of, in_batches, no_such_task
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.store import activity as task_counts
from forager.tasks.store import changes as task_changes
from forager.tasks.store import reads as store
from forager.tasks.store.activity import DomainBacklog
from forager.tasks.task import Task
from forager.tasks.tracking import Tracked, Tracking
from forager.tasks.tracking_request import BadLine, RequestedTerms, TrackRequest
from forager.tasks.waiting import MOST_AHEAD, why_not_now

ATTEMPTS_SHOWN = 20
BACKLOGS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A task, its next visit, why it does not run now, and its last attempts."""

    task: Task
    every: timedelta
    next_at: datetime | None
    why: str | Hint
    attempts: list[AttemptRecord]


@dataclass(frozen=True, slots=True)
class Recrawled:
    """Tasks `on_hold` are due, but wait until they are resumed; the others were in progress."""

    found: int
    due: int
    on_hold: int

    @property
    def under_way(self) -> int:
        """Tasks that a worker was running already."""
        return self.found - self.due


@dataclass(frozen=True, slots=True)
class TaskStats:
    """Tasks by state, holds, and the work that waits."""

    counts: dict[TaskStatus, int]
    all_hold: str | None
    held_domains: int
    held_tasks: int
    ticked_at: datetime | None
    oldest_due: datetime | None
    backlog: list[DomainBacklog]


class Tasks:
    """Tracked pages: add, find, change and remove them.

    Names are IDs or URLs; NotFound is raised for an unknown one.

        tasks = Tasks(database, settings)
        await tasks.track(["https://shop.example.org/lamp"], every=timedelta(hours=6))
        task = await tasks.get("https://shop.example.org/lamp")
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    @property
    def database(self) -> Database:
        """The database of the tasks."""
        return self._database

    async def track(
        self,
        urls: Iterable[str],
        *,
        every: timedelta | None = None,
        priority: int | None = None,
        popularity: float | None = None,
        at: datetime | None = None,
        max_retries: int | None = None,
        render: RenderMode | str | None = None,
        allow_private: bool = False,
        found_by: str = "person",
    ) -> Tracked:
        """Track URLs. The given terms replace those of known tasks."""
        requests = (TrackRequest(number, url) for number, url in enumerate(urls, start=1))
        mode = None if render is None else parse_render(render)
        return await self.track_requests(
            requests,
            terms=RequestedTerms(priority, every, popularity, at, max_retries, mode),
            allow_private=allow_private,
            found_by=found_by,
        )

    async def track_requests(
        self,
        requests: Iterable[TrackRequest | BadLine],
        *,
        terms: RequestedTerms,
        allow_private: bool = False,
        found_by: str = "file",
        on_bad: Callable[[BadLine], None] | None = None,
    ) -> Tracked:
        """Track the requests of a file; `terms` apply where a line has none."""
        tracking = Tracking(
            database=self._database,
            settings=self._settings,
            terms=terms,
            allow_private=allow_private,
            found_by=found_by,
            on_bad=on_bad,
        )
        return await tracking.track(requests)

    async def list_tasks(
        self, selection: Selection | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Task]:
        """Tasks, newest first."""
        check_limit(limit)
        selection = selection or Selection()
        domain_ids = await domain_ids_of(self._database, selection)
        found = await self._database.run(
            store.select_tasks,
            selection,
            domain_ids=domain_ids,
            before=decode_number(cursor),
            limit=limit + 1,
        )
        return page_of(found, limit, lambda task: task.id)

    async def get(self, name: str) -> Task:
        """A task by ID or URL."""
        return await self._database.run(_existing, name)

    async def ids_of(self, urls: Sequence[str]) -> list[int | None]:
        """The ids of the tasks for these URLs; None where there is none."""
        keys = [None if isinstance(url := normalize(u), Refusal) else url_hash(url) for u in urls]
        found = await self._database.run(store.select_ids_by_hash, [key for key in keys if key])
        return [None if key is None else found.get(key) for key in keys]

    async def unknown(self, selection: Selection) -> list[int]:
        """The ids of a selection that belong to no task."""
        if not selection.ids:
            return []
        known = await self._database.run(store.select_known_ids, selection.ids)
        return [number for number in dict.fromkeys(selection.ids) if number not in known]

    async def report(self, name: str) -> TaskReport:
        """A task by its ID or URL, why it waits, and its last attempts; raises NotFound."""
        async with self._database.transaction() as connection:
            task = await _existing(connection, name)
            around = await store.select_surroundings(
                connection,
                task,
                MOST_AHEAD,
                stale_after=self._settings.stale_after,
                task_proxies=self._settings.task_proxies,
            )
            attempts = await select_attempts(connection, task.id, ATTEMPTS_SHOWN)
        asked = task.adapted_frequency or task.crawl_frequency or around.domain_frequency
        every = asked or timedelta(seconds=self._settings.recrawl_every)
        return TaskReport(
            task=task,
            every=every,
            next_at=_next_at(task),
            why=why_not_now(task, around, every),
            attempts=attempts,
        )

    async def recrawl(self, selection: Selection) -> Recrawled:
        """Crawl now, before all other tasks of the same domain and priority."""
        found, parts = await in_batches(self._database, selection, task_changes.recrawl)
        return Recrawled(found, sum(due for due, _ in parts), sum(on_hold for _, on_hold in parts))

    async def set_terms(
        self,
        selection: Selection,
        *,
        priority: int | None = None,
        every: timedelta | None = None,
        default_every: bool = False,
        popularity: float | None = None,
        max_retries: int | None = None,
        render: RenderMode | None = None,
        default_render: bool = False,
    ) -> int:
        """Change the terms of tasks; a new interval counts from the last visit."""
        RequestedTerms(priority, every, popularity, max_retries=max_retries)
        default = timedelta(seconds=self._settings.recrawl_every)
        set_terms = partial(
            task_changes.set_terms,
            priority=priority,
            every=every,
            default_every=default if default_every else None,
            popularity=popularity,
            max_retries=max_retries,
            render=render,
            default_render=default_render,
        )
        _, changed = await in_batches(self._database, selection, set_terms)
        return sum(changed)

    async def remove(self, selection: Selection) -> int:
        """Stop tracking; products, their history and the archive are kept."""
        delete = task_changes.delete_tasks
        _, removed = await in_batches(self._database, selection, delete, destroys=True)
        return sum(removed)

    async def count(self, selection: Selection, *, destroys: bool = False) -> int:
        """Number of tasks of a selection."""

        async def nothing(_connection: Connection, _ids: list[int]) -> None:
            return

        return (await in_batches(self._database, selection, nothing, destroys=destroys))[0]

    async def counts(self, selection: Selection) -> dict[TaskStatus, int]:
        """The tasks of a selection by state, whichever states it selects."""
        found = await self._database.run(
            store.count_by_status,
            replace(selection, statuses=()),
            domain_ids=await domain_ids_of(self._database, selection),
        )
        return {status: found.get(status, 0) for status in TaskStatus}

    async def stats(self) -> TaskStats:
        """Tasks by state, holds, and the domains with the most work."""
        async with self._database.transaction() as connection:
            counts = await task_counts.count_by_status(connection)
            all_hold, domains, tasks = await task_counts.count_holds(connection)
            backlog = await task_counts.select_backlog(connection, BACKLOGS_SHOWN)
            ticked_at = await task_counts.select_ticked_at(connection)
        return TaskStats(
            counts={status: counts.get(status, 0) for status in TaskStatus},
            all_hold=all_hold,
            held_domains=domains,
            held_tasks=tasks,
            ticked_at=ticked_at,
            oldest_due=min((one.oldest_due for one in backlog if one.oldest_due), default=None),
            backlog=backlog,
        )

    async def stats_now(self, counted: TaskStats) -> TaskStats:
        """Cached counts with current holds, so that a new hold is visible at once."""
        async with self._database.connection() as connection:
            all_hold, domains, tasks = await task_counts.count_holds(connection)
            ticked_at = await task_counts.select_ticked_at(connection)
        return replace(
            counted, all_hold=all_hold, held_domains=domains, held_tasks=tasks, ticked_at=ticked_at
        )

    async def in_progress(self) -> dict[UUID, int]:
        """Claimed tasks by worker."""
        return await self._database.run(task_counts.count_by_worker)


async def _existing(connection: Connection, name: str) -> Task:
    found: Task | None = None
    if name.isascii() and name.isdecimal() and len(name) < 19:
        found = await store.select_task(connection, task_id=int(name))
    elif not isinstance(url := normalize(name), Refusal):
        found = await store.select_task(connection, url_hash=url_hash(url))
    if found is None:
        raise no_such_task(name[:200])
    return found


def _next_at(task: Task) -> datetime | None:
    """When it may run next; None if it runs, or has failed."""
    if task.status is TaskStatus.COMPLETED:
        return task.next_crawl_at
    return task.scheduled_at if task.status is TaskStatus.PENDING else None
