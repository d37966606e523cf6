"""Gauges: read from the tables, remembered for a while, and never a burden."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.workers import Registration
from forager.metrics import gauges as module
from forager.metrics.gauges import Gauges
from forager.settings import Settings
from support.sql import execute

ADD_JOB = """
    INSERT INTO crawl_jobs (id, kind, payload, run_after)
    VALUES (%s, 'selftest', '{}', now() - interval '90 seconds')
"""


@pytest.fixture
def gauges(database: Database, settings: Settings) -> Gauges:
    return Gauges(database, settings)


async def test_how_things_stand(gauges: Gauges, database: Database, settings: Settings) -> None:
    await execute(database, ADD_JOB, new_id())
    await Registration(database, new_id(), capacity=1, role="tasks").renew()
    await Registration(database, new_id(), capacity=1, role="jobs").renew()
    await execute(
        database, "UPDATE workers SET last_seen = now() - interval '1 hour' WHERE role = 'jobs'"
    )
    found = await gauges.values()
    assert found["forager_jobs", ("pending",), ""] == 1
    assert found["forager_jobs", ("processing",), ""] == 0
    assert found["forager_queue_oldest_seconds", ("jobs",), ""] >= 90
    assert found["forager_queue_oldest_seconds", ("tasks",), ""] == 0
    assert found["forager_workers", ("tasks", "alive"), ""] == 1
    assert found["forager_workers", ("jobs", "unreachable"), ""] == 1
    assert found["forager_workers", ("jobs", "alive"), ""] == 0
    assert found["forager_database_connections", ("limit",), ""] > 0


async def test_they_are_remembered_for_a_while(
    gauges: Gauges, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gauges.values()
    await execute(database, ADD_JOB, new_id())
    assert (await gauges.values())["forager_jobs", ("pending",), ""] == 0
    monkeypatch.setattr("time.monotonic", lambda: float("inf"))
    assert (await gauges.values())["forager_jobs", ("pending",), ""] == 1


async def test_what_cannot_be_read_is_left_out(
    gauges: Gauges, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, lock_ms=20))
    async with database.transaction() as connection:
        await connection.execute("LOCK TABLE webhooks")
        found = await gauges.values()
    assert found["forager_jobs", ("pending",), ""] == 0
    assert not any(name == "forager_webhooks" for name, _, _ in found)
