"""Webhooks are added, changed and removed; their secrets and addresses are safe."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.settings import Settings
from forager.webhooks import delivery
from forager.webhooks.delivery import Deliverer, send_test
from forager.webhooks.posting import WebhookPoster
from forager.webhooks.service import NewWebhook, WebhookChanges, Webhooks
from forager.webhooks.signing import verify_signature
from support.sql import execute, fetch_row
from webhooks.listening import happen, listen, secret_of
from webhooks.receiver import Receiver, answering


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
        async with WebhookPoster("test") as poster:
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


async def test_the_secret_is_sealed_and_shown_once(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)

    row = await fetch_row(database, "SELECT secret FROM webhooks")
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
    verify_signature(
        rotated.secret, receiver.got[0].headers["forager-signature"], receiver.got[0].body
    )
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
    assert (await webhooks.get(issued.webhook.id)).retries_at is not None


async def test_a_test_message_is_signed_and_answers_what_happened(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    posted = await send_test(database, settings, issued.webhook.id)

    assert (posted.taken, posted.status) == (True, 204)
    (got,) = receiver.got
    assert got.json["kind"] == delivery.TEST_KIND
    verify_signature(secret_of(issued), got.headers["forager-signature"], got.body)
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


async def test_a_webhook_receives_waiting_messages_once_enabled(
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


async def test_setting_active_ends_a_pause_as_enabling_does(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    issued = await listen(webhooks, receiver)
    await execute(
        database, "UPDATE webhooks SET failures = 9, rests_until = now() + interval '1 hour'"
    )
    changed = await webhooks.change(issued.webhook.id, WebhookChanges(active=True))
    assert (changed.webhook.failures, changed.webhook.retries_at) == (0, None)

    await webhooks.disable(issued.webhook.id, "holidays")
    changed = await webhooks.change(issued.webhook.id, WebhookChanges(active=False))
    assert changed.webhook.disabled_reason == "holidays"
