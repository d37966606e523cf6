"""Workers of a region, through real processes."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from forager.db.database import Database
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.workers import list_workers
from forager.settings import Settings
from support.cli import FORAGER, forager
from support.waiting import LIMIT, eventually

pytestmark = pytest.mark.usefixtures("command_line")


@contextmanager
def working(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([FORAGER, "worker", *arguments], stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT)


def test_a_region_has_a_short_name() -> None:
    refused = forager("worker", "--region", "The EU")
    assert refused.code != 0
    assert "--region" in refused.err


async def test_a_worker_says_where_it_is(database: Database, settings: Settings) -> None:
    with working("--region", "eu", "--no-tasks"):
        found = await eventually(partial(list_workers, database, settings))
        assert [worker.region for worker in found] == ["eu"]
        listed = await asyncio.to_thread(forager, "workers", "list", "--json")
        assert [worker["region"] for worker in listed.json["items"]] == ["eu"]


async def test_a_crawl_in_the_foreground_is_left_to_its_region(
    database: Database, settings: Settings, queue: Queue
) -> None:
    await Domains(database).add("docs.example", DomainChanges(region="eu"))
    process = subprocess.Popen(
        [FORAGER, "crawl", "https://docs.example/"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(LIMIT):
            said = await asyncio.to_thread(process.stderr.readline)
            assert "assigned to the region eu" in said
            # the foreground looks for its job too, and must not get it
            await eventually(partial(list_workers, database, settings))
        (job,) = (await queue.list_jobs()).items
        assert (job.status, job.region) == (Status.PENDING, "eu")
    finally:
        process.kill()
        process.communicate()
