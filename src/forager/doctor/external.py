"""Optional parts: the search engine, the broker and the browser."""

from __future__ import annotations

import asyncio

from forager.db.database import Database
from forager.dispatch import store
from forager.dispatch.broker import Broker, BrokerUnavailable, CeleryMissing
from forager.dispatch.message import DEAD, STAGES, routes_of
from forager.doctor.check import Check, fail, failed_with, ok, warn
from forager.errors import ForagerError
from forager.index.client import EngineClient
from forager.index.kind import PRODUCTS, SECTIONS, EngineUnavailable, IndexState
from forager.index.mapping import LAYOUT
from forager.index.store import select_index
from forager.outbox.message import Backlog
from forager.outbox.store import select_backlog
from forager.render.browser import Browser
from forager.render.finding import INSTALL, NONE, find_browser
from forager.render.limits import RenderLimits
from forager.settings import Settings

# changes and tasks are sent within seconds
LONG = 60.0
ANSWER_LIMIT = 10.0
REINDEX = "Run forager search reindex; searches keep working."


async def check_search(database: Database, settings: Settings) -> Check:
    assert settings.opensearch_url is not None
    found: dict[str, tuple[IndexState | None, Backlog]] = {}
    async with database.connection() as connection:
        for kind in (SECTIONS, PRODUCTS):
            state = await select_index(connection, kind)
            found[kind] = state, await select_backlog(connection, [kind])
    try:
        async with EngineClient(settings.opensearch_url.get_secret_value()) as client:
            missing = [kind for kind, (state, _) in found.items() if await _lacks(client, state)]
    except EngineUnavailable as error:
        return fail(
            "search",
            f"{error.message}; PostgreSQL answers searches, and no change is lost",
            "Start it, or correct FORAGER_OPENSEARCH_URL; with FORAGER_SEARCH=postgres it is not"
            " needed.",
        )
    if missing:
        names = " and ".join(missing)
        return warn("search", f"the index of {names} is missing or not complete", REINDEX)
    return _fed([backlog for _, backlog in found.values()])


async def _lacks(client: EngineClient, state: IndexState | None) -> bool:
    """Whether searches cannot ask the index."""
    await client.ask("GET", "", limit=ANSWER_LIMIT)
    if state is None or state.name is None or not state.is_complete or state.layout != LAYOUT:
        return True
    return await client.uuid_of(state.name) != state.uuid


def _fed(backlogs: list[Backlog]) -> Check:
    waiting = sum(backlog.waiting for backlog in backlogs)
    refused = sum(backlog.refused for backlog in backlogs)
    seconds = max(backlog.oldest_seconds for backlog in backlogs)
    finding = f"the indexes are complete; {waiting} changes wait to be indexed"
    if refused:
        return warn(
            "search",
            f"{finding}, {refused} were refused by the search engine",
            "The column last_error of the outbox says why. PostgreSQL finds these rows instead.",
        )
    if waiting and seconds > LONG:
        return warn(
            "search",
            f"{finding}, the oldest for {seconds:.0f} s",
            "See whether a worker with FORAGER_SEARCH=opensearch runs, and its log.",
        )
    return ok("search", finding)


async def check_broker(database: Database, settings: Settings) -> Check:
    async with database.connection() as connection:
        backlog = await select_backlog(connection, STAGES)
        regions = await store.select_regions(connection)
    queues = {route.queue for region in (None, *regions) for route in routes_of(region)}
    try:
        depths = await asyncio.to_thread(_depths, settings, {*queues, DEAD})
    except CeleryMissing as error:
        return failed_with("broker", error)
    except BrokerUnavailable as error:
        return fail(
            "broker",
            f"{error.message}; {backlog.waiting} messages wait for it, and none is lost",
            "Start RabbitMQ, correct FORAGER_BROKER_URL, or set FORAGER_DISPATCH=postgres.",
        )
    dead = depths.pop(DEAD)
    finding = f"{sum(depths.values())} messages wait for workers, {backlog.waiting} to be sent"
    if dead:
        return warn(
            "broker",
            f"{finding}; {dead} could not be read, or were delivered too often",
            f"Look at the queue {DEAD} of RabbitMQ, and purge it; their tasks are not lost.",
        )
    if backlog.oldest_seconds > LONG:
        return warn(
            "broker",
            f"{finding}, the oldest for {backlog.oldest_seconds:.0f} s",
            "See whether a worker or scheduler runs that relays them, and its log.",
        )
    return ok("broker", finding)


def _depths(settings: Settings, queues: set[str]) -> dict[str, int]:
    assert settings.broker_url is not None
    broker = Broker(settings.broker_url.get_secret_value())
    try:
        return broker.depths(queues)
    finally:
        broker.close()


NAMESPACES = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or a container"
    " profile that permits `unshare`)."
)


async def check_browser(settings: Settings) -> Check:
    """Start the browser once; what it lacks is worth a warning, because everything else works."""
    if settings.browser == NONE:
        return ok("browser", "turned off")
    choice = find_browser(settings)
    if choice.path is None:
        return warn("browser", f"{choice.reason}: pages are not rendered", INSTALL)
    try:
        browser = await Browser.start(choice.path, RenderLimits.of(settings))
    except (ForagerError, OSError) as error:
        return warn("browser", f"{choice.path}: {str(error).splitlines()[0]}", INSTALL)
    await browser.stop()
    found = f"{choice.path}, version {browser.version}"
    if not browser.sandboxed:
        return warn("browser", f"{found}, runs without its sandbox", NAMESPACES)
    if not browser.isolated:
        return warn("browser", f"{found}, is kept off the network by flags alone", NAMESPACES)
    return ok("browser", f"{found}, sandboxed, without a network")
