"""Events are delivered: signed, and each of them once."""

from __future__ import annotations

import asyncio

from forager.db.database import Database
from forager.services.supervisor import running
from forager.settings import Settings
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import Webhooks
from forager.webhooks.signing import verify_signature
from products.rows import add_product
from webhooks.listening import happen, listen, secret_of
from webhooks.receiver import Receiver


async def test_an_event_arrives_whole_and_signed(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    product = await add_product(database, 1)
    issued = await listen(webhooks, receiver)
    await happen(database, product_id=product)

    assert await deliverer.run_once() == 1

    (got,) = receiver.got
    assert got.path == "/hook"
    assert got.headers["forager-event"] == got.json["kind"] == "product.price_changed"
    assert got.json["product"] == {
        "id": product,
        "url": "https://shop.example/p/1",
        "name": "Product 1",
    }
    assert got.json["data"] == {"n": 0, "old": "10", "new": "9"}
    assert got.headers["content-type"] == "application/json"
    verify_signature(secret_of(issued), got.headers["forager-signature"], got.body)
    (sent,) = (await webhooks.deliveries(issued.webhook.id)).items
    assert got.headers["forager-delivery"] == str(sent.id)
    assert got.headers["forager-attempt"] == "1"
    assert got.json["id"] == sent.event_id
    assert sent.sent_at is not None
    assert await deliverer.run_once() == 0


async def test_many_messages_leave_in_small_claims(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    await listen(webhooks, receiver)
    await happen(database, 50)

    assert [await deliverer.run_once() for _ in range(4)] == [20, 20, 10, 0]
    assert sorted(got.json["data"]["n"] for got in receiver.got) == list(range(50))


async def test_two_deliverers_send_each_message_once(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    await listen(webhooks, receiver)
    await happen(database, 30)

    await asyncio.gather(*(Deliverer(database, settings).run_once() for _ in range(4)))

    assert len({got.headers["forager-delivery"] for got in receiver.got}) == len(receiver.got) == 30


async def test_one_that_runs_sends_what_happens_later(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    async with running([deliverer.service()]), asyncio.timeout(30):
        await listen(webhooks, receiver)
        await happen(database, 25)
        while len(receiver.got) < 25:
            receiver.arrived.clear()
            await receiver.arrived.wait()

    assert len({got.json["id"] for got in receiver.got}) == 25
