"""Checks of the database server."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from uuid import uuid4

from forager.checks import Result, Topic, check, fail, failed_with, warn
from forager.db import schema
from forager.db.database import Database, translated_errors
from forager.db.embedded import server_status
from forager.db.schema import OLDEST_SERVER, SCHEMA_VERSION
from forager.doctor import store
from forager.errors import ForagerError
from forager.settings import Settings

NOTIFY_LIMIT = 5.0
CLOCK_TOLERANCE = 5.0


@check("server", Topic.MACHINE, "All state is kept in this database.")
def check_server(settings: Settings) -> Result:
    """Where the database is, before it is reached."""
    if settings.database_url is not None:
        return "PostgreSQL of FORAGER_DATABASE_URL"
    status = server_status(settings.home)
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


@check("connection", Topic.SERVER, "All state is kept in this database.")
async def check_connection(database: Database, _settings: Settings) -> Result:
    async with database.connection() as connection:
        started = time.perf_counter()
        await connection.execute("SELECT 1")
        milliseconds = 1000 * (time.perf_counter() - started)
        version = connection.info.server_version
    message = f"PostgreSQL {version // 10000}.{version % 10000}, answers in {milliseconds:.1f} ms"
    if version < OLDEST_SERVER:
        return fail(message, "Forager needs PostgreSQL 15 or newer.")
    return message


@check(
    "pool",
    Topic.SERVER,
    "A statement that never ends occupies one of the few sessions of the pool.",
)
async def check_pool(database: Database, _settings: Settings) -> Result:
    """Only the pool itself can limit statements outside of transactions."""
    if database.pool_url is None:
        return "not configured"
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


@check("schema", Topic.SERVER, "Workers with another schema version claim no work.")
async def check_schema(database: Database, _settings: Settings) -> Result:
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


@check(
    "clock", Topic.SERVER, "Decisions use the database's clock, but logs and pages use this one."
)
async def check_clock(database: Database, _settings: Settings) -> Result:
    """How far this machine's clock is from the database's, which all decisions use."""
    async with database.connection() as connection:
        before = time.time()
        cursor = await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = await cursor.fetchone()
        local = (before + time.time()) / 2
    assert row is not None
    difference = local - row[0]
    message = f"{abs(difference):.1f} s from the database's"
    if abs(difference) > CLOCK_TOLERANCE:
        return warn(message, "Jobs are safe, but times shown are off: set the clock.")
    return message


@check(
    "wake-ups", Topic.SERVER, "Without them, work starts at the next poll, up to a second later."
)
async def check_notifications(database: Database, _settings: Settings) -> Result:
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


@check("connections", Topic.SERVER, "When none is left, workers and API are refused and wait.")
async def check_connections(database: Database, _settings: Settings) -> Result:
    used, limit = await database.run(store.select_connections)
    message = f"{used} of {limit} in use"
    if used > FEW_LEFT * limit:
        advice = "Raise max_connections of PostgreSQL, or run fewer workers or API processes."
        return warn(message, advice)
    return message


@check("vacuum", Topic.SERVER, "Dead rows slow down every claim and every commit.")
async def check_vacuum(database: Database, _settings: Settings) -> Result:
    async with database.connection() as connection:
        runs = await store.select_autovacuum(connection)
        bloated = await store.select_bloated_tables(connection, dead=MUCH_DEAD, share=DEAD_SHARE)
    if not runs:
        advice = "Set autovacuum and track_counts to on in PostgreSQL."
        return warn("autovacuum is off", advice)
    if bloated:
        return warn(
            "tables where autovacuum falls behind",
            f"VACUUM {bloated[0][0]}; if it happens again, give autovacuum more resources.",
            found=[f"{name} ({dead} dead, {live} live)" for name, live, dead in bloated],
        )
    return "autovacuum keeps up"


@check(
    "transactions",
    Topic.SERVER,
    "Rows that an open transaction may see cannot be vacuumed, in any table.",
)
async def check_transactions(database: Database, _settings: Settings) -> Result:
    oldest = await database.run(store.select_open_transaction)
    if oldest is None or oldest[1] < LONG_TRANSACTION:
        return "none is old"
    return warn(
        f"one is open for {oldest[1]:.0f} s ({oldest[0]})",
        "Forager opens none that long: end it there, or with pg_terminate_backend.",
    )
