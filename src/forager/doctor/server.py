"""Checks of the database server, and of the broker and the search engine beside it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

from forager.db import schema
from forager.db.database import Database, translated_errors
from forager.db.embedded import server_status
from forager.db.schema import OLDEST_SERVER, SCHEMA_VERSION
from forager.dispatch import store as dispatch_store
from forager.dispatch.broker import Broker, BrokerUnavailable
from forager.dispatch.message import DEAD, STAGES, routes_of
from forager.doctor import store
from forager.doctor.check import Verdict, check, fail, failed_with, warn
from forager.errors import ForagerError
from forager.index.client import EngineClient
from forager.index.kind import LAYOUT, PRODUCTS, SECTIONS, EngineUnavailable
from forager.index.store import IndexState, select_index
from forager.outbox.message import Backlog
from forager.outbox.store import select_backlog
from forager.render.browser import Browser
from forager.render.finding import INSTALL, NONE, find_browser
from forager.render.limits import RenderLimits
from forager.settings import Settings

NOTIFY_LIMIT = 5.0
CLOCK_TOLERANCE = 5.0


@check("server", "All state is kept in this database.")
def check_server(settings: Settings) -> Verdict:
    """Where the database is, before it is reached."""
    if settings.database_url is not None:
        return "PostgreSQL of FORAGER_DATABASE_URL"
    try:
        return _check_embedded(settings.home)
    except ForagerError as error:
        return failed_with(error)


def _check_embedded(home: Path) -> Verdict:
    status = server_status(home)
    name = f"embedded PostgreSQL {status.server_version}"
    if status.data_version not in (None, status.server_version):
        return fail(
            f"{name}, but the data is of PostgreSQL {status.data_version}",
            "Use the Forager that made the data to move it, or set FORAGER_HOME to a new folder.",
        )
    if status.disk_full:
        return fail(f"{name}: its disk is full", "Free some space, then try again.")
    users = f", {len(status.users)} processes use it" if status.users else ""
    return f"{name}, {status.state}{users}; log in {status.log}"


@check("connection", "All state is kept in this database.")
async def check_connection(database: Database, _settings: Settings) -> Verdict:
    try:
        async with database.connection() as connection:
            started = time.perf_counter()
            await connection.execute("SELECT 1")
            milliseconds = 1000 * (time.perf_counter() - started)
            version = connection.info.server_version
    except ForagerError as error:
        return failed_with(error)
    finding = f"PostgreSQL {version // 10000}.{version % 10000}, answers in {milliseconds:.1f} ms"
    if version < OLDEST_SERVER:
        return fail(finding, "Forager needs PostgreSQL 15 or newer.")
    return finding


@check("pool", "A statement that never ends occupies one of the few sessions of the pool.")
async def check_pool(database: Database, _settings: Settings) -> Verdict:
    """Only the pool itself can limit statements outside of transactions."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
        )
        row = await cursor.fetchone()
    assert row is not None
    if "0" in row:
        return warn(
            "PgBouncer, but statements have no time limit",
            "Set connect_query in its configuration: see docs/howto/run-with-pgbouncer.md.",
        )
    return f"PgBouncer; statements end after {row[0]}, waits for locks after {row[1]}"


@check("schema", "Workers with another schema version claim no work.")
async def check_schema(database: Database, _settings: Settings) -> Verdict:
    with translated_errors():
        version = await asyncio.to_thread(schema.current_version, database.url)
    if version == SCHEMA_VERSION:
        return version
    if version is None:
        return f"none yet; the first start makes {SCHEMA_VERSION}"
    if version < SCHEMA_VERSION:
        return warn(f"{version}, older than {SCHEMA_VERSION}", "Run forager db upgrade.")
    return fail(
        f"{version}; this Forager knows {SCHEMA_VERSION}",
        "A newer Forager made it: update this one.",
    )


@check("clock", "Decisions use the database's clock, but logs and pages use this one.")
async def check_clock(database: Database, _settings: Settings) -> Verdict:
    """How far this machine's clock is from the database's, which all decisions use."""
    async with database.connection() as connection:
        before = time.time()
        cursor = await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = await cursor.fetchone()
        here = (before + time.time()) / 2
    assert row is not None
    difference = here - row[0]
    finding = f"{abs(difference):.1f} s from the database's"
    if abs(difference) > CLOCK_TOLERANCE:
        return warn(finding, "Jobs are safe, but times shown are off: set the clock.")
    return finding


@check("wake-ups", "Without them, work starts at the next poll, up to a second later.")
async def check_notifications(database: Database, _settings: Settings) -> Verdict:
    """Whether NOTIFY reaches LISTEN; some connection poolers swallow it."""
    channel = f"forager_doctor_{uuid4().hex}"
    started = time.perf_counter()
    try:
        async with (
            asyncio.timeout(NOTIFY_LIMIT),
            aclosing(database.notifications(channel)) as arriving,
        ):
            await anext(arriving)  # it listens
            async with database.connection() as connection:
                await connection.execute("SELECT pg_notify(%s, '')", (channel,))
            await anext(arriving)
    except TimeoutError:
        return warn(
            f"no notification arrived within {NOTIFY_LIMIT:g} s",
            "Work is found by polling, but starts later: connect without a transaction pooler.",
        )
    except ForagerError as error:
        return failed_with(error)
    milliseconds = 1000 * (time.perf_counter() - started)
    return f"LISTEN works, {milliseconds:.1f} ms with the connection"


FEW_LEFT = 0.8
# dead rows of a table above which autovacuum falls behind; it starts at a fifth by default
MUCH_DEAD = 50_000
DEAD_SHARE = 1.0
LONG_TRANSACTION = 600.0
NAMED = 3


