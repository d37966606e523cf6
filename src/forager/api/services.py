"""The services that endpoints call, and a cache of expensive answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from pydantic import WithJsonSchema

from forager.access.caller import STRANGER, Caller, Scope
from forager.api.actions import as_call
from forager.archive.options import archive_options
from forager.checks import Report, Topic, checks_in, run_checks
from forager.crawl.explain.explanation import Explanation, explain
from forager.db.database import Connection, Database
from forager.db.transactions import InTransaction
from forager.documents import checks
from forager.documents.generation import Source
from forager.documents.search.embedding import Embedder, embedder_of
from forager.documents.sources import get_source
from forager.errors import NotAllowed
from forager.fetch.domains.service import Domains
from forager.fetch.proxies.service import Proxies
from forager.index.engine import SearchEngine
from forager.jobs.job import Job
from forager.jobs.queue import Queue
from forager.operations.models import PlainText
from forager.operations.operation import Context
from forager.operations.slots import Slots
from forager.parsers.backtest import Backtest, backtest
from forager.products.audit import audit_catalog
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.rereading import ArchiveReread, reread_archive
from forager.tasks.service import Tasks, TaskStats
from forager.webhooks.service import Webhooks

Answer = TypeVar("Answer")

# answers that take less time are computed for each request
CHEAP = 0.2
# how long an answer is kept, as a multiple of the time it took
KEPT_FACTOR = 10
LONGEST = 10.0
MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer, and when it was computed; None if it was computed for this request."""

    answer: Any
    at: datetime | None


@dataclass(slots=True)
class AnswerCache:
    """Caches answers that take long to compute, and computes none twice at the same time."""

    _kept: dict[object, tuple[float, CachedAnswer]] = field(default_factory=dict)
    _making: dict[object, asyncio.Task[CachedAnswer]] = field(default_factory=dict)

    async def get(self, key: object, make: Callable[[], Awaitable[Any]]) -> Any:
        """The answer for a key, computed if it is not known or too old."""
        return (await self.look(key, make)).answer

    async def look(self, key: object, make: Callable[[], Awaitable[Any]]) -> CachedAnswer:
        """The answer and its age; while a new one is computed, the one before."""
        now = time.monotonic()
        until, kept = self._kept.get(key, (0.0, None))
        if kept and (now < until or (key in self._making and now < until + LONGEST)):
            return kept
        if key not in self._making:
            self._begin(key, make)
        # the first client may disconnect; the others still wait for the answer
        return await asyncio.shield(self._making[key])

    def _begin(self, key: object, make: Callable[[], Awaitable[Any]]) -> None:
        def end(made: asyncio.Task[CachedAnswer]) -> None:
            del self._making[key]
            if not made.cancelled():
                made.exception()  # waiting requests raise it; without any it may be ignored

        self._making[key] = asyncio.create_task(self._make(key, make), name=f"making {key}")
        self._making[key].add_done_callback(end)

    async def _make(self, key: object, make: Callable[[], Awaitable[Any]]) -> CachedAnswer:
        began, at = time.monotonic(), datetime.now(UTC)
        answer = await make()
        now = time.monotonic()
        if now - began < CHEAP:
            self._kept.pop(key, None)
            return CachedAnswer(answer, None)
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        kept = CachedAnswer(answer, at)
        self._kept[key] = (now + min(LONGEST, KEPT_FACTOR * (now - began)), kept)
        return kept


