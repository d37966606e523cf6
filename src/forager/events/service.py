"""Events, recorded with a message to each subscribed webhook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from forager.amounts import amount_text
from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.events import store
from forager.events.event import EventContent, EventRow, NewEvent, checked_kind
from forager.events.store import (
    CHANGES,
    OLD_EVENTS,
    enqueue_changes,
    occurred_since,
    select_subscribed_patterns,
)
from forager.extract.text import storable
from forager.fetch.domains.service import domains_of

__all__ = [
    "CHANGES",
    "OLD_EVENTS",
    "enqueue_changes",
    "occurred_since",
    "select_subscribed_patterns",
]


async def record_events(connection: Connection, events: Sequence[NewEvent]) -> None:
    """Record events with a message to each subscribed webhook, in the transaction of the caller."""
    if events:
        payloads = [orjson.dumps(plain(event.payload)).decode() for event in events]
        await store.insert_events(connection, events, payloads=payloads)


async def event_contents(database: Database, event_ids: Sequence[int]) -> list[EventContent]:
    """Events as they are sent to webhooks."""
    return await database.run(store.select_contents, event_ids)


async def list_events(
    database: Database,
    *,
    kind: str | None = None,
    domain: str | None = None,
    product_id: int | None = None,
    source_id: str | None = None,
    user_id: UUID | None = None,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[EventRow]:
    """Events, newest first; with an owner, those of sources only if they are that owner's."""
    check_limit(limit)
    async with database.connection() as connection:
        found = await store.select_events(
            connection,
            kind=None if kind is None else checked_kind(kind).value,
            domain_ids=None if domain is None else await domains_of(connection, domain),
            product_id=product_id,
            source_id=source_id,
            user_id=user_id,
            since=since,
            before=decode_number(cursor),
            limit=limit + 1,
        )
    return page_of(found, limit, lambda event: event.id)


def plain(value: Any) -> Any:
    """A payload in JSON types that PostgreSQL accepts; amounts are text, to keep all digits."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Decimal):
        return amount_text(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value