@check("connections", "When none is left, workers and API are refused and wait.")
async def check_connections(database: Database, _settings: Settings) -> Verdict:
    used, limit = await database.run(store.select_connections)
    finding = f"{used} of {limit} in use"
    if used > FEW_LEFT * limit:
        advice = "Raise max_connections of PostgreSQL, or run fewer workers or API processes."
        return warn(finding, advice)
    return finding


@check("vacuum", "Dead rows slow down every claim and every commit.")
async def check_vacuum(database: Database, _settings: Settings) -> Verdict:
    async with database.connection() as connection:
        runs = await store.select_autovacuum(connection)
        bloated = await store.select_bloated_tables(connection, dead=MUCH_DEAD, share=DEAD_SHARE)
    if not runs:
        advice = "Set autovacuum and track_counts to on in PostgreSQL."
        return warn("autovacuum is off", advice)
    if bloated:
        names = ", ".join(
            f"{name} ({dead} dead, {live} live)" for name, live, dead in bloated[:NAMED]
        )
        advice = f"VACUUM {bloated[0][0]}; if it happens again, give autovacuum more resources."
        return warn(f"falls behind: {names}", advice)
    return "autovacuum keeps up"


@check("transactions", "Rows that an open transaction may see cannot be vacuumed, in any table.")
async def check_transactions(database: Database, _settings: Settings) -> Verdict:
    oldest = await database.run(store.select_open_transaction)
    if oldest is None or oldest[1] < LONG_TRANSACTION:
        return "none is old"
    return warn(
        f"one is open for {oldest[1]:.0f} s ({oldest[0]})",
        "Forager opens none that long: end it there, or with pg_terminate_backend.",
    )


# changes and tasks are sent within seconds
LONG = 60.0
ANSWER_LIMIT = 10.0
REINDEX = "Run forager search reindex; searches keep working."


@check("search", "Without the configured search engine, PostgreSQL answers searches, more slowly.")
async def check_search(database: Database, settings: Settings) -> Verdict:
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
            f"{error.message}; PostgreSQL answers searches, and no change is lost",
            "Start it, or correct FORAGER_OPENSEARCH_URL; with FORAGER_SEARCH=postgres it is not"
            " needed.",
        )
    if missing:
        names = " and ".join(missing)
        return warn(f"the index of {names} is missing or not complete", REINDEX)
    return _fed([backlog for _, backlog in found.values()])


async def _lacks(client: EngineClient, state: IndexState | None) -> bool:
    """Whether searches cannot ask the index."""
    await client.request("GET", "", limit=ANSWER_LIMIT)
    if state is None or state.name is None or not state.is_complete or state.layout != LAYOUT:
        return True
    return await client.uuid_of(state.name) != state.uuid


def _fed(backlogs: list[Backlog]) -> Verdict:
    waiting = sum(backlog.waiting for backlog in backlogs)
    refused = sum(backlog.refused for backlog in backlogs)
    seconds = max(backlog.oldest_seconds for backlog in backlogs)
    finding = f"the indexes are complete; {waiting} changes wait to be indexed"
    if refused:
        return warn(
            f"{finding}, {refused} were refused by the search engine",
            "See the column last_error of the outbox. PostgreSQL finds these rows instead.",
        )
    if waiting and seconds > LONG:
        return warn(
            f"{finding}, the oldest for {seconds:.0f} s",
            "See whether a worker with FORAGER_SEARCH=opensearch runs, and its log.",
        )
    return finding


@check("broker", "Workers get no tasks through it; the tasks wait in PostgreSQL.")
async def check_broker(database: Database, settings: Settings) -> Verdict:
    async with database.connection() as connection:
        backlog = await select_backlog(connection, STAGES)
        regions = await dispatch_store.select_regions(connection)
    queues = {route.queue for region in (None, *regions) for route in routes_of(region)}
    try:
        depths = await asyncio.to_thread(_depths, settings, {*queues, DEAD})
    except BrokerUnavailable as error:
        return fail(
            f"{error.message}; {backlog.waiting} messages wait for it, and none is lost",
            "Start RabbitMQ, correct FORAGER_BROKER_URL, or set FORAGER_DISPATCH=postgres.",
        )
    dead = depths.pop(DEAD)
    finding = f"{sum(depths.values())} messages wait for workers, {backlog.waiting} to be sent"
    if dead:
        return warn(
            f"{finding}; {dead} could not be read, or were delivered too often",
            f"Check the queue {DEAD} of RabbitMQ, and purge it; their tasks are not lost.",
        )
    if backlog.oldest_seconds > LONG:
        return warn(
            f"{finding}, the oldest for {backlog.oldest_seconds:.0f} s",
            "See whether a worker or scheduler runs that relays them, and its log.",
        )
    return finding


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


@check("browser", "Pages that need JavaScript are stored without their content.")
async def check_browser(settings: Settings) -> Verdict:
    """Start the browser once; what it lacks is worth a warning, because everything else works."""
    if settings.browser == NONE:
        return "turned off"
    choice = find_browser(settings)
    if choice.path is None:
        return warn(f"{choice.reason}: pages are not rendered", INSTALL)
    try:
        browser = await Browser.start(choice.path, RenderLimits.of(settings))
    except (ForagerError, OSError) as error:
        return warn(f"{choice.path}: {str(error).splitlines()[0]}", INSTALL)
    await browser.stop()
    found = f"{choice.path}, version {browser.version}"
    if not browser.sandboxed:
        return warn(f"{found}, runs without its sandbox", NAMESPACES)
    if not browser.isolated:
        return warn(f"{found}, is kept off the network by flags alone", NAMESPACES)
    return f"{found}, sandboxed, without a network"