BACKTESTS = Slots(1, "a backtest")
BACKTEST_SECONDS = 60.0
AUDITS = Slots(1, "an audit")
AUDIT_SECONDS = 300.0
SOURCE_CHECKS = Slots(1, "a check of a source")
SOURCE_CHECK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Services:
    """The database and all services on it, as the caller of a request may use them.

    Objects of other owners are treated as if they did not exist.
    """

    database: Database
    settings: Settings
    caller: Caller = STRANGER
    cache: AnswerCache = field(default_factory=AnswerCache)
    engine: SearchEngine | None = None
    # the header Accept-Language
    language: str | None = None

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

    @property
    def context(self) -> Context:
        """What operations run with, on behalf of the caller."""
        return Context(
            self.database,
            self.settings,
            owner=self.caller.sees_only,
            actor=self.caller.actor,
            caller=self.caller,
            engine=self.engine,
            language=self.language,
            show=as_call,
            cached=self.cache.get,
        )

    def within(self, connection: Connection) -> Services:
        """The same services, all inside the transaction of this connection."""
        return replace(self, database=InTransaction(self.database, connection))

    async def task_stats(self) -> TaskStats:
        counted: TaskStats = await self.cache.get("task stats", self.tasks.stats)
        return await self.tasks.stats_now(counted)

    async def backtest(self, name: str, **how: Any) -> Backtest:
        """Compare two versions of a parser over archived pages."""
        work = backtest(self.database, self.settings, name, **how)
        hint = "Give a smaller limit or a domain."
        return await _limited(BACKTESTS, BACKTEST_SECONDS, work, "backtest", hint)

    async def reread(self, name: str, **how: Any) -> ArchiveReread:
        """Read the archived pages of a parser again; each product is corrected on its own."""
        work = reread_archive(self.database, self.settings, name, **how)
        hint = "Give a domain; `forager parsers apply` has no time limit."
        return await _limited(BACKTESTS, BACKTEST_SECONDS, work, "rereading", hint)

    async def audit(self) -> Report:
        """Check the catalog for contradictory or stale data."""
        hint = (
            "On the server, `forager products audit` has no time limit; workers run an audit every"
            " day."
        )
        work = audit_catalog(self.database, self.settings)
        return await _limited(AUDITS, AUDIT_SECONDS, work, "audit", hint)

    async def check_source(self, source: Source) -> Report:
        """Extract the published pages of a source again to find content that was lost."""
        hint = f"`forager sources check {source.id}` has no time limit."
        storage = archive_options(self.settings).open()
        work = checks.read_source(self.database, storage, source.id)
        pages = await _limited(SOURCE_CHECKS, SOURCE_CHECK_SECONDS, work, "check", hint)
        return await run_checks(checks_in(checks, topic=Topic.SOURCES), pages)

    async def find_job(self, text: str) -> Job:
        """A job by its ID, or by the beginning of it as long as that is unique."""
        found = await self.queue.resolve(text, user_id=self.caller.sees_only)
        return await self.queue.get(found)

    async def get_source(self, source_id: str) -> Source:
        """A source that the caller sees; raises NotFound."""
        return await get_source(self.database, source_id, owner=self.caller.sees_only)

    async def explain(self, url: str, job: str | None) -> Explanation:
        """The outcome of a URL in a job, or in the latest that the caller sees."""
        job_id = None if job is None else (await self.find_job(job)).id
        owner = self.caller.sees_only
        return await explain(self.database, self.queue, url, job_id=job_id, user_id=owner)


async def _limited(
    slots: Slots, seconds: float, work: Coroutine[Any, Any, Answer], name: str, hint: str
) -> Answer:
    try:
        with slots.taken():
            async with asyncio.timeout(seconds):
                return await work
    except TimeoutError:
        message = f"the {name} took longer than {seconds:g} s"
        raise NotAllowed(message, hint=hint) from None
    finally:
        work.close()


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _needs(scope: Scope) -> Any:
    async def services(request: Request) -> Services:
        caller: Caller = request.state.caller
        caller.require(scope)
        language = request.headers.get("Accept-Language")
        return replace(await _services(request), caller=caller, language=language)

    return Depends(services)


SharedServices = Annotated[Services, Depends(_services)]
ReaderServices = Annotated[Services, _needs(Scope.READ)]
OperatorServices = Annotated[Services, _needs(Scope.OPERATE)]
AdminServices = Annotated[Services, _needs(Scope.ADMIN)]

SourceId = Annotated[
    PlainText,
    Path(
        min_length=1,
        max_length=500,
        description="Name of the source.",
        examples=["docs.example.org"],
    ),
]
JobId = Annotated[
    PlainText,
    Path(description="ID of the job, or its beginning as long as that is unique."),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
