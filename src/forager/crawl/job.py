"""The crawl as a job: builds the parts of a crawl from its options, and runs the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from uuid import UUID

from forager.archive import store as archive_store
from forager.archive.options import archive_options
from forager.archive.segment import job_owner
from forager.archive.writer import ArchiveWriter
from forager.crawl.activity import Activity
from forager.crawl.batch import Committer
from forager.crawl.ending import Ending
from forager.crawl.engine import FINISHED, Engine
from forager.crawl.extraction.pool import ExtractionPool
from forager.crawl.extraction.rereading import BoilerplateLearner, Rereading
from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.scope import Scope, ScopeMode
from forager.crawl.frontier.seeding import Seeding, first_urls, scope_of
from forager.crawl.frontier.window import START, Window
from forager.crawl.judge import Judge
from forager.crawl.ledger import NEAR_DUPLICATE, REMARKS, CrawlState, state_from
from forager.crawl.options import POOL, CrawlOptions, crawl_options
from forager.crawl.pages import CarryOver, Pages
from forager.crawl.rendering import open_rendering
from forager.crawl.service import default_source, open_options, seal_options
from forager.crawl.store import state as state_rows
from forager.crawl.store import visited as visited_rows
from forager.crawl.visitor import Visitor
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.writer import GenerationWriter
from forager.errors import DatabaseUnavailable, DiskFull, GiveUp, InvalidInput, LeaseLost
from forager.extract.document import EXTRACTOR_VERSION
from forager.extract.hosts import host_of
from forager.extract.urls import NormalisedUrl
from forager.fetch.budgets.budget import Budgets
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.record import ProxySpec
from forager.fetch.proxies.service import ProxyPool, proxy_guard
from forager.fetch.response import agent_header
from forager.fetch.robots.gate import RobotsGate
from forager.fetch.robots.rules import product_token
from forager.fetch.sender import Sender
from forager.jobs.context import JobContext
from forager.jobs.kinds import Completed, Outcome, Stopped, Waiting
from forager.processes.sandbox import SandboxLimits
from forager.secrets import Vault
from forager.settings import Settings


async def crawl(context: JobContext) -> Outcome:
    """Run a crawl from its last commit, and record the error that ends the run, if one does."""
    try:
        if (busy := await adopt(context)) is not None:
            return busy
        async with AsyncExitStack() as stack:
            parts = await _put_together(context, stack)
            async with parts.activity.reported():
                outcome = await parts.run()
            await parts.activity.leave(outcome)
            return outcome
    except (LeaseLost, DatabaseUnavailable, DiskFull):
        raise  # the run is resumed, or another one has taken over
    except Exception as error:
        from forager.tasks.causes import cause_of
        from forager.tasks.store.errors import insert_job_error

        with suppress(DatabaseUnavailable, DiskFull):
            await context.database.run(insert_job_error, context.job.id, cause_of(error), None)
        raise


@dataclass(frozen=True, slots=True)
class _Crawl:
    """The parts of a crawl, put together."""

    committer: Committer
    visitor: Visitor
    ending: Ending
    learner: BoilerplateLearner
    seeding: Seeding
    activity: Activity

    async def run(self) -> Outcome:
        state, stopping = self.committer.state, self.committer.context.stopping
        await self._remember()
        deferred = await self._seed()
        if stopping.is_set():
            return Stopped()
        if deferred is not None and not state.ledger.discovered:
            return deferred
        outcome = await self._fetch()
        if outcome is FINISHED and deferred is not None:
            # the pages of hosts whose sitemaps had to wait are here: now or never
            await self._seed(last=True)
            outcome = await self._fetch()
        if isinstance(outcome, Completed):
            await self._complete()
            return replace(outcome, finish=self.committer.pages.publish)
        return outcome

    async def _remember(self) -> None:
        """Load known URLs and fetched contents from the tables."""
        committer = self.committer
        if not (discovered := committer.state.ledger.discovered):
            return
        committer.discovery.reserve(discovered)
        async for chunk in _known(committer.context.database, committer.context.lease.job_id):
            for key, url, reason, content in chunk:
                committer.discovery.remember(key, url, reason)
                if content is not None:
                    self.visitor.remember_content(content)

    async def _seed(self, *, last: bool = False) -> Waiting | None:
        """Find the first URLs; a sitemap that hangs does not delay a stop."""
        seeding = asyncio.ensure_future(self.seeding.run(last=last))
        stopping = asyncio.ensure_future(self.committer.context.stopping.wait())
        try:
            await asyncio.wait({seeding, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return seeding.result() if seeding.done() else None
        finally:
            stopping.cancel()
            seeding.cancel()
            await asyncio.gather(seeding, return_exceptions=True)

    async def _fetch(self) -> Outcome:
        context = self.committer.context
        window = Window(context.database, context.lease.job_id)
        engine = Engine(self.committer, window, self.visitor, self.ending, self.learner)
        self.activity.idle_wait = engine.wait
        return await engine.run()

    async def _complete(self) -> None:
        """Compute what needs all pages of the generation."""
        near = await self.committer.pages.complete()
        self.committer.state.ledger.note_total(REMARKS, NEAR_DUPLICATE, near)
        async with self.committer.context.commit() as connection:
            await self.committer.write_state(connection)


async def _put_together(context: JobContext, stack: AsyncExitStack) -> _Crawl:
    options = open_options(crawl_options(context.job.payload), Vault(context.settings))
    agent = agent_header(context.settings, options.user_agent)
    state = await _load_state(context)
    more_seeds = tuple(NormalisedUrl(url) for url in state.more_seeds)
    seeds = (*first_urls(options), *more_seeds)
    scope = scope_of(options, more_seeds)
    discovery = Discovery(scope, state.ledger, next_seq=state.next_seq)
    client, proxies = await _client(context, stack, options, agent)
    budgets = await stack.enter_async_context(
        Budgets(
            context.database,
            holder=new_id(),
            delay=options.delay,
            concurrency=options.concurrency,
        )
    )
    sender = Sender(client, budgets, proxies)
    robots = RobotsGate(context.database, sender, user_agent=agent, ignore=options.ignore_robots)
    writer = (
        await GenerationWriter.open(context, base_url=seeds[0], extractor_version=EXTRACTOR_VERSION)
        if options.documents
        else None
    )
    pool = await stack.enter_async_context(
        ExtractionPool(
            SandboxLimits.of_pages(context.settings),
            seeds=seeds,
            scope=options.scope,
            agent=product_token(agent),
            documents=options.documents,
            products=options.products,
            parser_modules=context.settings.parser_modules,
            repeated=None if writer is None else writer.repeated,
        )
    )
    archive = _archive_writer(context, agent)
    stack.push_async_callback(archive.close)
    judge = Judge(options, scope)
    pages = Pages(writer, scope)
    storage = archive_options(context.settings).open()
    rereading = Rereading(context.database, storage, pool, pages)
    committer = Committer(context, options, state, discovery, archive, pages, pool.add_seed)
    rendering = await open_rendering(context, stack, options, robots=robots, user_agent=agent)
    visitor = Visitor(
        context,
        judge,
        sender,
        robots,
        pool,
        pages,
        rendering,
        CarryOver(pages, options, context.settings),
    )
    return _Crawl(
        committer,
        visitor,
        Ending(context, options, state, committer, rereading),
        BoilerplateLearner(context, storage, pool, writer),
        Seeding(context, options, state, discovery, committer, robots),
        Activity(context, state, budgets, robots),
    )


async def _client(
    context: JobContext, stack: AsyncExitStack, options: CrawlOptions, agent: str
) -> tuple[Client, ProxyPool | None]:
    """The client of a crawl, and the pool of proxies if the crawl wants to use it."""
    plain = client_options(options, agent)
    if options.proxy != POOL:
        return await stack.enter_async_context(Client(plain)), None
    guard = await proxy_guard(context.database)
    settings = context.settings
    proxies = ProxyPool(context.database, Vault(settings), guard, region=settings.region)
    await stack.enter_async_context(proxies)
    client = Client(replace(plain, proxy_guard=guard))
    return await stack.enter_async_context(client), proxies


async def _load_state(context: JobContext) -> CrawlState:
    row = await context.database.run(state_rows.select_state, context.lease.job_id)
    if row is not None:
        return state_from(row)
    async with context.commit() as connection:
        await state_rows.insert_state(connection, context.lease.job_id)
    return CrawlState()


async def _known(database: Database, job_id: UUID) -> AsyncIterator[list[visited_rows.Known]]:
    """All known URLs of a crawl, in chunks, so that no connection is held for long."""
    key = b""
    while True:
        visited = await database.run(visited_rows.select_known_visited, job_id, after=key)
        if not visited:
            break
        yield visited
        key = visited[-1][0]
    place = START
    while True:
        pending, place = await database.run(visited_rows.select_known_frontier, job_id, after=place)
        if not pending:
            break
        yield pending


def client_options(options: CrawlOptions, agent: str) -> ClientOptions:
    return ClientOptions(
        user_agent=agent,
        guard=GuardPolicy(allow_private=options.allow_private),
        headers=options.headers,
        trusts=_trusts(options),
        proxy=ProxySpec.parse(options.proxy) if options.proxy not in (None, POOL) else None,
        pool=PoolSize(total=max(100, 2 * (options.concurrency or 0))),
    )


@asynccontextmanager
async def open_gate(
    database: Database, settings: Settings, options: CrawlOptions, *, ignore_robots: bool = False
) -> AsyncIterator[RobotsGate]:
    """Requests outside of a crawl, within the budgets of their hosts, and robots.txt."""
    agent = agent_header(settings, options.user_agent)
    async with (
        Client(client_options(options, agent)) as client,
        Budgets(
            database, holder=new_id(), delay=options.delay, concurrency=options.concurrency
        ) as budgets,
    ):
        sender = Sender(client, budgets)
        yield RobotsGate(database, sender, user_agent=agent, ignore=ignore_robots)


def _trusts(options: CrawlOptions) -> Callable[[str], bool]:
    """Limit custom headers to the sites of the seeds, excluding sites they redirect to.

    Nor for the same names without encryption, unless they were asked for like that.
    """
    mode = ScopeMode.DOMAIN if options.scope is ScopeMode.DOMAIN else ScopeMode.HOST
    scope = Scope(options.seeds, mode)
    schemes = ("http:", "https:") if any(s.startswith("http:") for s in options.seeds) else "https:"
    return lambda url: url.startswith(schemes) and scope.outside(url) is None


def _archive_writer(context: JobContext, agent: str) -> ArchiveWriter:
    options = archive_options(context.settings)
    job_id = context.lease.job_id
    return ArchiveWriter(
        options.open(),
        owner=job_owner(job_id),
        lease=context.lease.number,
        register=lambda name: context.database.run(archive_store.register_segment, name, job_id),
        info={"http-header-user-agent": agent},
        segment_limit=options.segment_bytes,
    )


# how long a job waits for the active job of its source
BUSY_DELAY = 60.0


async def adopt(context: JobContext) -> Waiting | None:
    """Check the payload, seal its secrets and assign the source; wait if the source is busy."""
    job = context.job
    if job.source_id is not None:
        return None
    try:
        options = crawl_options(job.payload)
    except InvalidInput as error:
        raise GiveUp(f"the payload is not valid: {error.message}") from None
    source = default_source(options)
    payload = seal_options(options, Vault(context.settings)).model_dump(
        mode="json", exclude_defaults=True
    )
    if not await context.assign_source(source, host=host_of(options.seeds[0]), payload=payload):
        return Waiting(BUSY_DELAY, f"source {source} has another active job")
    context.job = replace(job, source_id=source, payload=payload)
    return None
