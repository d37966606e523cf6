"""What endpoints call: the services, put together for one request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request

from forager.access.caller import Caller, Scope
from forager.api.remembered import Remembered
from forager.api.slots import Slots
from forager.crawl.admission import move_job
from forager.db.database import Connection, Database
from forager.db.patience import Within
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

BACKTESTS = Slots(1, "a backtest")
BACKTEST_SECONDS = 60.0
AUDITS = Slots(1, "an audit")
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
        return replace(self, database=Within(self.database, connection))

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

    # --- what belongs to somebody else is as if it were not there -----------------------------

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
