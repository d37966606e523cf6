"""Operations on sources, for all adapters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.db.rows import select_now
from forager.documents.generation import Generation, Schedule, Source, SourceDeclaration
from forager.documents.publication import (
    existing_source,
    locked_source,
    missing_source,
    no_such_generation,
)
from forager.documents.store import generations, publishing, removal
from forager.documents.versions import base_name, select_versions, version_key, version_of
from forager.errors import InvalidInput, NotAllowed, NotFound, TooManyRequests
from forager.hints import Hint, action
from forager.jobs.job import NewJob
from forager.jobs.queue import Enqueued, Queue
from forager.logs import get_logger
from forager.services.service import UNAVAILABLE, Service, isolated
from forager.settings import Settings

MAX_KEPT = 1000


async def list_sources(
    database: Database, *, user_id: UUID | None = None, cursor: str | None = None, limit: int = 100
) -> Page[Source]:
    """Sources by name; the cursor is the last name."""
    found = await database.run(
        generations.select_sources,
        after=cursor or "",
        user_id=user_id,
        limit=check_limit(limit) + 1,
    )
    return page_of(found, limit, lambda source: source.id)


async def get_source(database: Database, source_id: str, *, owner: UUID | None = None) -> Source:
    """A source, or its only version: `flask` stands for `flask@2.2`.

    One of another owner than the given one is not found.
    """
    async with database.connection() as connection:
        named = await generations.select_sources_named(connection, source_id)
        seen = [each for each in named if owner is None or each.user_id == owner]
        found = [each for each in seen if each.id == source_id] or seen
        if not found:
            raise await missing_source(connection, source_id, owner)
    if len(found) > 1:
        raise InvalidInput(
            f"source {source_id} has several versions: {', '.join(each.id for each in found)}",
            hint="Name one of them.",
        )
    return found[0]


async def get_other_source(
    database: Database, source: Source, name: str, *, owner: UUID | None = None
) -> Source:
    """A source by its name, or the newest of the versions of a source in a range: `3.12`, `3.x`."""
    try:
        found = await get_source(database, name, owner=owner)
    except NotFound:
        named = await database.run(generations.select_sources_named, base_name(source.id))
        seen = {each.id: each for each in named if owner is None or each.user_id == owner}
        others = [each for each in seen if version_of(each) and each != source.id]
        if not others or version_of(name) is not None:
            raise
        newest = max(select_versions(others, name), key=lambda each: version_key(version_of(each)))
        return seen[newest]
    if found.id == source.id:
        raise InvalidInput(
            f"{name} is {source.id} itself",
            hint="Name another version or source, or the numbers of two generations without one.",
        )
    return found


async def list_generations(
    database: Database, source_id: str, *, cursor: str | None = None, limit: int = 100
) -> Page[Generation]:
    """Generations of a source, newest first; the cursor is the last number."""
    before = decode_number(cursor)
    async with database.connection() as connection:
        await existing_source(connection, source_id)
        found = await generations.select_generations(
            connection, source_id, before=before, limit=check_limit(limit) + 1
        )
    return page_of(found, limit, lambda generation: generation.number)


async def get_generation(database: Database, source_id: str, number: int) -> Generation:
    """A generation of a source by its number; raises NotFound."""
    found = await database.run(generations.select_generation, source_id, number)
    if found is None:
        raise no_such_generation(source_id, number)
    return found


async def list_held_back(
    database: Database, *, user_id: UUID | None = None, limit: int = 20
) -> list[Generation]:
    """Newest generations that the quality gate held back, or that were completed too late."""
    return await database.run(
        generations.select_held_back, user_id=user_id, limit=check_limit(limit)
    )


async def generations_of_jobs(
    database: Database, job_ids: Sequence[UUID]
) -> dict[UUID, Generation]:
    """The generations that these jobs have built or are building, by job."""
    return await database.run(generations.select_generations_of_jobs, job_ids)


async def refresh(
    database: Database, queue: Queue, source_id: str, *, actor: str = "user"
) -> Enqueued:
    """Crawl a source again as it was crawled last, or return the job that is doing so."""
    return await enqueue_refresh(queue, await get_source(database, source_id), actor=actor)


async def enqueue_refresh(queue: Queue, source: Source, *, actor: str) -> Enqueued:
    """Add a crawl with the options of the last one; an active crawl is the answer."""
    return await queue.enqueue(_refresh_of(source), actor=actor)


async def enqueue_refreshes(
    queue: Queue, sources: Sequence[Source], *, actor: str
) -> list[Enqueued]:
    """Crawl many sources again as they were crawled last, in one statement."""
    return await queue.enqueue_each(list(map(_refresh_of, sources)), actor=actor)


def _refresh_of(source: Source) -> NewJob:
    return NewJob(
        kind=source.kind, payload=source.payload, source_id=source.id, user_id=source.user_id
    )


async def versions_of(database: Database, source_id: str) -> list[str]:
    """The names that a name stands for: itself and its versions (`flask` and `flask@2.2`)."""
    found = await database.run(generations.select_sources_named, source_id)
    return [source_id, *(each.id for each in found if each.id != source_id)]


async def find_sources(database: Database, source_ids: Sequence[str]) -> dict[str, Source]:
    """Those of these sources that exist, by id."""
    found = await database.run(generations.select_sources_by_id, source_ids)
    return {source.id: source for source in found}


async def declare_sources(
    database: Database, declared: Sequence[SourceDeclaration]
) -> dict[str, Source]:
    """Create sources, or set the options and the schedules of their next crawls."""
    async with database.transaction() as connection:
        now = await select_now(connection)
        await publishing.declare_sources(connection, declared, now)
        found = await generations.select_sources_by_id(connection, [each.id for each in declared])
    return {source.id: source for source in found}


async def set_schedule(database: Database, source_id: str, schedule: Schedule) -> Source:
    """Refresh a source by a schedule; an empty one ends it."""
    async with database.transaction() as connection:
        await locked_source(connection, source_id)
        now = await select_now(connection)
        await publishing.set_schedule(connection, source_id, schedule, schedule.after(now))
        return await existing_source(connection, source_id)


async def set_limits(
    database: Database,
    source_id: str,
    *,
    keep: int | None = None,
    max_shrink: float | None = None,
    max_failed: float | None = None,
) -> Source:
    """Set how many generations are kept, and the gate; None leaves a limit unchanged."""
    if keep is not None and not 1 <= keep <= MAX_KEPT:
        raise InvalidInput(f"from 1 to {MAX_KEPT} generations can be kept, not {keep}")
    if any(share is not None and not 0 <= share <= 1 for share in (max_shrink, max_failed)):
        raise InvalidInput("a share is a number from 0 to 1")
    async with database.transaction() as connection:
        await publishing.set_limits(
            connection, source_id, keep=keep, max_shrink=max_shrink, max_failed=max_failed
        )
        return await existing_source(connection, source_id)


async def merge_options(connection: Connection, source_id: str, options: dict[str, Any]) -> None:
    """Replace some options of the refreshes of a source, inside the caller's transaction."""
    await publishing.merge_payload(connection, source_id, options)


