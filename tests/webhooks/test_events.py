"""Events are committed with their changes, and each webhook gets the kinds it subscribed to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from forager.db.database import Database
from forager.db.retention import delete_rows
from forager.errors import InvalidInput, NotFound
from forager.events.event import EventKind, NewEvent
from forager.events.service import list_events, record_events
from forager.events.store import OLD_EVENTS
from products.rows import add_product, insert_domain
from support.sql import execute, fetch_value


async def record(database: Database, *events: NewEvent) -> None:
    async with database.transaction() as connection:
        await record_events(connection, events)


async def test_a_domain_means_its_subdomains_for_lists_and_webhooks(database: Database) -> None:
    async with database.transaction() as connection:
        top = await insert_domain(connection, "shop.example")
        below = await insert_domain(connection, "www.shop.example")
        other = await insert_domain(connection, "myshop.example")
    of_top = await add_webhook(database, "https://a.example/", domain_id=top)
    of_below = await add_webhook(database, "https://b.example/", domain_id=below)
    kind = EventKind.PRODUCT_ADDED
    await record(database, *(event(kind, domain) for domain in (top, below, other)))
    assert await messages(database) == [(of_top, kind), (of_top, kind), (of_below, kind)]
    for host, count in (("shop.example", 2), ("www.shop.example", 1), ("m.shop.example", 1)):
        assert len((await list_events(database, domain=host)).items) == count, host


async def add_webhook(
    database: Database,
    url: str,
    *,
    kinds: tuple[str, ...] = (),
    domain_id: int | None = None,
    active: bool = True,
) -> int:
    return int(
        await fetch_value(
            database,
            """
            INSERT INTO webhooks (url, secret, kinds, domain_id, is_active)
            VALUES (%s, '', %s, %s, %s) RETURNING id
            """,
            url,
            list(kinds),
            domain_id,
            active,
        )
    )


async def messages(database: Database) -> list[tuple[Any, ...]]:
    return await execute(
        database,
        """
            SELECT o.lane, e.kind
              FROM outbox o JOIN catalog_events e ON e.id = o.ref_id
             ORDER BY o.lane, e.id
            """,
    )


def event(
    kind: EventKind, domain_id: int | None = None, product_id: int | None = None, **payload: Any
) -> NewEvent:
    return NewEvent(kind, product_id, domain_id, payload)


async def test_without_webhooks_an_event_leaves_no_message(database: Database) -> None:
    await record(database, event(EventKind.PRODUCT_ADDED))

    assert len((await list_events(database)).items) == 1
    assert await messages(database) == []


async def test_nothing_to_record_is_no_statement(database: Database) -> None:
    await record(database)

    assert (await list_events(database)).items == []


async def test_each_webhook_gets_what_it_asked_for(database: Database) -> None:
    async with database.connection() as connection:
        one = await insert_domain(connection, "one.example")
        two = await insert_domain(connection, "two.example")
    everything = await add_webhook(database, "https://a.example/")
    prices = await add_webhook(database, "https://b.example/", kinds=("product.price_changed",))
    of_two = await add_webhook(database, "https://c.example/", domain_id=two)
    await add_webhook(database, "https://d.example/", active=False)

    await record(
        database,
        event(EventKind.PRICE_CHANGED, one),
        event(EventKind.AVAILABILITY_CHANGED, two),
        event(EventKind.AUDIT),
    )

    assert await messages(database) == [
        (everything, "product.price_changed"),
        (everything, "product.availability_changed"),
        (everything, "catalog.audit"),
        (prices, "product.price_changed"),
        (of_two, "product.availability_changed"),
    ]


async def test_messages_of_a_rolled_back_transaction_are_not_sent(database: Database) -> None:
    await add_webhook(database, "https://a.example/")

    async def broken() -> None:
        async with database.transaction() as connection:
            await record_events(connection, [event(EventKind.PRODUCT_ADDED)])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await broken()

    assert (await list_events(database)).items == []
    assert await messages(database) == []


async def test_hostile_and_exact_values_are_kept(database: Database) -> None:
    payload = {"name": "a\0b\ud800", "price": Decimal("1E+2"), "kind": EventKind.AUDIT, "l": (1,)}
    await record(database, NewEvent(EventKind.PRICE_CHANGED, None, None, payload))

    (found,) = (await list_events(database)).items
    assert found.payload == {"name": "ab�", "price": "100", "kind": "catalog.audit", "l": [1]}


async def test_lists_are_filtered_and_paged(database: Database) -> None:
    product = await add_product(database, 1)
    async with database.connection() as connection:
        domain_id = await insert_domain(connection)
    await record(database, *[event(EventKind.PRICE_CHANGED, n=number) for number in range(5)])
    await record(database, event(EventKind.PRODUCT_ADDED, domain_id, product))

    first = await list_events(database, kind="product.price_changed", limit=3)
    rest = await list_events(
        database, kind="product.price_changed", cursor=first.next_cursor, limit=3
    )
    assert [found.payload["n"] for found in (*first.items, *rest.items)] == [4, 3, 2, 1, 0]
    assert rest.next_cursor is None
    (of_product,) = (await list_events(database, product_id=product)).items
    assert of_product.domain == "shop.example"
    assert (await list_events(database, domain="shop.example")).items == [of_product]
    later = datetime.now(UTC) + timedelta(days=1)
    assert (await list_events(database, since=later)).items == []


async def test_unknown_names_are_said(database: Database) -> None:
    with pytest.raises(InvalidInput, match="not an event kind"):
        await list_events(database, kind="product.eaten")
    with pytest.raises(NotFound, match=r"nowhere\.example"):
        await list_events(database, domain="nowhere.example")
    with pytest.raises(InvalidInput, match="cursor"):
        await list_events(database, cursor="9" * 30)


async def test_old_events_go_once_everybody_has_heard(database: Database) -> None:
    await record(database, event(EventKind.PRODUCT_ADDED))
    await add_webhook(database, "https://a.example/")
    await record(database, event(EventKind.PRICE_CHANGED))
    async with database.connection() as connection:
        await connection.execute("UPDATE catalog_events SET occurred_at = now() - interval '9 d'")

        assert await delete_rows(connection, OLD_EVENTS, days=10, limit=100) == 0
        assert await delete_rows(connection, OLD_EVENTS, days=8, limit=100) == 1
        await connection.execute("UPDATE outbox SET sent_at = now()")
        assert await delete_rows(connection, OLD_EVENTS, days=8, limit=100) == 1
