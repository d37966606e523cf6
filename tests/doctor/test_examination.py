"""What the doctor finds of the server, the archive, the keys and the work that stands still."""

from __future__ import annotations

import asyncio
import re
import socket
from importlib import import_module
from pathlib import Path

import psycopg
import pytest

import forager
from archived_job import html, start_job
from forager.access.caller import Scope
from forager.access.checks import check_keys
from forager.archive.checks import check_archive
from forager.archive.storage import open_storage
from forager.checks import Examination, Finding, Level, Topic, checks_in
from forager.db.database import Database
from forager.db.ids import new_id
from forager.doctor import machine, server
from forager.doctor.examination import examine
from forager.doctor.registry import CHECKS
from forager.fetch.checks import check_slots
from forager.jobs.checks import check_stuck_jobs, check_versions, check_waiting_jobs
from forager.jobs.queue import Queue
from forager.jobs.workers import Registration
from forager.listening import listening_addresses, noted_address
from forager.settings import Settings
from support.keys import make_key
from support.sql import execute


def assert_warns(check: Finding, *words: str) -> None:
    assert check.level is Level.WARN, check
    assert check.impact
    for word in words:
        assert word in f"{check.message} {check.next_step} {check.examples}"


def test_every_check_says_why_it_matters() -> None:
    names = [each.name for each in CHECKS]
    assert len(set(names)) == len(names) > 60
    assert all(re.fullmatch(r"[a-z][a-z_-]*", name) for name in names)
    assert [each.name for each in CHECKS if not each.impact.endswith(".")] == []
    assert {each.topic for each in CHECKS} == set(Topic)


def test_every_module_of_checks_is_registered() -> None:
    root = Path(forager.__file__).parent
    files = [path for path in root.rglob("*/checks.py") if path.parent.name != "store"]
    modules = [".".join(path.relative_to(root.parent).with_suffix("").parts) for path in files]
    assert [name for name in modules if not {*checks_in(import_module(name))} <= {*CHECKS}] == []


async def test_a_new_installation_is_well(settings: Settings) -> None:
    shown: list[Finding] = []
    examination = Examination(shown.append)
    await examine(settings, examination)
    report = examination.report()
    assert (shown, report.ok) == (report.findings, True)
    # a process keeps the parsers it has loaded, also those of other tests
    assert {finding.check for finding in report.problems} <= {"parsers"}
    names = {finding.check for finding in report.findings}
    assert {"connections", "vacuum", "archive", "keys", "stuck_jobs", "versions"} <= names


async def test_few_connections_are_left(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert " in use" in (await server.check_connections(database, settings)).message
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
    assert (await check_versions(database, settings)).level is Level.OK
    await execute(database, "UPDATE workers SET version = '0.0.1'")
    assert_warns(await check_versions(database, settings), "workers of 0.0.1", "restart")


async def test_jobs_that_stand_still(database: Database, settings: Settings) -> None:
    assert (await check_stuck_jobs(database, settings)).message == "none"
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
    assert_warns(await check_stuck_jobs(database, settings), str(job), "forager jobs show")
    await execute(database, "INSERT INTO crawl_states (job_id) VALUES (%s)", job)
    assert (await check_stuck_jobs(database, settings)).level is Level.OK


async def test_jobs_that_wait_for_long(settings: Settings, database: Database) -> None:
    assert (await check_waiting_jobs(database, settings)).message == "none"
    insert = "INSERT INTO crawl_jobs (id, kind, payload, run_after) VALUES (%s, 'selftest', '{}', "
    await execute(database, f"{insert} now() + interval '1 hour')", new_id())
    assert (await check_waiting_jobs(database, settings)).message == "none"
    await execute(database, f"{insert} now() - interval '2 hours')", new_id())
    assert_warns(await check_waiting_jobs(database, settings), "72", "worker_capacity")


async def test_responses_that_are_gone(
    settings: Settings, database: Database, queue: Queue
) -> None:
    job = await start_job(database, open_storage(settings.home / "archive"), queue)
    [ref] = await job.settle([html(1)])
    assert (await check_archive(database, settings)).level is Level.OK
    await job.writer.close()
    (settings.home / "archive" / ref.segment).unlink()
    check = await check_archive(database, settings)
    assert (check.level, check.count) == (Level.FAIL, 1)
    assert str(ref) in check.examples[0]
    assert "backup" in (check.next_step or "")


async def test_a_full_disk_is_a_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await machine.check_space(settings)).level is Level.OK
    monkeypatch.setattr(machine, "LITTLE_SPACE", 1 << 62)
    assert_warns(await machine.check_space(settings), "archive_max_mb")
    monkeypatch.setattr(machine, "NO_SPACE", 1 << 62)
    assert (await machine.check_space(settings)).level is Level.FAIL
    bucket = settings.model_copy(update={"archive_url": "s3://bucket/archive"})
    assert (await machine.check_space(bucket)).level is Level.FAIL


async def test_keys_that_end(settings: Settings, database: Database) -> None:
    assert (await check_keys(database, settings)).message == "none"
    await make_key(database, "lasting", scope=Scope.ADMIN)
    assert (await check_keys(database, settings)).message == "1 active, 1 of them admin"
    made = await make_key(database, "passing", scope=Scope.READ, expires_in=3600)
    assert_warns(await check_keys(database, settings), "passing", made.key.id)
    await execute(database, "UPDATE api_keys SET revoked_at = now()")
    assert_warns(await check_keys(database, settings), "all have expired", "keys create")


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
            assert (check.level, check.message) == (Level.OK, f"the API listens on {address}")
            # killed: its note stays, and nothing listens there
            line.close()
            assert "no API runs here" in (await machine.check_exposure(settings)).message
    assert listening_addresses(settings.home) == []


async def test_traces_need_what_sends_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await machine.check_traces(settings)).message == "not configured"
    asked = settings.model_copy(update={"traces_url": "http://127.0.0.1:4318"})
    assert "4318" in (await machine.check_traces(asked)).message
    monkeypatch.setattr(machine, "find_spec", lambda _: None)
    assert_warns(await machine.check_traces(asked), "pip install")


async def test_a_slot_that_a_wrong_clock_reserved_is_reported(
    settings: Settings, database: Database
) -> None:
    assert (await check_slots(database, settings)).level is Level.OK
    await execute(
        database,
        """
        INSERT INTO domains (domain_name, base_url, slot_delay, next_slot_at)
        VALUES ('far.example', 'https://far.example', 2, now() + interval '1 day'),
               ('slow.example', 'https://slow.example', 90000, now() + interval '1 day')
        """,
    )
    found = await check_slots(database, settings)
    assert_warns(found, "far.example", "clock")
    assert "slow.example" not in found.examples
    await execute(
        database,
        """
        UPDATE domains
           SET next_slot_at = now(), blocked_until = now() + interval '3 days',
               blocked_at = now() + CASE domain_name WHEN 'far.example' THEN interval '1 day'
                                                     ELSE interval '0' END
        """,
    )
    found = await check_slots(database, settings)
    assert_warns(found, "far.example", "clock")
    assert "slow.example" not in found.examples