async def delete_source(database: Database, source_id: str) -> None:
    """Hide a source from readers at once. Its pages are deleted in the background."""
    async with database.transaction() as connection:
        source = await locked_source(connection, source_id)
        if source.active_job is not None:
            active = f"{source.activity}: job {source.active_job}"
            raise NotAllowed(
                f"source {source_id} has an active crawl ({active})",
                hint=Hint("Cancel that job first: {}", action("jobs cancel", source.active_job)),
            )
        await removal.hide_source(connection, source_id)
        await removal.abandon_all(connection, source_id)


log = get_logger("refresh")

INTERVAL = 15.0
AT_ONCE = 100
# seconds; capacity may be free earlier than announced, and a check costs little
POSTPONED = (60, 1800)
# for a source that cannot be refreshed because of an error in its row
FAULT_DELAY = timedelta(hours=1)

# the function checks whether the owner may start the refresh
Start = Callable[[Database, Settings, Source], Awaitable[Enqueued]]


class Refresher:
    """Enqueues due refreshes. Several processes may run one: a refresh is enqueued once."""

    def __init__(self, database: Database, settings: Settings, start: Start) -> None:
        self._database = database
        self._settings = settings
        self._start = start

    def service(self) -> Service:
        return Service(name="source refresh", every=INTERVAL, step=self.run_once, chunk=AT_ONCE)

    async def run_once(self) -> int:
        """Enqueue due refreshes; return their number."""
        async with self._database.connection() as connection:
            now = await select_now(connection)
            due = await publishing.select_due(connection, AT_ONCE)
        created = 0
        for source_id, since in due:
            with isolated(f"source {source_id}"):
                created += await self._refresh_or_postpone(source_id, since, now)
        return created

    async def _refresh_or_postpone(self, source_id: str, since: datetime, now: datetime) -> bool:
        """Postpone a source that fails, so that it cannot starve the others."""
        try:
            return await self._refresh(source_id, since, now)
        except UNAVAILABLE:
            raise
        except Exception:
            await self._database.run(publishing.advance, source_id, since, now + FAULT_DELAY)
            raise

    async def _refresh(self, source_id: str, since: datetime, now: datetime) -> bool:
        """Enqueue a refresh and advance its schedule; return whether a job was created."""
        try:
            source = await self._database.run(existing_source, source_id)
        except NotFound:
            return False  # deleted meanwhile
        following = Schedule(source.refresh_every, source.refresh_cron).after(now)
        created = False
        try:
            # Enqueued first: if this process dies in between, the next run finds the job.
            created = await self._enqueue(source)
        except TooManyRequests as lack:
            following = _postponed(source, now, lack)
        await self._database.run(publishing.advance, source_id, since, following)
        return created

    async def _enqueue(self, source: Source) -> bool:
        try:
            return (await self._start(self._database, self._settings, source)).created
        except TooManyRequests:
            raise
        except (InvalidInput, NotAllowed) as error:
            # its options are no longer valid: the others must not wait until it is fixed
            log.error("cannot be refreshed", source=source.id, reason=error.message)
            return False


def _postponed(source: Source, now: datetime, lack: TooManyRequests) -> datetime:
    least, most = POSTPONED
    wait = timedelta(seconds=min(max(least, lack.retry_after), most))
    log.warning("a refresh is put off", source=source.id, until=now + wait, reason=lack.message)
    return now + wait
