"""Draining the outbox: how long to wait between attempts, and when to stop.

Messages leave in no promised order: one that failed is tried again after later ones. Each carries
the id and the time of what it tells of, and may arrive twice, so receivers go by those.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from forager.db.database import Connection, Database
from forager.webhooks.store import outbox as store
from forager.webhooks.store.outbox import Failure, Message

# between attempts at one message: 30 s, doubling up to 6 hours
FIRST_WAIT = 30.0
LONGEST_WAIT = 6 * 3600.0
MAX_ATTEMPTS = 20
MAX_AGE = 3 * 86400.0
# how long those that are done with stay to be looked at
KEPT_FOR = 14 * 86400.0
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Tidied:
    given_up: int
    purged: int


def backoff(failures: int, first: float, longest: float) -> float:
    """The wait after so many failures, spread so that not all come back at once."""
    wait = min(first * 2.0 ** min(max(failures - 1, 0), 30), longest)
    return wait * random.uniform(0.75, 1.0)  # noqa: S311 - not a secret


def failure_of(message: Message, error: str) -> Failure:
    """What becomes of a message that was not taken; its age is seen to by `tidy`."""
    attempts = message.attempts + 1
    if attempts >= MAX_ATTEMPTS:
        return Failure(message.id, error, None)
    return Failure(message.id, error, backoff(attempts, FIRST_WAIT, LONGEST_WAIT))


async def tidy(database: Database, topic: str) -> Tidied:
    """Give up what is too old, and delete what has been done with for long."""

    async def give_up(connection: Connection) -> int:
        return await store.give_up_old(
            connection, topic, seconds=MAX_AGE, error="not taken within 3 days", limit=CHUNK
        )

    async def purge(connection: Connection) -> int:
        return await store.purge(connection, seconds=KEPT_FOR, limit=CHUNK)

    return Tidied(await in_chunks(database, give_up), await in_chunks(database, purge))


async def in_chunks(database: Database, step: Callable[[Connection], Awaitable[int]]) -> int:
    """Repeat a step that does up to CHUNK rows until none are left; how many it did in all."""
    total = 0
    while True:
        async with database.connection() as connection:
            done = await step(connection)
        total += done
        if done < CHUNK:
            return total
