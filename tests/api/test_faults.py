"""State after the death of an API server, and responses without a database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from api.client import Api
from api.server_process import FORAGER, api_process, wait_for_address
from forager.access.answers import reserve
from forager.access.caller import NO_OWNER
from forager.db.database import Database, SessionLimits
from forager.settings import Settings
from support.api_server import api_server
from support.databases import outage
from support.sql import execute
from support.waiting import eventually

CRAWL = "/api/v1/crawls"
ORDER = {"urls": ["https://docs.example.org/"]}
ONCE = {"Idempotency-Key": "k"}


@asynccontextmanager
async def locked_jobs(database: Database) -> AsyncIterator[None]:
    """Make requests that add a job wait, after they have started."""
    async with database.transaction() as connection:
        await connection.execute("LOCK TABLE crawl_jobs IN SHARE MODE")
        yield


BLOCKED = """
    SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'crawl_jobs'::regclass
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def until_blocked(database: Database) -> None:
    await eventually(lambda: execute(database, BLOCKED))


async def test_a_server_killed_in_the_middle_has_done_nothing(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    log = tmp_path / "first.log"
    with log.open("wb") as stderr:
        doomed = subprocess.Popen(
            [FORAGER, "api", "--port", "0"],
            env=os.environ | {"FORAGER_LOG_FORMAT": "json"},
            stderr=stderr,
        )
    try:
        address = await asyncio.to_thread(wait_for_address, log, doomed)
        async with Api(address) as api, locked_jobs(database):
            asking = asyncio.create_task(api.post(CRAWL, ORDER, headers=ONCE))
            await until_blocked(database)
            doomed.send_signal(signal.SIGKILL)
            with pytest.raises(aiohttp.ClientError):
                await asking
    finally:
        doomed.kill()
        doomed.wait()
    with api_process(tmp_path) as address:
        async with Api(address) as api:
            answers = [await api.post(CRAWL, ORDER, headers=ONCE) for _ in range(2)]
    assert [answer.json["created"] for answer in answers] == [True, True]
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    assert len(await execute(database, "SELECT id FROM crawl_jobs")) == 1


@asynccontextmanager
async def another_server_at_work(database: Database) -> AsyncIterator[None]:
    """It has taken the key, and dies in the end."""
    async with database.connection() as connection, connection.transaction(force_rollback=True):
        assert await reserve(connection, NO_OWNER, "k", b"its request") is None
        yield


async def test_a_repeated_request_that_cannot_wait_is_answered_with_retry_after(
    api_settings: Settings, database_url: str, database: Database
) -> None:
    async with (
        Database(database_url, limits=SessionLimits(lock_ms=200)) as limited,
        api_server(api_settings, limited) as address,
        Api(address) as api,
    ):
        async with another_server_at_work(database):
            early = await api.post(CRAWL, ORDER, headers=ONCE)
        later = await api.post(CRAWL, ORDER, headers=ONCE)
    assert (early.status, early.is_problem, early.headers["Retry-After"]) == (409, True, "1")
    assert "still being answered" in early.json["detail"]
    assert later.status == 202


async def test_an_unavailable_database_is_reported_and_recovers(
    api: Api, postgres: str, database_url: str
) -> None:
    with outage(postgres, database_url):
        away = [await api.get("/api/v1/jobs"), await api.post(CRAWL, ORDER)]
        ready = await api.get("/readyz")
        assert (await api.get("/healthz")).status == 200
    for answer in away:
        assert (answer.status, answer.is_problem) == (503, True)
        assert int(answer.headers["Retry-After"]) > 0
    assert (ready.status, json.loads(ready.body)["database"]) == (503, False)
    assert (await api.get("/api/v1/jobs")).status == 200
