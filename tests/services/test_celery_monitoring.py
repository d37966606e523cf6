"""What Celery's own tools see of the workers: `celery status`, `celery inspect` and events."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forager.db.database import Database
from forager.services.supervisor import running
from forager.settings import Settings
from servers.shop import Shop
from services.dispatching import BIN, beside, by_celery, environment_of, worker
from services.servers.rabbitmq import RabbitMQ
from support.waiting import eventually
from tasks.working import Tasks

CELERY = (str(BIN / "celery"), "-A", "forager.dispatch.celery")


@pytest.fixture
def tasks(database: Database, settings: Settings, rabbitmq: RabbitMQ) -> Tasks:
    return Tasks(database, by_celery(settings, rabbitmq))


async def inspect(tasks: Tasks, what: str) -> dict[str, Any]:
    """The answers of all workers, by the first part of their names."""
    process = await asyncio.create_subprocess_exec(
        *CELERY, "inspect", what, "--json", "--timeout", "5",
        env=environment_of(tasks.settings), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    out, _ = await process.communicate()
    answers = json.loads(out) if process.returncode == 0 else {}
    return {name.partition("@")[0]: answer for name, answer in answers.items()}


async def test_workers_answer_status_and_inspect(tasks: Tasks) -> None:
    async with worker(tasks) as first, worker(tasks) as second:

        async def both() -> dict[str, Any] | None:
            found = await inspect(tasks, "active_queues")
            return found if len(found) == 2 else None

        found = await eventually(both)
        assert set(found) == {f"forager-{each.started.pid}" for each in (first, second)}
        [queues, _] = found.values()
        assert "forager.crawl.normal" in {queue["name"] for queue in queues}


async def test_events_name_what_was_received_and_done(
    tasks: Tasks, shop: Shop, tmp_path: Path
) -> None:
    """`celery events` prints what Flower shows."""
    await tasks.add(shop.add("a"), status="pending")
    printed = tmp_path / "events"
    with printed.open("wb") as out:
        watching = subprocess.Popen(
            [*CELERY, "events", "--dump"], env=environment_of(tasks.settings), stdout=out
        )
    try:
        async with running(beside(tasks.database, tasks.settings)), worker(tasks):

            async def reported() -> bool:
                await tasks.sql(
                    "UPDATE crawl_tasks SET next_crawl_at = now()"
                    " WHERE status = 'completed' RETURNING 1"
                )
                text = printed.read_text()
                return all(kind in text for kind in ("heartbeat", "received", "succeeded"))

            await eventually(reported)
    finally:
        watching.kill()
        watching.wait()


async def test_monitoring_can_be_turned_off(
    tasks: Tasks, database: Database, settings: Settings, rabbitmq: RabbitMQ
) -> None:
    silent = Tasks(database, by_celery(settings, rabbitmq, broker_monitoring=False))
    async with worker(silent) as hidden, worker(tasks) as shown:
        found = await eventually(lambda: inspect(tasks, "stats"))
        assert set(found) == {f"forager-{shown.started.pid}"}
        assert hidden.started.exit_code is None
