"""The crawl as a job: everything one needs is put together here, and the engine is run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from secrets import token_hex
from uuid import UUID

from forager import __version__
from forager.archive import store as archive_store
from forager.archive.options import archive_options
from forager.archive.writer import ArchiveWriter
from forager.crawl import store
from forager.crawl.batch import BatchRefused, Committer
from forager.crawl.discovery import Discovery
from forager.crawl.engine import Engine
from forager.crawl.extraction import ExtractionLimits, ExtractionPool
from forager.crawl.judge import Judge
from forager.crawl.options import CrawlOptions, check_payload, crawl_options
from forager.crawl.scope import Scope
from forager.crawl.seeding import Seeding, first_urls
from forager.crawl.settlement import Outcome as PageOutcome
from forager.crawl.state import CrawlState, state_from
from forager.crawl.visitor import Visitor
from forager.crawl.window import Window
from forager.db.database import Database
from forager.db.ids import new_id
from forager.extract.urls import NormalisedUrl
from forager.fetch.budgets import Budgets
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxy import ProxySpec
from forager.fetch.robots import product_token
from forager.fetch.robots_gate import RobotsGate
from forager.jobs.context import JobContext
from forager.jobs.kinds import JobKind, register
from forager.jobs.outcome import Outcome, Stopped
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("crawl")


async def crawl(context: JobContext) -> Outcome:
    """Run a crawl from its last commit. A page that PostgreSQL refuses fails alone."""
    options = crawl_options(context.job.payload)
    poisoned: dict[bytes, str] = {}
    while True:
        try:
            return await _crawl_once(context, options, poisoned)
        except BatchRefused as refusal:
            log.warning("pages refused by the database", pages=len(refusal.culprits))
            poisoned.update(refusal.culprits)


async def _crawl_once(
    context: JobContext, options: CrawlOptions, poisoned: Mapping[bytes, str]
) -> Outcome:
    state = await _load_state(context)
    seeds = tuple(first_urls(options)) + tuple(NormalisedUrl(url) for url in state.more_seeds)
    scope = Scope(
        seeds,
        options.scope,
        include=options.include,
        exclude=options.exclude,
        max_depth=options.max_depth,
    )
    discovery = Discovery(scope, state.ledger, next_seq=state.next_seq)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        agent = user_agent(options, context.settings)
        client = await enter(Client(client_options(options, agent)))
        budgets = await enter(
            Budgets(
                context.database,
                holder=new_id(),
                delay=options.delay,
                concurrency=options.concurrency,
            )
        )
        robots = RobotsGate(
            context.database, budgets, client, user_agent=agent, ignore=options.ignore_robots
        )
        pool = await enter(
            ExtractionPool(
                _extraction_limits(context.settings),
                seeds=seeds,
                scope=options.scope,
                agent=product_token(agent),
            )
        )
        archive = _archive_writer(context, agent)
        stack.push_async_callback(archive.close)
        visitor = Visitor(
            context,
            Judge(options, scope),
            client=client,
            budgets=budgets,
            robots=robots,
            pool=pool,
            poisoned=poisoned,
        )
        await _remember(context, state, discovery, visitor)
        committer = Committer(context, options, state, discovery, archive)
        await Seeding(
            context, options, state, discovery, committer,
            client=client, budgets=budgets, robots=robots,
        ).run()  # fmt: skip
        if context.stopping.is_set():
            return Stopped()
        return await Engine(
            context,
            options,
            state,
            window=Window(context.database, context.lease.job_id),
            visitor=visitor,
            committer=committer,
        ).run()


async def _load_state(context: JobContext) -> CrawlState:
    async with context.database.connection() as connection:
        row = await store.select_state(connection, context.lease.job_id)
    if row is not None:
        return state_from(row)
    async with context.commit() as connection:
        await store.insert_state(connection, context.lease.job_id)
    return CrawlState()


async def _remember(
    context: JobContext, state: CrawlState, discovery: Discovery, visitor: Visitor
) -> None:
    """Refill the memory from the tables: known URLs, and contents that were fetched."""
    if not state.ledger.discovered:
        return
    discovery.reserve(state.ledger.discovered)
    async with context.database.connection() as connection:
        async for key, url, outcome, reason, content in store.stream_known(
            connection, context.lease.job_id
        ):
            discovery.remember(key, url, reason)
            if content is not None and outcome == PageOutcome.FETCHED:
                visitor.remember_content(content)


def user_agent(options: CrawlOptions, settings: Settings) -> str:
    return (options.user_agent or settings.user_agent).replace("{version}", __version__)


def client_options(options: CrawlOptions, agent: str) -> ClientOptions:
    return ClientOptions(
        user_agent=agent,
        guard=GuardPolicy(allow_private=options.allow_private),
        headers=options.headers,
        proxy=ProxySpec.parse(options.proxy) if options.proxy else None,
        pool=PoolSize(total=max(100, 2 * (options.concurrency or 0))),
    )


def _extraction_limits(settings: Settings) -> ExtractionLimits:
    return ExtractionLimits(
        processes=settings.extraction_processes,
        seconds=settings.extraction_time_limit,
        memory_mb=settings.extraction_memory_mb,
    )


def _archive_writer(context: JobContext, agent: str) -> ArchiveWriter:
    options = archive_options(context.settings)
    job_id = context.lease.job_id
    return ArchiveWriter(
        options.open(),
        # a handler may be called again under the same lease, and segments are never reopened
        owner=f"job-{job_id.hex}-{token_hex(4)}",
        lease=context.lease.number,
        register=partial(_register_segment, context.database, job_id),
        info={"http-header-user-agent": agent},
        segment_limit=options.segment_bytes,
    )


async def _register_segment(database: Database, job_id: UUID, name: str) -> None:
    async with database.connection() as connection:
        await archive_store.register_segment(connection, name, job_id)


CRAWL = register(JobKind("crawl", crawl, check_payload))
