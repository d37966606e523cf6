"""The services that endpoints call, put together for one request, and answers kept briefly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request

from forager.access.caller import Caller, Scope
from forager.api.limits import Slots
from forager.crawl.admission import RetriedUrls, move_job, preview, retry_failed
from forager.crawl.options import CrawlOptions
from forager.crawl.preview import CrawlPreview
from forager.db.database import Connection, Database
from forager.db.outages import InTransaction
from forager.documents.generation import Source
from forager.documents.publication import no_such_source
from forager.documents.search.embedding import Embedder, embedder_of
from forager.documents.sources import get_source
from forager.errors import NotAllowed, NotFound
from forager.fetch.domains.service import Domains
from forager.fetch.proxies.service import Proxies
from forager.hints import Hint, action
from forager.index.engine import Engine
from forager.jobs.job import Job, Move
from forager.jobs.queue import Queue
from forager.parsers.backtest import Backtest, backtest
from forager.products.audit import Audit, audit_catalog
from forager.products.service import Stats, product_stats
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.service import Tasks, TaskStats
from forager.webhooks.service import Webhooks

# answers that are cheaper than this are computed each time
CHEAP = 0.2
# how long an answer is kept, as a multiple of the time it took
REST = 10
LONGEST = 10.0
MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class Remembrance:
    """An answer, and when it was computed; None if it was computed for this request."""

    answer: Any
    at: datetime | None


@dataclass(slots=True)
class Remembered:
    """Nothing is kept of a small database. Of a large one, nothing is made twice at a time."""

    _kept: dict[object, tuple[float, Remembrance]] = field(default_factory=dict)
    _making: dict[object, asyncio.Task[Remembrance]] = field(default_factory=dict)

    async def get(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        return (await self.look(key, make)).answer

    async def look(self, key: object, make: Callable[[], Awaitable[Any]]) -> Remembrance:
        """The answer and its age; while a new one is computed, the one before."""
        now = time.monotonic()
        until, kept = self._kept.get(key, (0.0, None))
        if kept and (now < until or (key in self._making and now < until + LONGEST)):
            return kept
        if key not in self._making:
            self._begin(key, make)
        # who asked first may go away; the others still wait for it
        return await asyncio.shield(self._making[key])

    def _begin(self, key: object, make: Callable[[], Awaitable[Any]]) -> None:
        def end(made: asyncio.Task[Remembrance]) -> None:
            del self._making[key]
            if not made.cancelled():
                made.exception()  # waiting requests raise it; without any it may be ignored

        self._making[key] = asyncio.create_task(self._make(key, make), name=f"making {key}")
        self._making[key].add_done_callback(end)

    async def _make(self, key: object, make: Callable[[], Awaitable[Any]]) -> Remembrance:
        began, at = time.monotonic(), datetime.now(UTC)
        answer = await make()
        now = time.monotonic()
        if now - began < CHEAP:
            self._kept.pop(key, None)
            return Remembrance(answer, None)
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        kept = Remembrance(answer, at)
        self._kept[key] = (now + min(LONGEST, REST * (now - began)), kept)
        return kept


BACKTESTS = Slots(1, "a backtest")
BACKTEST_SECONDS = 60.0
AUDITS = Slots(1, "an audit")
PREVIEWS = Slots(2, "a preview")
AUDIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Services:
    """The database and everything that stands on it."""

    database: Database
    settings: Settings
    remembered: Remembered = field(default_factory=Remembered)
    engine: Engine | None = None

    @property
    def embedder(self) -> Embedder | None:
        return embedder_of(self.settings)

    @property
    def queue(self) -> Queue:
        return Queue(self.database, self.settings)

    @property
    def domains(self) -> Domains:
        return Domains(self.database)

    @property
    def vault(self) -> Vault:
        return Vault(self.settings)

    @property
    def proxies(self) -> Proxies:
        return Proxies(self.database, self.vault)

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.database, self.settings)

    @property
    def holds(self) -> Holds:
        return Holds(self.database)

    @property
    def webhooks(self) -> Webhooks:
        return Webhooks(self.database, self.vault)

    def within(self, connection: Connection) -> Services:
        """The same services, all inside the transaction of this connection."""
        return replace(self, database=InTransaction(self.database, connection))

    # --- what costs much with many rows is counted now and then ----------------------------------

    async def task_stats(self) -> TaskStats:
        counted: TaskStats = await self.remembered.get("task stats", self.tasks.stats)
        return await self.tasks.stats_now(counted)

    async def product_stats(self) -> Stats:
        async def count() -> Stats:
            return await product_stats(self.database)

        found: Stats = await self.remembered.get("product stats", count)
        return found

    # --- what is heavy is done one at a time, and not for ever ----------------------------------

    async def backtest(self, name: str, **how: Any) -> Backtest:
        """Compare two versions of a parser over archived pages, within a minute."""
        with BACKTESTS.taken():
            try:
                async with asyncio.timeout(BACKTEST_SECONDS):
                    return await backtest(self.database, self.settings, name, **how)
            except TimeoutError:
                raise NotAllowed(
                    f"the backtest took longer than {BACKTEST_SECONDS:g} s",
                    hint="Give a smaller limit or a domain.",
                ) from None

    async def audit(self) -> Audit:
        """Look for what contradicts itself or grows old, within minutes."""
        with AUDITS.taken():
            try:
                async with asyncio.timeout(AUDIT_SECONDS):
                    return await audit_catalog(self.database, self.settings)
            except TimeoutError:
                raise NotAllowed(
                    f"the audit took longer than {AUDIT_SECONDS:g} s",
                    hint="On the machine itself, an audit waits for as long as it takes; workers"
                    " make one every day.",
                ) from None

    # --- objects of other owners are treated as if they did not exist --------------------------

    async def job_of(self, caller: Caller, job_id: UUID) -> Job:
        return only_own(caller, await self.queue.get(job_id))

    async def source_of(self, caller: Caller, source_id: str) -> Source:
        source = await get_source(self.database, source_id)
        if not caller.sees(source.user_id):
            raise no_such_source(source_id)
        return source

    async def move_job(
        self, caller: Caller, job_id: UUID, move: Move, reason: str | None = None
    ) -> Job:
        """Pause, resume, cancel or retry a job that the caller sees."""
        await self.job_of(caller, job_id)
        return await move_job(self.database, self.settings, caller, job_id, move, reason)

    async def preview(self, caller: Caller, options: CrawlOptions) -> CrawlPreview:
        """What a crawl would fetch first; starts nothing."""
        with PREVIEWS.taken():
            return await preview(self.database, self.settings, caller, options)

    async def retry_failed(
        self, caller: Caller, job_id: UUID, reasons: Sequence[str] = ()
    ) -> RetriedUrls:
        """Let a finished job that the caller sees fetch failed URLs again."""
        await self.job_of(caller, job_id)
        return await retry_failed(self.database, self.settings, caller, job_id, reasons)


def only_own(caller: Caller, job: Job) -> Job:
    """The job, if the caller may see it; otherwise as if it were not there."""
    if not caller.sees(job.user_id):
        raise NotFound(
            f"there is no job {job.id}", hint=Hint("{} lists jobs.", action("jobs list"))
        )
    return job


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


class Needs:
    """A dependency: the caller, if the key is good enough."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        caller: Caller = request.state.caller
        caller.require(self.scope)
        return caller


Here = Annotated[Services, Depends(_services)]
Reader = Annotated[Caller, Depends(Needs(Scope.READ))]
Operator = Annotated[Caller, Depends(Needs(Scope.OPERATE))]
Admin = Annotated[Caller, Depends(Needs(Scope.ADMIN))]
