"""Events reach chat and push channels through Apprise, whose connections are guarded."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed
from forager.settings import Settings
from forager.webhooks import chat
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import NewWebhook, WebhookChanges, Webhooks
from support.sql import fetch_value
from webhooks.listening import happen
from webhooks.receiver import Receiver, answering

TOKEN = "Abcdefgh1234567"
TAKEN = answering(200)


def channel(receiver: Receiver) -> str:
    return f"gotify://127.0.0.1:{receiver.port}/{TOKEN}"


async def test_an_event_reaches_a_channel_whose_secrets_nobody_sees(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    receiver.answer = TAKEN
    new = NewWebhook(channel(receiver), allow_private=True)
    issued = await webhooks.add(new)
    assert issued.secret is None
    assert issued.webhook.url.startswith("gotify://127.0.0.1")
    assert TOKEN not in issued.webhook.url
    assert TOKEN not in str(await fetch_value(database, "SELECT w::text FROM webhooks w"))
    await happen(database)
    assert await deliverer.run_once() == 1
    [got] = receiver.got
    assert "product.price_changed" in got.json["title"]
    assert "Event: product.price_changed" in got.json["message"]


async def test_a_channel_at_a_private_address_needs_permission(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    issued = await webhooks.add(NewWebhook(channel(receiver)))
    await happen(database)
    assert await deliverer.run_once() == 0
    assert receiver.connections == 0
    [waiting] = (await webhooks.deliveries(issued.webhook.id)).items
    assert waiting.last_error
    assert TOKEN not in waiting.last_error


async def test_the_text_of_pages_notifies_nobody(receiver: Receiver) -> None:
    """Names of products come from pages, which may contain words and markup of a service."""
    receiver.answer = TAKEN
    product = {"id": 1, "url": "https://a.example/@channel", "name": "@everyone <!here> Lamp"}
    content = {
        "kind": "product.removed", "occurred_at": "2026-01-01", "domain": "a.example",
        "source": None, "product": product, "data": {},
    }  # fmt: skip
    url = f"mmost://127.0.0.1:{receiver.port}/{TOKEN}{TOKEN}"
    assert (await chat.send_to_channel(url, content, allow_private=True)).error is None
    [got] = receiver.got
    text = got.json["text"]
    assert "@\N{WORD JOINER}everyone" in text
    assert "@everyone" not in text
    assert "@channel" not in text


async def test_a_refused_message_is_tried_again(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    receiver.answer = answering(500)
    await webhooks.add(NewWebhook(channel(receiver), allow_private=True))
    await happen(database)
    assert await deliverer.run_once() == 0
    assert await fetch_value(database, "SELECT attempts FROM outbox") == 1


WORKFLOW = "workflows://a.example:443/643a063304d9443eb9b1/7d8ucYBo6iLzZ2S8aBuCxQ"


@pytest.mark.parametrize(
    "url",
    [
        "json://127.0.0.1/",
        "syslog://",
        "nothing://known/",
        "mailtos://user:pass@a.example",
        "vapid://me@a.example/you@a.example",
        # files of the server, which would be sent
        f"{WORKFLOW}?template={__file__}",
        f"{WORKFLOW}?template=file://{__file__}",
        f"fcm://project/device?mode=oauth2&keyfile={__file__}",
    ],
)
async def test_other_services_are_refused(webhooks: Webhooks, url: str) -> None:
    with pytest.raises(InvalidInput, match="not a URL of a channel") as refused:
        await webhooks.add(NewWebhook(url))
    assert "pass" not in str(refused.value)


async def test_a_workflow_without_a_template_is_a_channel(webhooks: Webhooks) -> None:
    assert (await webhooks.add(NewWebhook(WORKFLOW))).webhook.url.startswith("workflow")


async def test_a_service_may_name_its_protocol_by_a_number(webhooks: Webhooks) -> None:
    issued = await webhooks.add(NewWebhook("kodi://user:swordfish@a.example"))
    assert issued.webhook.url.startswith("kodi://user:****@a.example")


async def test_a_channel_stays_a_channel(webhooks: Webhooks, receiver: Receiver) -> None:
    issued = await webhooks.add(NewWebhook(channel(receiver)))
    with pytest.raises(InvalidInput, match="type of a webhook"):
        await webhooks.change(issued.webhook.id, WebhookChanges(url="https://a.example/"))
    moved = WebhookChanges(url=f"ntfy://a.example/{TOKEN}")
    assert (await webhooks.change(issued.webhook.id, moved)).webhook.url.startswith("ntfy://")


async def test_a_channel_keeps_its_secrets(
    database: Database, webhooks: Webhooks, deliverer: Deliverer, receiver: Receiver
) -> None:
    receiver.answer = TAKEN
    webhook = (await webhooks.add(NewWebhook(channel(receiver), allow_private=True))).webhook
    for changes in (WebhookChanges(secret=None), WebhookChanges(secret="0123456789abcdef")):
        with pytest.raises(NotAllowed, match="not signed"):
            await webhooks.change(webhook.id, changes)
    # a form sends the URL as it was shown
    await webhooks.change(webhook.id, WebhookChanges(url=webhook.url, ordered=True))
    await happen(database)
    assert await deliverer.run_once() == 1


async def test_messages_wait_while_the_extra_is_missing(
    database: Database,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issued = await webhooks.add(NewWebhook(channel(receiver), allow_private=True))
    await happen(database)
    monkeypatch.setattr(chat, "find_spec", lambda _: None)
    assert await deliverer.run_once() == 0
    [waiting] = (await webhooks.deliveries(issued.webhook.id)).items
    assert (waiting.attempts, waiting.given_up_at) == (0, None)
    assert (await webhooks.get(issued.webhook.id)).retries_at is not None


async def test_without_the_extra_the_error_says_how_to_install_it(
    webhooks: Webhooks, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(chat, "find_spec", lambda _: None)
    with pytest.raises(NotAllowed, match="need Apprise"):
        await webhooks.add(NewWebhook(channel(receiver)))
