"""Progress as it happens: what is sent, when it ends, and what it costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from api.client import Api
from built_site import Crawls
from forager.api import streams
from forager.api.server import serve
from forager.crawl.reports.report import crawl_reports
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: Any
    id: int | None = None


@asynccontextmanager
async def followed(
    api: Api, job_id: object, headers: Mapping[str, str] | None = None
) -> AsyncIterator[AsyncIterator[Event]]:
    path = f"/api/v1/crawls/{job_id}/events"
    async with api.session.get(path, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield _events(response)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            yield Event("comment", text)
        elif text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "event" in fields:
            known = int(fields["id"]) if "id" in fields else None
            yield Event(fields["event"], json.loads(fields["data"]), known)
            fields = {}


async def until(events: AsyncIterator[Event], kind: str, **values: Any) -> Event:
    """The next event of a kind whose data has these values."""
    async with asyncio.timeout(60):
        async for event in events:
            if event.kind == kind and values.items() <= dict(event.data or {}).items():
                return event
    raise AssertionError("the stream has ended")


async def test_a_stream_sends_moves_and_progress_and_ends_with_the_job(
    api: Api, crawls: Crawls
) -> None:
    crawl = await crawls.start()
    job_id = crawl.context.job.id
    async with followed(api, job_id) as events:
        moves = [await until(events, "move") for _ in range(2)]
        assert [move.data["move"] for move in moves] == ["enqueue", "claim"]
        await until(events, "progress", status="processing")
        await crawl.ledger(fetched=3, reasons={"timeout": 1})
        changed = await until(events, "progress", pages=3)
        assert changed.data["ledger"]["failed_by_reason"] == {"timeout": 1}
        await crawl.finish()
        last = await until(events, "move", move="complete")
        await until(events, "progress", status="completed", progress_percentage=100)
        assert [event.kind async for event in events] == ["end"]
    async with followed(api, job_id, {"Last-Event-ID": str(moves[1].id)}) as events:
        assert (await until(events, "move")).id == last.id
        assert [event.kind async for event in events] == ["progress", "end"]
    known = await api.get(
        f"/api/v1/crawls/{job_id}/events", headers={"Last-Event-ID": str(last.id)}
    )
    assert (known.status, known.body) == (204, b"")


async def test_a_quiet_stream_shows_that_it_lives(
    api: Api, crawls: Crawls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.05)
    crawl = await crawls.start()
    async with followed(api, crawl.context.job.id) as events:
        async for event in events:
            if event.kind == "comment":
                break
        else:
            pytest.fail("the stream ended without a sign of life")


async def test_a_stream_of_a_cancelled_job_ends(api: Api, queue: Queue) -> None:
    job_id = (await api.crawl())["job_id"]
    async with followed(api, job_id) as events:
        await until(events, "progress")
        await queue.cancel(UUID(job_id))
        await until(events, "progress", status="cancelled")
        await until(events, "end")


async def test_one_query_serves_all_streams(
    api: Api, crawls: Crawls, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    async def counted(database: Database, ids: list[UUID]) -> Any:
        looks.append(len(ids))
        return await crawl_reports(database, ids)

    monkeypatch.setattr(streams, "crawl_reports", counted)
    jobs = [(await api.crawl(f"https://s{n}.example/"))["job_id"] for n in range(3)]
    async with asyncio.TaskGroup() as group:
        for job_id in jobs * 5:
            group.create_task(_see_pause(api, job_id))
        while len(looks) < 2 or looks[-1] < 3:
            await asyncio.sleep(0.01)
        before = len(looks)
        for job_id in jobs:
            await api.post(f"/api/v1/jobs/{job_id}/pause")
    # fifteen clients saw it, and the looks were those of one
    assert len(looks) - before <= 10
    assert max(looks) == 3


async def _see_pause(api: Api, job_id: str) -> None:
    async with followed(api, job_id) as events:
        await until(events, "progress", status="paused")


async def test_too_many_streams_are_refused_before_they_begin(
    api: Api, crawls: Crawls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_STREAMS", 1)
    job_id = (await crawls.start()).context.job.id
    async with followed(api, job_id) as events:
        await until(events, "progress")
        refused = await api.get(f"/api/v1/crawls/{job_id}/events")
        assert (refused.status, refused.is_problem) == (429, True)


async def test_without_streams_there_are_no_queries(
    api_settings: Settings, database: Database, crawls: Crawls
) -> None:
    hub = streams.ProgressHub(database, interval=0.01)
    job_id = (await crawls.start()).context.job.id
    async with hub.watch(job_id) as (watched, changed):
        await asyncio.wait_for(changed.wait(), 60)
        assert watched.report is not None
        looking = hub._querying
    assert looking is not None
    await asyncio.wait_for(looking, 60)
    assert hub._watched == {}


async def test_a_server_that_stops_ends_its_streams(
    api_settings: Settings, database: Database, crawls: Crawls
) -> None:
    stopping, started = asyncio.Event(), asyncio.Queue[str]()
    serving = asyncio.create_task(
        serve(api_settings, database, stopping, started=started.put_nowait)
    )
    job_id = (await crawls.start()).context.job.id
    async with Api(await started.get()) as api, followed(api, job_id) as events:
        await until(events, "progress")
        stopping.set()
        assert [event.kind async for event in events] == []
    await asyncio.wait_for(serving, 60)
