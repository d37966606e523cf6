"""What the doctor finds of the server, the archive, the keys and the work that stands still."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import psycopg
import pytest

import forager.doctor
from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.archive.options import archive_options
from forager.db.database import Database
from forager.db.ids import new_id
from forager.doctor import archive as archive_checks
from forager.doctor import machine, server, work
from forager.doctor.check import Check, Level
from forager.doctor.examination import examine
from forager.jobs.workers import Registration
from forager.listening import listening_addresses, noted_address
from forager.settings import Settings
from support.sql import execute

DECLARED = re.compile(r'\bcheck\(\s*"([^"]+)",\s*"([^"]+)"')
SEGMENT = "2026/03/01/job-1-0001.warc.zst"


def assert_warns(check: Check, *words: str) -> None:
    assert check.level is Level.WARN, check
    assert check.why
    for word in words:
        assert word in f"{check.finding} {check.advice}"


def test_every_check_says_why_it_matters() -> None:
    folder = Path(forager.doctor.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    declared = [each for source in sources for each in DECLARED.findall(source)]
    assert len({name for name, _ in declared}) == len(declared) > 40
    assert [name for name, why in declared if not why.endswith(".")] == []


async def test_a_new_installation_is_well(settings: Settings) -> None:
    shown: list[Check] = []
    checks = await examine(settings, shown.append)
    assert shown == checks
    # a process keeps the parsers it has loaded, also those of other tests
    assert {check.name for check in checks if check.level is not Level.OK} <= {"parsers"}
    names = {check.name for check in checks}
    assert {"connections", "vacuum", "archive", "keys", "stuck jobs", "versions"} <= names


async def test_few_connections_are_left(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert " in use" in (await server.check_connections(database, settings)).finding
    monkeypatch.setattr(server, "FEW_LEFT", 0.0)
    assert_warns(await server.check_connections(database, settings), "max_connections")


async def test_dead_rows_that_are_not_vacuumed(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await server.check_vacuum(database, settings)).level is Level.OK
    monkeypatch.setattr(server, "MUCH_DEAD", 20)
    async with database.connection() as connection:
        await connection.execute("VACUUM")  # earlier tests in this database leave dead rows
        for _ in range(40):  # fewer than what wakes the cleaner
            await connection.execute(
                "INSERT INTO metric_writers (id, addition) VALUES (%s, 1)", (new_id(),)
            )
        await connection.execute("DELETE FROM metric_writers")
        await connection.execute("SELECT pg_stat_force_next_flush()")
    async with asyncio.timeout(60):
        while (check := await server.check_vacuum(database, settings)).level is Level.OK:
            await asyncio.sleep(0.1)
    assert_warns(check, "metric_writers (40 dead", "VACUUM metric_writers")


async def test_a_transaction_that_never_ends(
    settings: Settings, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await server.check_transactions(database, settings)).level is Level.OK
    monkeypatch.setattr(server, "LONG_TRANSACTION", 0.0)
    with psycopg.connect(database_url, application_name="forgotten") as forgotten:
        forgotten.execute("SELECT 1")
        assert_warns(await server.check_transactions(database, settings), "forgotten, pid")


async def test_workers_of_other_versions_are_named(settings: Settings, database: Database) -> None:
    await Registration(database, new_id(), capacity=1).renew()
    assert (await machine.check_versions(database, settings)).level is Level.OK
    await execute(database, "UPDATE workers SET version = '0.0.1'")
    assert_warns(await machine.check_versions(database, settings), "workers of 0.0.1", "restart")


async def test_jobs_that_stand_still(database: Database, settings: Settings) -> None:
    assert (await work.check_stuck_jobs(database, settings)).finding == "none"
    job = new_id()
    await execute(
        database,
        """
        INSERT INTO crawl_jobs (id, kind, payload, status, worker_id, last_heartbeat, started_at)
        VALUES (%s, 'selftest', '{}', 'processing', %s, now(), now() - interval '2 hours')
        """,
        job,
        new_id(),
    )
    assert_warns(await work.check_stuck_jobs(database, settings), str(job), "forager jobs show")
    await execute(database, "INSERT INTO crawl_states (job_id) VALUES (%s)", job)
    assert (await work.check_stuck_jobs(database, settings)).level is Level.OK


async def test_jobs_that_wait_for_long(settings: Settings, database: Database) -> None:
    assert (await work.check_waiting_jobs(database, settings)).finding == "none"
    insert = "INSERT INTO crawl_jobs (id, kind, payload, run_after) VALUES (%s, 'selftest', '{}', "
    await execute(database, f"{insert} now() + interval '1 hour')", new_id())
    assert (await work.check_waiting_jobs(database, settings)).finding == "none"
    await execute(database, f"{insert} now() - interval '2 hours')", new_id())
    assert_warns(await work.check_waiting_jobs(database, settings), "72", "worker_capacity")


async def test_segments_that_are_gone(database: Database, settings: Settings) -> None:
    await execute(
        database,
        "INSERT INTO archive_segments (name, lease, bytes, records) VALUES (%s, 1, 10, 1)",
        SEGMENT,
    )
    check = await archive_checks.check_archive(database, settings)
    assert check.level is Level.FAIL
    assert SEGMENT in check.finding
    assert "backup" in (check.advice or "")
    segment = Path(archive_options(settings).place) / SEGMENT
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"0123456789")
    assert (await archive_checks.check_archive(database, settings)).level is Level.OK
    segment.unlink()
    await execute(database, "UPDATE archive_segments SET going_at = now()")
    assert (await archive_checks.check_archive(database, settings)).level is Level.OK


async def test_a_full_disk_is_a_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await archive_checks.check_archive_space(settings)).level is Level.OK
    monkeypatch.setattr(archive_checks, "LITTLE_SPACE", 1 << 62)
    assert_warns(await archive_checks.check_archive_space(settings), "archive_max_mb")
    monkeypatch.setattr(archive_checks, "NO_SPACE", 1 << 62)
    assert (await archive_checks.check_archive_space(settings)).level is Level.FAIL
    bucket = settings.model_copy(update={"archive_url": "s3://bucket/archive"})
    assert (await archive_checks.check_archive_space(bucket)).finding == "in a bucket"


async def test_keys_that_end(settings: Settings, database: Database) -> None:
    assert (await machine.check_keys(database, settings)).finding == "none"
    await create_key(database, "lasting", scope=Scope.ADMIN)
    assert (await machine.check_keys(database, settings)).finding == "1 active, 1 of them admin"
    made = await create_key(database, "passing", scope=Scope.READ, expires_in=3600)
    assert_warns(await machine.check_keys(database, settings), "passing", made.key.id)
    await execute(database, "UPDATE api_keys SET revoked_at = now()")
    assert_warns(await machine.check_keys(database, settings), "all have expired", "keys create")


async def test_listening_for_others_without_tls_is_a_warning(settings: Settings) -> None:
    assert (await machine.check_exposure(settings)).level is Level.OK
    public = settings.model_copy(update={"api_host": "0.0.0.0", "metrics_open": True})
    assert_warns(await machine.check_exposure(public), "without TLS", "/metrics needs no key")


async def test_the_address_that_the_api_listens_on_is_reported(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as line:
        address = f"http://127.0.0.1:{line.getsockname()[1]}"
        with noted_address(settings.home, address):
            check = await machine.check_exposure(
                settings.model_copy(update={"api_host": "0.0.0.0"})
            )
            assert (check.level, check.finding) == (Level.OK, f"the API listens on {address}")
            # killed: its note stays, and nothing listens there
            line.close()
            assert "no API runs here" in (await machine.check_exposure(settings)).finding
    assert listening_addresses(settings.home) == []


async def test_traces_need_what_sends_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await machine.check_traces(settings)).finding == "not configured"
    asked = settings.model_copy(update={"traces_url": "http://127.0.0.1:4318"})
    assert "4318" in (await machine.check_traces(asked)).finding
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    assert_warns(await machine.check_traces(asked), "pip install")
