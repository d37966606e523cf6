"""Waiting for events: conditions, locks, processes. No test sleeps for a time that it guessed."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast, overload

import psutil

from forager.db.database import Database

# for a machine that is busy; nothing is measured by it
LIMIT = 60.0

Answer = TypeVar("Answer")


@overload
async def eventually(
    condition: Callable[[], Awaitable[Answer]], limit: float = LIMIT
) -> Answer: ...
@overload
async def eventually(condition: Callable[[], Answer], limit: float = LIMIT) -> Answer: ...
async def eventually(condition: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Ask until the answer is true; the answer. The longer it takes, the less often it asks."""
    start = time.monotonic()
    async with asyncio.timeout(limit):
        while True:
            answer = condition()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
            waited = time.monotonic() - start
            await asyncio.sleep(min(max(0.02, waited / 25), 0.1))


async def waits_for_lock(database: Database) -> bool:
    """Whether a session of this database waits for a lock."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return await cursor.fetchone() is not None


async def lock_waited_for(database: Database) -> None:
    await eventually(lambda: waits_for_lock(database))


def lives(pid: int) -> bool:
    """A zombie counts as dead: its parent has not collected it yet."""
    try:
        return cast(str, psutil.Process(pid).status()) != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(*pids: int) -> None:
    """Return when none of these processes lives."""
    await eventually(lambda: not any(lives(pid) for pid in pids))
