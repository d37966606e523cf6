"""How a crawl reaches its hosts: client, proxies, budgets and robots.txt.

All crawls of a runner share them; what differs between crawls is in their view of the budgets, and
in the rules that they apply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from forager.crawl.frontier.scope import CrawlScope, ScopeMode
from forager.crawl.options import POOL, CrawlOptions
from forager.db.database import Database
from forager.db.ids import new_id
from forager.extract.urls import NormalizedUrl
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.view import BudgetView
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize, SystemResolver
from forager.fetch.files.address import RepositoryAddress
from forager.fetch.files.caches import open_cache, temporary_cache
from forager.fetch.files.folder import open_folder
from forager.fetch.files.gate import FileGate
from forager.fetch.files.repository import open_repository
from forager.fetch.files.tree import FileTree
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import ProxyPool, proxy_guard
from forager.fetch.response import agent_header, is_public_header
from forager.fetch.robots.gate import KnownRobots, RobotsGate
from forager.fetch.sender import Sender
from forager.jobs.context import JobContext
from forager.secrets import Vault
from forager.settings import Settings

# connections of all crawls of a runner; each host has far fewer, by its budget
MAX_CONNECTIONS = 1_000


@dataclass(frozen=True, slots=True)
class CrawlGate:
    """The requests of one crawl."""

    budgets: BudgetView
    sender: Sender
    robots: RobotsGate


async def join_gate(
    context: JobContext, stack: AsyncExitStack, options: CrawlOptions, agent: str
) -> CrawlGate:
    """The requests of a crawl, with everything that the crawls of its runner share."""
    shared, database = context.shared, context.database
    budgets = await shared.get("budgets", lambda: Budgets(database, holder=new_id()))
    view = stack.enter_context(
        BudgetView(budgets, delay=options.delay, concurrency=options.concurrency)
    )
    wanted, proxies = client_options(options, agent), None
    if options.proxy == POOL:
        guard = await proxy_guard(database)
        wanted = replace(wanted, proxy_guard=guard)
        vault, region = Vault(context.settings), context.settings.region
        proxies = await shared.get(
            ("proxies", guard), lambda: ProxyPool(database, vault, guard, region=region)
        )
    client, key = await _client(context, stack, wanted)
    known = await shared.get(("robots", key), lambda: nullcontext(KnownRobots()))
    sender = Sender(client, view, proxies)
    if options.files is not None:
        resolver = await shared.get("resolver", SystemResolver)
        owner, job = context.job.source_id or str(context.job.id), str(context.lease.job_id)
        tree = await open_files(
            options, lambda: open_cache(context.settings.home, owner), resolver, job=job
        )
        return CrawlGate(view, sender, await _file_gate(database, sender, tree, stack, options))
    robots = RobotsGate(
        database, sender, user_agent=agent, ignore=options.ignore_robots, known=known
    )
    return CrawlGate(view, sender, robots)


async def open_files(
    options: CrawlOptions, cache: Callable[[], Path], resolver: SystemResolver, *, job: str
) -> FileTree:
    """The files that a crawl reads; a repository is fetched to the cache first."""
    if options.folder is not None:
        return await open_folder(Path(options.folder))
    address = RepositoryAddress(
        options.repository or "", options.ref or "HEAD", options.headers, options.allow_private
    )
    return await open_repository(address, cache(), job=job, resolver=resolver)


async def _file_gate(
    database: Database, sender: Sender, tree: FileTree, stack: AsyncExitStack, options: CrawlOptions
) -> FileGate:
    stack.callback(tree.close)
    paths = await asyncio.to_thread(tree.paths)
    subfolder = (options.subfolder or "").strip("/")
    base = NormalizedUrl(options.seeds[0].rstrip("/") + "/")
    return await asyncio.to_thread(FileGate, database, sender, tree, paths, base, subfolder)


async def _client(
    context: JobContext, stack: AsyncExitStack, options: ClientOptions
) -> tuple[Client, Hashable]:
    """The client with these options, and its key; one with secret headers is of one crawl only."""
    resolver = await context.shared.get("resolver", SystemResolver)
    options = replace(options, resolver=resolver)
    if not all(map(is_public_header, options.headers)):
        return await stack.enter_async_context(Client(options)), context.lease.job_id
    headers = frozenset(options.headers.items())
    key = (
        options.user_agent, options.limits, options.guard, options.proxy, options.proxy_guard,
        headers,
    )  # fmt: skip
    shared = replace(options, trusts=None, pool=PoolSize(total=MAX_CONNECTIONS))
    return await context.shared.get(("client", key), lambda: Client(shared)), key


@asynccontextmanager
async def open_gate(
    database: Database, settings: Settings, options: CrawlOptions, *, ignore_robots: bool = False
) -> AsyncIterator[RobotsGate]:
    """Requests outside of a crawl, within the budgets of their hosts, and robots.txt."""
    agent = agent_header(settings, options.user_agent)
    async with (
        Client(client_options(options, agent)) as client,
        Budgets(database, holder=new_id()) as budgets,
    ):
        view = BudgetView(budgets, delay=options.delay, concurrency=options.concurrency)
        sender = Sender(client, view)
        if options.files is not None:
            async with AsyncExitStack() as stack, SystemResolver() as resolver:
                cache = temporary_cache(settings.home)
                tree = await open_files(
                    options, lambda: stack.enter_context(cache), resolver, job="preview"
                )
                yield await _file_gate(database, sender, tree, stack, options)
                return
        yield RobotsGate(database, sender, user_agent=agent, ignore=ignore_robots)


def client_options(options: CrawlOptions, agent: str) -> ClientOptions:
    return ClientOptions(
        user_agent=agent,
        guard=GuardPolicy(allow_private=options.allow_private),
        headers=options.headers,
        trusts=_trusts(options),
        proxy=ProxySpec.parse(options.proxy) if options.proxy not in (None, POOL) else None,
        pool=PoolSize(total=max(100, 2 * (options.concurrency or 0))),
    )


def _trusts(options: CrawlOptions) -> Callable[[str], bool]:
    """Limit custom headers to the sites of the seeds, excluding sites they redirect to.

    Nor for the same names without encryption, unless they were asked for like that.
    """
    mode = ScopeMode.DOMAIN if options.scope is ScopeMode.DOMAIN else ScopeMode.HOST
    scope = CrawlScope(options.seeds, mode)
    schemes = ("http:", "https:") if any(s.startswith("http:") for s in options.seeds) else "https:"
    return lambda url: url.startswith(schemes) and scope.outside(url) is None
