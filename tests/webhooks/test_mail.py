"""Events by e-mail, through a real SMTP server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from pydantic import SecretStr

from forager.checks import Level
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.products.alerts.conditions import AlertKind
from forager.secrets import Vault
from forager.settings import Settings, load_settings
from forager.settings.loading import shown_settings
from forager.webhooks.checks import check_webhooks
from forager.webhooks.delivery import Deliverer, send_test
from forager.webhooks.service import NewWebhook, WebhookChanges, Webhooks
from products.rows import add_product
from servers.certificates import Authority

ADDRESS = "mailto:me@example.org"
ALERT = {
    "rule": {"id": 3, "kind": "price_below", "amount": "40"},
    "old": "49.90",
    "new": "39.90",
    "currency": "EUR",
    "availability": "in_stock",
}


class MailServer:
    """Accepts messages of a user with a password; `reply` is the answer to each message."""

    port: int

    def __init__(self) -> None:
        self.got: list[EmailMessage] = []
        self.reply = "250 OK"

    async def handle_DATA(self, _server: SMTP, session: Any, envelope: Any) -> str:
        assert session.authenticated
        message = BytesParser(EmailMessage, policy=default).parsebytes(envelope.content)
        self.got.append(message)
        return self.reply

    def accepts(self, *given: Any) -> AuthResult:
        login = given[-1]
        is_known = (login.login, login.password) == (b"me", b"pa ss/word")
        # `handled` would mean that a refusal was sent already
        return AuthResult(success=is_known, handled=is_known)

    def protocol(self, **tls: Any) -> SMTP:
        options = tls or {"auth_require_tls": False}
        return SMTP(self, authenticator=self.accepts, hostname="mail.test", **options)


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    mail = MailServer()
    listening = await asyncio.get_running_loop().create_server(mail.protocol, "127.0.0.1", 0)
    mail.port = listening.sockets[0].getsockname()[1]
    yield mail
    listening.close()


@pytest.fixture
def mail_settings(settings: Settings, server: MailServer) -> Settings:
    url = f"smtp-plain://me:pa%20ss%2Fword@127.0.0.1:{server.port}"
    changes = {"smtp_url": SecretStr(url), "smtp_from": "forager@shop.example"}
    return settings.model_copy(update=changes)


@pytest.fixture
def webhooks(database: Database, settings: Settings) -> Webhooks:
    return Webhooks(database, Vault(settings))


async def happen(database: Database, kind: EventKind = EventKind.ALERT) -> None:
    product = await add_product(database, 1)
    async with database.transaction() as connection:
        await record_events(connection, [NewEvent(kind, product, None, ALERT)])


async def test_an_alert_arrives_as_a_readable_message(
    database: Database, webhooks: Webhooks, mail_settings: Settings, server: MailServer
) -> None:
    issued = await webhooks.add(NewWebhook("MAILTO:me@Example.org"))
    assert (issued.secret, issued.webhook.url) == (None, ADDRESS)
    assert issued.webhook.kinds == ["product.alert"]
    await happen(database)
    assert await Deliverer(database, mail_settings).run_once() == 1
    [message] = server.got
    assert (message["From"], message["To"]) == ("forager@shop.example", "me@example.org")
    assert message["Subject"] == "Price alert: Product 1 now 39.90 EUR"
    text = message.get_content()
    assert "https://shop.example/p/1" in text
    assert "Price: 39.90 EUR (before: 49.90 EUR)" in text
    assert "Alert rule 3: price below 40" in text
    [listed] = (await webhooks.deliveries(issued.webhook.id)).items
    sent, _ = await webhooks.delivery(issued.webhook.id, listed.id)
    assert (sent.sent_at is not None, sent.responses[0]["status"]) == (True, 250)


@pytest.mark.parametrize("kind", AlertKind)
async def test_alerts_of_every_kind_arrive(
    database: Database,
    webhooks: Webhooks,
    mail_settings: Settings,
    server: MailServer,
    kind: AlertKind,
) -> None:
    await webhooks.add(NewWebhook(ADDRESS))
    product = await add_product(database, 1)
    event = NewEvent(EventKind.ALERT, product, None, {**ALERT, "rule": {"id": 3, "kind": kind}})
    async with database.transaction() as connection:
        await record_events(connection, [event])
    assert await Deliverer(database, mail_settings).run_once() == 1
    assert f"Alert rule 3: {kind.replace('_', ' ')}" in server.got[0].get_content()


async def test_temporary_errors_are_retried_and_permanent_ones_are_not(
    database: Database, webhooks: Webhooks, mail_settings: Settings, server: MailServer
) -> None:
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    await happen(database)
    server.reply = "451 try later\x1b"
    deliverer = Deliverer(database, mail_settings)
    assert await deliverer.run_once() == 0
    [waiting] = (await webhooks.deliveries(webhook.id)).items
    assert (waiting.attempts, waiting.given_up_at) == (1, None)
    assert waiting.last_error == "the mail server answered 451"
    shown, _ = await webhooks.delivery(webhook.id, waiting.id)
    assert "\x1b" not in shown.responses[0]["body"]
    server.reply = "554 no such mailbox"
    await webhooks.retry(webhook.id)
    await deliverer.run_once()
    [failed] = (await webhooks.deliveries(webhook.id)).items
    assert failed.given_up_at is not None
    # the same message for mail programs, whatever the attempt
    assert len({message["Message-ID"] for message in server.got}) == 1


@pytest.fixture(params=["smtp", "smtps"])
async def encrypted(
    request: pytest.FixtureRequest, tmp_path: Path, settings: Settings
) -> AsyncIterator[tuple[MailServer, Settings, Path]]:
    """A server that accepts logins over TLS only, its settings, and the file of its authority."""
    mail, authority = MailServer(), Authority(tmp_path)
    tls = authority.server_context("localhost")
    starttls = {"tls_context": tls, "require_starttls": True} if request.param == "smtp" else {}
    listening = await asyncio.get_running_loop().create_server(
        lambda: mail.protocol(**starttls), "127.0.0.1", 0, ssl=None if starttls else tls
    )
    port = listening.sockets[0].getsockname()[1]
    url = SecretStr(f"{request.param}://me:pa%20ss%2Fword@localhost:{port}")
    changes = {"smtp_url": url, "smtp_from": "forager@shop.example"}
    yield mail, settings.model_copy(update=changes), authority.trusted_file()
    listening.close()


async def test_messages_and_passwords_are_sent_over_tls(
    database: Database,
    webhooks: Webhooks,
    encrypted: tuple[MailServer, Settings, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, settings, authority = encrypted
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    await happen(database)
    # the authority is unknown to this machine
    assert await Deliverer(database, settings).run_once() == 0
    [waiting] = (await webhooks.deliveries(webhook.id)).items
    assert (waiting.attempts, waiting.given_up_at, server.got) == (1, None, [])
    assert waiting.next_attempt_at > waiting.created_at
    assert waiting.last_error is not None
    assert waiting.last_error.startswith("the certificate of the mail server is not valid: ")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    await webhooks.retry(webhook.id)
    assert await Deliverer(database, settings).run_once() == 1
    [message] = server.got
    assert message["Subject"] == "Price alert: Product 1 now 39.90 EUR"


@pytest.mark.parametrize(
    ("password", "error"),
    [
        ("wrong", "the mail server refused the user name or password: 535"),
        ("p%C3%A4ss", "the user name or password for the mail server has characters other than"),
    ],
)
async def test_a_refused_login_is_retried_later(
    database: Database, webhooks: Webhooks, mail_settings: Settings, password: str, error: str
) -> None:
    assert mail_settings.smtp_url is not None
    url = mail_settings.smtp_url.get_secret_value().replace("pa%20ss%2Fword", password)
    settings = mail_settings.model_copy(update={"smtp_url": SecretStr(url)})
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    await happen(database)
    assert await Deliverer(database, settings).run_once() == 0
    [waiting] = (await webhooks.deliveries(webhook.id)).items
    assert (waiting.attempts, waiting.given_up_at) == (1, None)
    assert waiting.next_attempt_at > waiting.created_at
    assert (waiting.last_error or "").startswith(error)


async def test_each_test_message_is_another_one_for_mail_programs(
    database: Database, webhooks: Webhooks, mail_settings: Settings, server: MailServer
) -> None:
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    for _ in range(2):
        assert (await send_test(database, mail_settings, webhook.id)).taken
    assert len({message["Message-ID"] for message in server.got}) == 2


async def test_without_a_mail_server_messages_wait_and_the_doctor_says_so(
    database: Database, settings: Settings, webhooks: Webhooks
) -> None:
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    await happen(database)
    assert await Deliverer(database, settings).run_once() == 0
    [waiting] = (await webhooks.deliveries(webhook.id)).items
    assert (waiting.attempts, waiting.given_up_at) == (0, None)
    check = await check_webhooks(database, settings)
    assert check.level is Level.WARN
    assert "no SMTP server is configured" in check.message
    with pytest.raises(NotAllowed, match="no SMTP server"):
        await send_test(database, settings, webhook.id)
    with pytest.raises(NotAllowed, match="not signed"):
        await webhooks.rotate_secret(webhook.id)


async def test_a_mail_server_that_is_gone_is_a_failure(
    database: Database, settings: Settings, webhooks: Webhooks
) -> None:
    gone = settings.model_copy(
        update={"smtp_url": SecretStr("smtp://127.0.0.1:1"), "smtp_from": "a@b.example"}
    )
    webhook = (await webhooks.add(NewWebhook(ADDRESS))).webhook
    posted = await send_test(database, gone, webhook.id)
    assert posted.error is not None
    assert posted.error.startswith("the mail server failed: ")


async def test_e_mail_without_events_means_alerts(database: Database, webhooks: Webhooks) -> None:
    hook = (await webhooks.add(NewWebhook("https://hooks.example.org/"))).webhook
    changed = await webhooks.change(hook.id, WebhookChanges(url="you@example.org"))
    assert changed.webhook.kinds == ["product.alert"]
    changed = await webhooks.change(hook.id, WebhookChanges(kinds=("product.added",)))
    assert changed.webhook.kinds == ["product.added"]


@pytest.mark.parametrize(
    "address", ["mailto:a@b.example,c@d.example", "mailto:a@b.example?bcc=x", "mailto:a\nb@c", "a@"]
)
async def test_only_one_plain_address_is_accepted(webhooks: Webhooks, address: str) -> None:
    with pytest.raises(InvalidInput):
        await webhooks.add(NewWebhook(address))


def test_the_password_is_masked_and_a_sender_is_needed() -> None:
    url = "smtps://me:pass@mail.example.org"
    with pytest.raises(InvalidInput, match="smtp_from is not"):
        load_settings(smtp_url=url)
    settings = load_settings(smtp_url=url, smtp_from="a@b.example")
    [shown] = [each for each in shown_settings(settings, ()) if each.name == "smtp_url"]
    assert "pass" not in str(shown.value)
    assert "mail.example.org" in str(shown.value)
