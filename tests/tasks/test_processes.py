"""`forager up`: from a tracked URL to its product, through a killed worker and a graceful stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from servers.shop import Shop
from support.waiting import LIMIT, eventually
from tasks.working import Tasks

FORAGER = Path(sys.executable).parent / "forager"


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([FORAGER, "--log-level", "critical", *arguments])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def task_worker(process: subprocess.Popen[bytes]) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        if "forager.tasks" in child.cmdline():
            return child
    return None


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, tasks: Tasks) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(tasks.settings.home))
    monkeypatch.setenv("FORAGER_SCHEDULER_INTERVAL", "0.1")
    monkeypatch.setenv("FORAGER_POLL_INTERVAL", "0.1")
    monkeypatch.setenv("FORAGER_HEARTBEAT_INTERVAL", "1")


async def test_everything_together(tasks: Tasks, shop: Shop) -> None:
    (first,) = await tasks.add(shop.add("a"), status="pending")
    with running("up") as process:
        await tasks.when(first, "completed")
        worker = task_worker(process)
        assert worker is not None
        worker.kill()
        await tasks.forget_permits()
        (second,) = await tasks.add(shop.add("b"), status="pending")
        await tasks.when(second, "completed")
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
    assert await tasks.sql("SELECT id FROM workers") == []


async def test_a_worker_for_tasks_alone_and_one_without(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"), status="pending")
    with running("worker", "--no-tasks"):

        async def jobs_only() -> bool:
            return await tasks.sql("SELECT role FROM workers") == [("jobs",)]

        await eventually(jobs_only)
        await tasks.when(task_id, "queued")
    await tasks.sql("DELETE FROM workers")
    with running("worker", "--no-jobs") as process:
        await tasks.when(task_id, "completed")
        assert await tasks.sql("SELECT role FROM workers") == [("tasks",)]
        # a parent that dies without a word takes its worker with it
        worker = task_worker(process)
        assert worker is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        worker.wait(LIMIT)
