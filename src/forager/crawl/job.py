"""The crawl as a job: builds the parts of a crawl from its options, and runs the engine."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from forager.archive.options import archive_options
from forager.archive.segment import job_owner
from forager.archive.writer import ArchiveWriter
from forager.crawl.batch import Committer
from forager.crawl.engine import FINISHED, Engine
from forager.crawl.extraction.pool import ExtractionPool
from forager.crawl.extraction.rereading import BoilerplateLearner, Rereading
from forager.crawl.finalization import Finalization
from forager.crawl.frontier.discovery import Discovery
from forager.crawl.frontier.known import KnownUrls
from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.frontier.seeding import Seeding, first_urls, scope_of
from forager.crawl.frontier.window import Window
from forager.crawl.ledger import NEAR_DUPLICATE, REMARKS, CrawlState, state_from
from forager.crawl.options import crawl_options
from forager.crawl.pages import CarryOver, Pages
from forager.crawl.reports.activity import Activity, ActivityReports
from forager.crawl.service import decrypt_secrets, default_source, encrypt_secrets
from forager.crawl.store import state as state_rows
from forager.crawl.visit.content_filter import ContentFilter
from forager.crawl.visit.gate import join_gate
from forager.crawl.visit.logins import LoginWatch
from forager.crawl.visit.markdown import MarkdownFirst
from forager.crawl.visit.outcomes import OutcomeRules
from forager.crawl.visit.rendering import open_rendering
from forager.crawl.visit.visitor import Visitor
from forager.db.database import Connection
from forager.documents.publication import abandon_building
from forager.documents.writer import GenerationWriter
from forager.errors import DatabaseUnavailable, DiskFull, GiveUp, InvalidInput, LeaseLost
from forager.extract.document import EXTRACTOR_VERSION
from forager.extract.hosts import host_of
from forager.extract.urls import NormalizedUrl
from forager.fetch.response import agent_header
from forager.fetch.robots.rules import product_token
from forager.jobs.context import JobContext
from forager.jobs.kinds import Completed, Outcome, Stopped, Waiting
from forager.processes.sandbox import SandboxLimits
from forager.secrets import Vault
from forager.settings import Settings
from forager.settings.crawling import MarkdownMode


async def crawl(context: JobContext) -> Outcome:
    """Run a crawl from its last commit, and record the error that ends the run, if one does."""
    try:
        if (busy := await prepare_job(context)) is not None:
            return busy
        async with AsyncExitStack() as stack:
            parts = await _put_together(context, stack)
            context.on_failure = parts.activity.leave
            reports = await context.shared.get(
                "activity", lambda: ActivityReports(context.database)
            )
            async with reports.reported(parts.activity):
                outcome = await parts.run()
            await parts.activity.leave(outcome)
            return outcome
    except (LeaseLost, DatabaseUnavailable, DiskFull):
        raise  # the run is resumed, or another one has taken over
    except Exception as error:
        from forager.failures.service import record_job_error

        with suppress(DatabaseUnavailable, DiskFull):
            await record_job_error(context.database, context.job.id, error)
        raise


@dataclass(frozen=True, slots=True)
class _Crawl:
    """The parts of a crawl, put together."""

    committer: Committer
    visitor: Visitor
    finalization: Finalization
    learner: BoilerplateLearner
    seeding: Seeding
    activity: Activity
    known: KnownUrls

    async def run(self) -> Outcome:
        state = self.committer.state
        async with self.known.loading(state.ledger.discovered):
            return await self._run()

    async def _run(self) -> Outcome:
        state, stopping = self.committer.state, self.committer.context.stopping
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
            near = await self.committer.pages.complete()
            state.ledger.note_total(REMARKS, NEAR_DUPLICATE, near)
            return replace(outcome, finish=self._finish)
        return outcome

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
        options = self.committer.options
        many_hosts = options.scope is ScopeMode.DOMAIN or len(set(map(host_of, options.seeds))) > 1
        window = Window(context.database, context.lease.job_id, many_hosts=many_hosts)
        engine = Engine(self.committer, window, self.visitor, self.finalization, self.learner)
        self.activity.idle_wait = engine.wait
        return await engine.run()

    async def _finish(self, connection: Connection) -> str | None:
        """Publish the generation, in the transaction that completes the job."""
        await self.committer.write_state(connection)
        return await self.committer.pages.publish(connection)


async def _put_together(context: JobContext, stack: AsyncExitStack) -> _Crawl:
    options = decrypt_secrets(crawl_options(context.job.payload), Vault(context.settings))
    agent = agent_header(context.settings, options.user_agent)
    state = await _load_state(context)
    more_seeds = tuple(NormalizedUrl(url) for url in state.more_seeds)
    seeds = (*first_urls(options), *more_seeds)
    scope = scope_of(options, more_seeds)
    discovery = Discovery(scope, state.ledger, next_seq=state.next_seq)
    gate = await join_gate(context, stack, options, agent)
    writer = (
        await GenerationWriter.open(context, base_url=seeds[0], extractor_version=EXTRACTOR_VERSION)
        if options.documents
        else None
    )
    markdown = options.markdown or context.settings.markdown
    reads_markdown = markdown is MarkdownMode.AUTO and options.files is None
    if writer is not None:
        writer.reads_markdown = reads_markdown
    extraction = await context.shared.get("extraction", partial(_extraction, context.settings))
    context.shared.backlog = lambda: extraction.waiting
    if writer is None or writer.base_id is None:
        await extraction.start()
    extractor = extraction.extractor(
        seeds=seeds,
        scope=options.scope,
        agent=product_token(agent),
        documents=options.documents,
        products=options.products,
        repeated=None if writer is None else writer.repeated,
        language=options.language,
    )
    stack.callback(extractor.close)
    archive = _archive_writer(context, agent)
    stack.push_async_callback(archive.close)
    outcomes = OutcomeRules(options, scope)
    pages = Pages(writer, scope)
    storage = archive_options(context.settings).open()
    rereading = Rereading(context.database, storage, extractor, pages)
    committer = Committer(context, options, state, discovery, archive, pages, extractor.add_seed)
    rendering = await open_rendering(context, options, robots=gate.robots, user_agent=agent)
    learner = BoilerplateLearner(context, storage, extractor, writer)
    contents = ContentFilter()
    known = KnownUrls(context.database, context.lease.job_id, discovery, contents.add)
    visitor = Visitor(
        context,
        outcomes,
        gate.sender,
        gate.robots,
        extractor,
        pages,
        rendering,
        MarkdownFirst(
            context,
            gate.robots,
            extractor,
            writer,
            state.ledger,
            is_on=reads_markdown,
            negotiates="accept" not in map(str.lower, options.headers),
        ),
        LoginWatch.of(options),
        CarryOver(pages, options, context.settings),
        committer.writing,
        known,
        learner,
        contents,
    )
    return _Crawl(
        committer,
        visitor,
        Finalization(context, options, state, committer, rereading),
        learner,
        Seeding(context, options, state, discovery, known, committer, gate.robots),
        Activity(context, state, gate.budgets, gate.robots),
        known,
    )


def _extraction(settings: Settings) -> ExtractionPool:
    return ExtractionPool(SandboxLimits.of_pages(settings), settings.parser_modules)


def _archive_writer(context: JobContext, agent: str) -> ArchiveWriter:
    job_id, lease = context.lease.job_id, context.lease.number
    database, settings, owner = context.database, context.settings, job_owner(job_id)
    return ArchiveWriter.of(database, settings, owner, lease, user_agent=agent, job_id=job_id)


async def _load_state(context: JobContext) -> CrawlState:
    """The state of the last commit. Without one, the crawl starts from its seed URLs."""
    row = await context.database.run(state_rows.select_state, context.lease.job_id)
    if row is not None:
        return state_from(row)
    async with context.commit() as connection:
        await state_rows.start_over(connection, context.lease.job_id)
        await abandon_building(connection, context.lease.job_id)
    return CrawlState()


# how long a job waits for the active job of its source
BUSY_DELAY = 60.0


async def prepare_job(context: JobContext) -> Waiting | None:
    """Check the payload, seal its secrets and assign the source; wait if the source is busy."""
    job = context.job
    if job.source_id is not None:
        return None
    try:
        options = crawl_options(job.payload)
    except InvalidInput as error:
        raise GiveUp(f"the payload is not valid: {error.message}") from None
    source = default_source(options)
    payload = encrypt_secrets(options, Vault(context.settings)).model_dump(
        mode="json", exclude_defaults=True
    )
    if not await context.assign_source(source, host=host_of(options.seeds[0]), payload=payload):
        return Waiting(BUSY_DELAY, f"source {source} has another active job")
    context.job = replace(job, source_id=source, payload=payload)
    return None
