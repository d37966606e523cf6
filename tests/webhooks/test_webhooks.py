"""Events are delivered: signed, until they are accepted, without delaying other webhooks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.fetch.response import Limits
from forager.outbox import store as outbox
from forager.outbox.message import Lane, RetryPolicy
from forager.outbox.recovery import OutboxRecovery
from forager.secrets import Vault
from forager.services.report import identify
from forager.services.store import upsert_process
from forager.services.supervisor import running
from forager.settings import Settings
from forager.webhooks import delivery, posting
from forager.webhooks.delivery import Deliverer, send_test
from forager.webhooks.events import EventKind, NewEvent, record_events
from forager.webhooks.posting import Poster
from forager.webhooks.service import (
    DeliveryState,
    Issued,
    NewWebhook,
    WebhookChanges,
    Webhooks,
    clean_up_webhooks,
)
from forager.webhooks.signing import verify
from forager.webhooks.webhook import TOPIC
from products.rows import add_product
from webhooks.receiver import TAKES, Receiver, answering


@pytest.fixture
def webhooks(database: Database, settings: Settings) -> Webhooks:
    return Webhooks(database, Vault(settings))


@pytest.fixture
def deliverer(database: Database, settings: Settings) -> Deliverer:
    return Deliverer(database, settings)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as server:
        yield server


async def listen(webhooks: Webhooks, receiver: Receiver, **options: Any) -> Issued:
    return await webhooks.add(NewWebhook(receiver.url, allow_private=True, **options))


def secret_of(issued: Issued) -> str:
    assert issued.secret is not None
    return issued.secret


async def happen(database: Database, number: int = 1, product_id: int | None = None) -> None:
    events = [
        NewEvent(EventKind.PRICE_CHANGED, product_id, None, {"n": n, "old": "10", "new": "9"})
        for n in range(number)
    ]
    async with database.transaction() as connection:
        await record_events(connection, events)


async def rested(database: Database) -> None:
    """As if the time that webhooks and messages wait had passed."""
    async with database.connection() as connection:
        await connection.execute("UPDATE webhooks SET rests_until = now()")
        await connection.execute("UPDATE outbox SET due_at = now()")


async def states(webhooks: Webhooks, webhook_id: int) -> list[str]:
    page = await webhooks.deliveries(webhook_id)
    return [
        "sent" if each.sent_at else "failed" if each.given_up_at else "waiting"
        for each in page.items
    ]


# --- what arrives ----------------------------------------------------------------------------


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
    verify(secret_of(issued), got.headers["forager-signature"], got.body)
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


# --- receivers that do not take it -----------------------------------------------------------


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
    assert (webhook.failures, webhook.waiting, webhook.rests_until) == (1, 1, None)
    assert await deliverer.run_once() == 0, "the message backs off"
    assert len(receiver.got) == 1

    receiver.answer = answering(200)
    await rested(database)
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
        await rested(database)
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


async def test_silence_is_a_failure(receiver: Receiver) -> None:
    receiver.answer = None
    limits = Limits(connect=5, read=0.05, total=5)
    async with Poster("test", limits) as poster:
        posted = await poster.post(receiver.url, b"{}", {}, allow_private=True)
    assert posted.status is None
    assert posted.error == "the server sent nothing for 0.05 s"


async def test_what_follows_the_status_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    monkeypatch.setattr(posting, "DRAIN_SECONDS", 0.05)
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"
    receiver.drips = b"."
    async with Poster("test") as poster:
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
    assert (webhook.waiting, webhook.rests_until) == (9, None)
    assert len(receiver.got) == 60, "the refused ones back off"

    receiver.refuses = None
    await rested(database)
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
    assert webhook.rests_until is not None
    assert (webhook.failures, webhook.waiting) == (8, 20)
    assert await deliverer.run_once() == 0, "it is paused"

    await rested(database)
    assert await deliverer.run_once() == 0
    assert len(receiver.got) == 9, "one message to see whether it works again"
    receiver.answer = answering(200)
    await rested(database)
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
    await rested(database)
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
        await rested(database)

    assert len(receiver.got) == 2
    assert await states(webhooks, issued.webhook.id) == ["failed"]
    failed = await webhooks.deliveries(issued.webhook.id, state=DeliveryState.FAILED)
    assert failed.items[0].last_error == "the receiver answered 500"


async def test_old_messages_are_given_up_and_done_ones_go(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    await happen(database, 2)
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE outbox SET created_at = now() - interval '73 h' WHERE id % 2 = 0"
        )
    assert await clean_up_webhooks(database) == 1, "given up"
    assert sorted(await states(webhooks, issued.webhook.id)) == ["failed", "waiting"]
    assert await deliverer.run_once() == 1
    async with database.connection() as connection:
        await connection.execute("UPDATE outbox SET given_up_at = now() - interval '15 d'")
    assert await clean_up_webhooks(database) == 1, "deleted"
    assert "waiting" not in await states(webhooks, issued.webhook.id)


# --- the guard -------------------------------------------------------------------------------


async def test_private_addresses_are_refused_when_added(webhooks: Webhooks) -> None:
    addresses = ("http://127.0.0.1/", "http://[::1]/", "https://10.0.0.8/x", "http://0x7f.1/")
    for url in (*addresses, "http://localhost/x", "http://printer.local/"):
        with pytest.raises(NotAllowed, match="private"):
            await webhooks.add(NewWebhook(url))


async def test_a_name_that_means_a_private_address_is_refused_when_connecting(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    allowed = NewWebhook(f"http://localhost:{receiver.port}/", allow_private=True)
    issued = await webhooks.add(allowed)
    async with database.connection() as connection:
        # like a name that is not known to be private
        await connection.execute("UPDATE webhooks SET allow_private = false")
    await happen(database)
    await deliverer.run_once()

    assert receiver.connections == 0
    (waiting,) = (await webhooks.deliveries(issued.webhook.id)).items
    assert "loopback" in (waiting.last_error or "")


async def test_a_redirect_to_a_private_address_is_not_followed(receiver: Receiver) -> None:
    async with Receiver() as inside:
        receiver.answer = answering(307, f"Location: {inside.url}")
        async with Poster("test") as poster:
            posted = await poster.post(receiver.url, b"{}", {}, allow_private=True)
    assert posted.status == 307
    assert inside.connections == 0


@pytest.mark.parametrize(
    "url", ["", "ftp://a.example/", "https://", "https://user:pw@a.example/", "x" * 3000, "/x"]
)
async def test_what_cannot_be_a_webhook_is_refused(webhooks: Webhooks, url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await webhooks.add(NewWebhook(url))
    assert "pw" not in str(refused.value)


# --- secrets ---------------------------------------------------------------------------------


async def test_the_secret_is_sealed_and_shown_once(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)

    async with database.connection() as connection:
        cursor = await connection.execute("SELECT secret FROM webhooks")
        row = await cursor.fetchone()
    assert row is not None
    assert secret_of(issued).encode() not in bytes(row[0])
    assert secret_of(issued) not in repr(await webhooks.get(issued.webhook.id))
    assert secret_of(issued) not in repr((await webhooks.page()).items)


async def test_a_new_secret_signs_the_next_message(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    rotated = await webhooks.rotate_secret(issued.webhook.id, "sixteen letters or more")
    await happen(database)
    await deliverer.run_once()

    assert rotated.secret == "sixteen letters or more"
    verify(rotated.secret, receiver.got[0].headers["forager-signature"], receiver.got[0].body)
    with pytest.raises(InvalidInput, match="16"):
        await webhooks.rotate_secret(issued.webhook.id, "short")


async def test_without_the_key_nothing_is_sent_and_nothing_lost(
    database: Database, webhooks: Webhooks, settings: Settings, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    (settings.home / "secret.key").unlink()
    await happen(database)

    assert await Deliverer(database, settings).run_once() == 0

    assert receiver.got == []
    (waiting,) = (await webhooks.deliveries(issued.webhook.id)).items
    assert waiting.attempts == 0
    assert (await webhooks.get(issued.webhook.id)).rests_until is not None


# --- keeping them ----------------------------------------------------------------------------


async def test_a_test_message_is_signed_and_answers_what_happened(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    posted = await send_test(database, settings, issued.webhook.id)

    assert (posted.taken, posted.status) == (True, 204)
    (got,) = receiver.got
    assert got.json["kind"] == delivery.TEST_KIND
    verify(secret_of(issued), got.headers["forager-signature"], got.body)
    with pytest.raises(NotFound, match="webhook 999"):
        await send_test(database, settings, 999)


async def test_a_webhook_is_added_once_listed_and_removed(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver, kinds=("product.added", "product.price_changed"))
    with pytest.raises(NotAllowed, match="already"):
        await listen(webhooks, receiver)
    await webhooks.add(NewWebhook("https://b.example/#part"))
    await happen(database)

    first = await webhooks.page(limit=1)
    rest = await webhooks.page(limit=1, cursor=first.next_cursor)
    assert [webhook.url for webhook in (*first.items, *rest.items)] == [
        receiver.url,
        "https://b.example/",
    ]
    assert first.items[0].kinds == ["product.added", "product.price_changed"]
    await webhooks.remove(issued.webhook.id)
    with pytest.raises(NotFound):
        await webhooks.deliveries(issued.webhook.id)
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(*) FROM outbox WHERE lane = 1")
        assert await cursor.fetchone() == (0,)
    for change in (webhooks.get, webhooks.enable, webhooks.disable, webhooks.remove):
        with pytest.raises(NotFound):
            await change(issued.webhook.id)


async def test_a_disabled_webhook_hears_later_what_waited(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    await happen(database)
    await webhooks.disable(issued.webhook.id, "holidays")
    await happen(database)
    assert await deliverer.run_once() == 0
    assert (await webhooks.get(issued.webhook.id)).disabled_reason == "holidays"

    await webhooks.enable(issued.webhook.id)
    assert await deliverer.run_once() == 1


async def test_setting_active_ends_a_rest_as_enabling_does(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE webhooks SET failures = 9, rests_until = now() + interval '1 hour'"
        )
    changed = await webhooks.change(issued.webhook.id, WebhookChanges(active=True))
    assert (changed.webhook.failures, changed.webhook.rests_until) == (0, None)

    await webhooks.disable(issued.webhook.id, "holidays")
    changed = await webhooks.change(issued.webhook.id, WebhookChanges(active=False))
    assert changed.webhook.disabled_reason == "holidays"


# --- a deliverer that is killed --------------------------------------------------------------


@asynccontextmanager
async def deliverer_process(
    database_url: str, settings: Settings
) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {
        **os.environ,
        "FORAGER_HOME": str(settings.home),
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_LOG_LEVEL": "critical",
    }
    script = Path(__file__).with_name("deliverer_process.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_killed_between_sending_and_marking_it_is_sent_again(
    database: Database,
    database_url: str,
    settings: Settings,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = None  # it has the message, and the sender does not know that
    await happen(database, 3)
    async with deliverer_process(database_url, settings) as process, asyncio.timeout(60):
        await receiver.arrived.wait()
        process.kill()
        await process.wait()

    assert await states(webhooks, issued.webhook.id) == ["waiting"] * 3
    receiver.answer = answering(200)
    assert await deliverer.run_once() == 0  # the dead one's lease still counts
    # its process is known to be gone, long before the lease ends
    assert await OutboxRecovery(database, settings).run_once() == 3
    assert await deliverer.run_once() == 3
    assert {got.json["data"]["n"] for got in receiver.got} == {0, 1, 2}


async def claim_as(database: Database, webhooks: Webhooks, receiver: Receiver) -> UUID:
    """Messages claimed by a process of another machine that has just reported."""
    identity = identify("worker", "another machine 1 2")
    issued = await listen(webhooks, receiver)
    await happen(database, 3)
    async with database.connection() as connection:
        await upsert_process(connection, identity, [])
        claimed = await outbox.claim(
            connection,
            [Lane(TOPIC, issued.webhook.id)],
            lease=3600,
            claimed_by=identity.id,
        )
    assert len(claimed) == 3
    return identity.id


async def test_messages_of_a_silent_process_are_released_at_the_second_check(
    database: Database,
    settings: Settings,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
) -> None:
    process_id = await claim_as(database, webhooks, receiver)
    recovery = OutboxRecovery(database, settings)
    assert [await recovery.run_once(), await recovery.run_once()] == [0, 0], "it is alive"
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE service_processes SET last_seen = now() - interval '1 day' WHERE id = %s",
            (process_id,),
        )
    assert [await recovery.run_once(), await recovery.run_once()] == [0, 3]
    assert await deliverer.run_once() == 3


async def test_a_deliverer_that_reports_again_keeps_its_messages(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    await claim_as(database, webhooks, receiver)
    recovery = OutboxRecovery(database, settings)
    for age in ("1 day", "1 hour"):  # silent at both checks, with a heartbeat between them
        async with database.connection() as connection:
            await connection.execute(
                f"UPDATE service_processes SET last_seen = now() - interval '{age}'"
            )
        assert await recovery.run_once() == 0
