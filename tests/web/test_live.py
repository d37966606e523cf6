"""Streams: a page's parts arrive when they change, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from built_site import SOURCE, Crawls
from forager.access.keys import public_id, revoke_key
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from web.visitor import Message, Visitor

LIMIT = 60


async def until_look(messages: AsyncIterator[Message]) -> list[Message]:
    """What arrives up to the next look at the database."""
    found = []
    async with asyncio.timeout(LIMIT):
        async for message in messages:
            if message.kind == "look":
                break
            found.append(message)
    return found


async def until_kind(messages: AsyncIterator[Message], kind: str) -> Message:
    async with asyncio.timeout(LIMIT):
        async for message in messages:
            if message.kind == kind:
                return message
    raise AssertionError(f"the stream ended without {kind}")


async def test_first_everything_then_only_what_changed(visitor: Visitor, queue: Queue) -> None:
    await queue.enqueue(NewJob(kind="selftest", source_id="one"))
    async with visitor.stream("/jobs") as messages:
        first = await until_look(messages)
        parts = {"live_summary", "live_tabs", "live_jobs"}
        assert {message.data["id"] for message in first} == parts
        assert await until_look(messages) == []
        await queue.enqueue(NewJob(kind="selftest", source_id="another"))
        changed = await until_kind(messages, "part")
        assert changed.data["id"] in parts


async def test_a_part_is_what_the_page_has(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    page = (await visitor.get("/sources")).text
    async with visitor.stream("/sources") as messages:
        [part] = await until_look(messages)
    assert f'id="{part.data["id"]}"' in page
    assert part.data["html"].strip() in page
    assert SOURCE in part.data["html"]


async def test_a_stream_ends_with_the_session(
    visitor: Visitor, database: Database, admin_key: str
) -> None:
    await visitor.sign_in(admin_key)
    async with visitor.stream("/jobs") as messages:
        await until_look(messages)
        await revoke_key(database, public_id(admin_key))
        await until_kind(messages, "gone")


async def test_the_first_run_page_gives_way_to_the_overview(visitor: Visitor, queue: Queue) -> None:
    async with visitor.stream("/") as messages:
        await until_look(messages)
        await queue.enqueue(NewJob(kind="selftest"))
        await until_kind(messages, "gone")


async def test_streams_are_no_longer_counted_once_they_are_closed(visitor: Visitor) -> None:
    for _ in range(3):
        async with visitor.stream("/jobs") as messages:
            await until_look(messages)
    assert (await visitor.get("/jobs")).status == 200
