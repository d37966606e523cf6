"""Receivers that refuse, hang or disappear: retries, pauses and giving up."""

from __future__ import annotations

import asyncio

import pytest

from forager.db.database import Database
from forager.errors import NotAllowed
from forager.fetch.response import ResponseLimits
from forager.outbox import store as outbox
from forager.outbox.message import Lane, RetryPolicy
from forager.services.supervisor import running
from forager.settings import Settings
from forager.webhooks import delivery, posting
from forager.webhooks.delivery import Deliverer
from forager.webhooks.posting import WebhookPoster
from forager.webhooks.service import DeliveryState, WebhookChanges, Webhooks, clean_up_webhooks
from forager.webhooks.webhook import TOPIC
from products.rows import add_product
from support.sql import execute
from webhooks.listening import happen, listen, states
from webhooks.receiver import TAKES, Receiver, answering


async def end_cooldown(database: Database) -> None:
    """As if the time that webhooks and messages wait had passed."""
    async with database.connection() as connection:
        await connection.execute("UPDATE webhooks SET rests_until = now()")
        await connection.execute("UPDATE outbox SET due_at = now()")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answering(500), "answered 500"),
        (answering(404), "answered 404"),
        (answering(302, "Location: http://127.0.0.1:1/"), "redirects are not followed"),
        (b"what?\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", "headers"),
    ],
)
async def test_what_is_not_taken_waits_and_is_tried_again(
    database: Database,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
    answer: bytes,
    error: str,
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = answer
    await happen(database)

    assert await deliverer.run_once() == 0

    (waiting,) = (await webhooks.deliveries(issued.webhook.id)).items
    assert waiting.attempts == 1
    assert error in (waiting.last_error or "")
    webhook = await webhooks.get(issued.webhook.id)
    assert (webhook.failures, webhook.waiting, webhook.retries_at) == (1, 1, None)
    assert await deliverer.run_once() == 0, "the message backs off"
    assert len(receiver.got) == 1

    receiver.answer = answering(200)
    await end_cooldown(database)
    assert await deliverer.run_once() == 1
    assert (await webhooks.get(issued.webhook.id)).failures == 0
    first, second = receiver.got
    assert first.headers["forager-delivery"] == second.headers["forager-delivery"]
    assert [got.headers["forager-attempt"] for got in receiver.got] == ["1", "2"]


async def test_the_last_responses_are_recorded_without_secrets_and_bounded(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    webhook = (await listen(webhooks, receiver)).webhook
    await happen(database)
    body = b"\x1b[2Jno room\x00\n" + b"x" * 5000
    head = f"HTTP/1.1 503 So\r\nX-Why: full\r\nSet-Cookie: a=b\r\nContent-Length: {len(body)}"
    receiver.answer = f"{head}\r\n\r\n".encode() + body
    for _ in range(4):
        await deliverer.run_once()
        await end_cooldown(database)
    receiver.answer = TAKES
    await deliverer.run_once()
    [message] = (await webhooks.deliveries(webhook.id)).items
    shown, event = await webhooks.delivery(webhook.id, message.id)
    assert event is not None
    last, refused, _ = shown.responses
    assert [each["attempt"] for each in shown.responses] == [5, 4, 3]
    assert (last["status"], last["error"]) == (204, None)
    assert (refused["status"], refused["error"]) == (503, "the receiver answered 503")
    assert refused["headers"] == {"X-Why": "full", "Content-Length": str(len(body))}
    assert refused["body"].startswith(" [2Jno room\nxxx")
    assert len(refused["body"]) < 2048


async def test_a_receiver_that_hangs_holds_up_no_other(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    async with Receiver(None) as hanging:
        stuck = await listen(webhooks, hanging)
        await listen(webhooks, receiver)
        await happen(database, 41)
        async with running([Deliverer(database, settings).service()]), asyncio.timeout(30):
            await hanging.arrived.wait()
            while len(receiver.got) < 41:
                receiver.arrived.clear()
                await receiver.arrived.wait()
        # what was not tried, or not answered yet, is given back and not kept from others
        async with database.connection() as connection:
            claimed = await outbox.claim(connection, [Lane(TOPIC, stuck.webhook.id)], lease=1)
    assert len(claimed) == 41


async def test_a_receiver_that_does_not_answer_is_a_failure(receiver: Receiver) -> None:
    receiver.answer = None
    limits = ResponseLimits(connect=5, read=0.05, total=5)
    async with WebhookPoster("test", limits) as poster:
        posted = await poster.post(receiver.url, b"{}", {}, allow_private=True)
    assert posted.status is None
    assert posted.error == "the server sent nothing for 0.05 s"


async def test_the_body_of_a_response_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setattr(posting, "DRAIN_SECONDS", 0.05)
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"
    receiver.drips = b"."
    async with WebhookPoster("test") as poster:
        slow = await poster.post(receiver.url, b"{}", {}, allow_private=True)
        receiver.drips = b"." * 100_000
        large = await poster.post(receiver.url, b"{}", {}, allow_private=True)
    assert slow.taken
    assert large.taken


async def test_retry_after_is_heeded(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = answering(503, "Retry-After: 1800")
    await happen(database)
    await deliverer.run_once()

    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT rests_until > now() + interval '29 min' FROM webhooks"
        )
        assert await cursor.fetchone() == (True,)
    assert (await webhooks.get(issued.webhook.id)).is_active


async def test_410_disables_the_webhook(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = answering(410)
    await happen(database)
    await deliverer.run_once()

    webhook = await webhooks.get(issued.webhook.id)
    assert (webhook.is_active, webhook.disabled_reason) == (False, "it answered 410 Gone")
    assert await states(webhooks, webhook.id) == ["failed"]
    await happen(database)
    assert await states(webhooks, webhook.id) == ["failed"]
    with pytest.raises(NotAllowed, match="disabled"):
        await webhooks.retry(webhook.id)

    receiver.answer = answering(200)
    await webhooks.enable(webhook.id)
    assert await webhooks.retry(webhook.id) == 1
    assert await deliverer.run_once() == 1


async def test_failures_of_some_messages_do_not_slow_the_others(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    """Every seventh is refused: the others arrive, and the webhook is not paused."""
    issued = await listen(webhooks, receiver)
    receiver.refuses = lambda got: got.json["data"]["n"] % 7 == 3
    await happen(database, 60)

    assert sum([await deliverer.run_once() for _ in range(3)]) == 51
    webhook = await webhooks.get(issued.webhook.id)
    assert (webhook.waiting, webhook.retries_at) == (9, None)
    assert len(receiver.got) == 60, "the refused ones back off"

    receiver.refuses = None
    await end_cooldown(database)
    assert await deliverer.run_once() == 9


async def test_a_webhook_is_paused_after_several_failures_in_a_row(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = answering(500)
    await happen(database, 20)

    assert await deliverer.run_once() == 0
    assert len(receiver.got) == 8, "four at once, until five have failed in a row"
    webhook = await webhooks.get(issued.webhook.id)
    assert webhook.retries_at is not None
    assert (webhook.failures, webhook.waiting) == (8, 20)
    assert await deliverer.run_once() == 0, "it is paused"

    await end_cooldown(database)
    assert await deliverer.run_once() == 0
    assert len(receiver.got) == 9, "one message to see whether it works again"
    receiver.answer = answering(200)
    await end_cooldown(database)
    assert [await deliverer.run_once() for _ in range(2)] == [1, 19]
    assert (await webhooks.get(issued.webhook.id)).failures == 0


async def test_events_of_one_product_arrive_in_order_if_asked_for(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    first, second = await add_product(database, 1), await add_product(database, 2)
    issued = await listen(webhooks, receiver, ordered=True)
    for product in (first, second, first):
        await happen(database, product_id=product)
    receiver.refuses = lambda got: got.json["product"]["id"] == first

    assert await deliverer.run_once() == 1
    assert [got.json["product"]["id"] for got in receiver.got] == [first, second]
    assert await deliverer.run_once() == 0, "the later event waits for the earlier one"

    receiver.refuses = None
    await end_cooldown(database)
    assert [await deliverer.run_once() for _ in range(3)] == [1, 1, 0]
    ids = [got.json["id"] for got in receiver.got if got.json["product"]["id"] == first]
    assert ids == sorted(ids)
    changed = await webhooks.change(issued.webhook.id, WebhookChanges(ordered=False))
    assert not changed.webhook.ordered


async def test_a_message_is_given_up_after_its_last_attempt(
    database: Database,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "RETRY", RetryPolicy(5.0, 5.0, max_attempts=2))
    issued = await listen(webhooks, receiver)
    receiver.answer = answering(500)
    await happen(database)
    for _ in range(3):
        await deliverer.run_once()
        await end_cooldown(database)

    assert len(receiver.got) == 2
    assert await states(webhooks, issued.webhook.id) == ["failed"]
    failed = await webhooks.deliveries(issued.webhook.id, state=DeliveryState.FAILED)
    assert failed.items[0].last_error == "the receiver answered 500"


async def test_old_messages_are_given_up_and_done_ones_go(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    await happen(database, 2)
    await execute(
        database, "UPDATE outbox SET created_at = now() - interval '73 h' WHERE id % 2 = 0"
    )
    assert await clean_up_webhooks(database) == 1, "given up"
    assert sorted(await states(webhooks, issued.webhook.id)) == ["failed", "waiting"]
    assert await deliverer.run_once() == 1
    await execute(database, "UPDATE outbox SET given_up_at = now() - interval '15 d'")
    assert await clean_up_webhooks(database) == 1, "deleted"
    assert "waiting" not in await states(webhooks, issued.webhook.id)
