"""Draining the outbox: how long to wait between attempts, and when to stop.

Messages leave in no promised order: one that failed is tried again after later ones. Each carries
the id and the time of what it tells of, and may arrive twice, so receivers go by those.
"""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Database
from forager.services.chunks import in_chunks
from forager.services.service import backoff
from forager.webhooks.store import outbox as store
from forager.webhooks.store.events import WEBHOOKS
from forager.webhooks.store.outbox import Failure, Message
from forager.webhooks.store.webhooks import delete_orphans

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


def failure_of(message: Message, error: str) -> Failure:
    """What becomes of a message that was not taken; its age is seen to by `tidy`."""
    attempts = message.attempts + 1
    if attempts >= MAX_ATTEMPTS:
        return Failure(message.id, error, None)
    return Failure(message.id, error, backoff(attempts, FIRST_WAIT, LONGEST_WAIT))


async def tidy(database: Database, topic: str) -> Tidied:
    """Give up messages that are too old, and delete those that were done long ago."""
    given_up = await in_chunks(
        database,
        store.give_up_old,
        topic=topic,
        seconds=MAX_AGE,
        error="not taken within 3 days",
        limit=CHUNK,
    )
    purged = await in_chunks(database, store.purge, seconds=KEPT_FOR, limit=CHUNK)
    return Tidied(given_up, purged)


async def clean_up_webhooks(database: Database) -> int:
    """Give up and delete old messages, and those of deleted webhooks; return their number."""
    tidied = await tidy(database, WEBHOOKS)
    orphans = await in_chunks(database, delete_orphans, limit=CHUNK)
    return tidied.given_up + tidied.purged + orphans
