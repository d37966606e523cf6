"""The current state is read for every response; only expensive counts are cached."""

from __future__ import annotations

import pytest

from forager.api import services
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.tasks.dead_letters import LetterFilter, drop_letters
from support.sql import execute
from tasks.tasks_at_hand import make_domain, make_task
from web.visitor import Visitor


@pytest.fixture(autouse=True)
def everything_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "CHEAP", 0.0)
    monkeypatch.setattr(services, "KEPT_FACTOR", 1e9)
    monkeypatch.setattr(services, "LONGEST", 1e9)


async def hold_all(database: Database) -> None:
    await execute(database, "UPDATE task_control SET hold = 'paused'")


async def die(database: Database, number: int) -> None:
    domain_id = await make_domain(database, f"shop{number}.example")
    task_id = await make_task(database, domain_id, status="failed")
    await execute(
        database,
        """
            INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                      error_message, message_key, attempts)
            SELECT id, domain_id, url, 'download', 'network', 'timeout', 'no answer', 'no answer', 4
              FROM crawl_tasks WHERE id = %s
            """,
        task_id,
    )


async def test_the_overview_shows_what_runs_now(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    await queue.enqueue(NewJob(kind="crawl", payload={"urls": ["https://a.example/"]}))
    first = (await visitor.get("/")).text
    assert "As of" in first
    assert "failed permanently" not in first
    await die(database, 1)
    await hold_all(database)
    await queue.claim(new_id(), kinds=["crawl"])
    second = (await visitor.get("/")).text
    assert "1 task failed permanently" in second
    assert "All tasks are paused" in second
    assert second.count("s-processing") > first.count("s-processing")


async def test_dead_letters_are_counted_again_when_there_are_others(
    visitor: Visitor, database: Database
) -> None:
    await die(database, 1)
    page = (await visitor.get("/errors")).text
    assert "shop1.example" in page
    assert "As of" in page
    await die(database, 2)
    assert "shop2.example" in (await visitor.get("/errors")).text
    await drop_letters(database, LetterFilter())
    assert "No permanently failed tasks" in (await visitor.get("/errors")).text


async def test_parsers_say_as_of_when(visitor: Visitor) -> None:
    assert "As of" in (await visitor.get("/parsers")).text
