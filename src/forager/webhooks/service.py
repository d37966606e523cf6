"""Webhooks: URLs and e-mail addresses that receive events, for all adapters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

import ada_url
import psycopg

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.db.retention import delete_rows
from forager.errors import AlreadyThere, GiveUp, InvalidInput, NotAllowed, NotFound, NotPermitted
from forager.events.event import EventContent, EventKind, checked_kind
from forager.events.service import event_contents
from forager.extract.wildcard import Pattern
from forager.fetch.domains.service import domain_of
from forager.fetch.guard import GuardPolicy
from forager.hints import Hint, Option, action
from forager.outbox import service as outbox
from forager.outbox.message import Lane
from forager.secrets import Vault
from forager.services.service import in_chunks
from forager.webhooks import signing, store
from forager.webhooks.chat import checked_channel, is_channel
from forager.webhooks.webhook import MAILTO, TOPIC, Delivery, Webhook

MAX_URL = 2000
MAX_ADDRESS = 260
_MAIL = re.compile(r"(?i:mailto:)?(?P<user>[\w.!#$*+/=^`{|}~'-]+)@(?P<host>[\w.-]+)", re.ASCII)
SHORTEST_SECRET = 16
LONGEST_SECRET = 200
# binds a secret to its use
CONTEXT = "webhook secret"
BY_HAND = "by hand"
# seconds after which an unsent message is abandoned, and a finished one is deleted
MAX_AGE = 3 * 86400.0
KEPT_FOR = 14 * 86400.0
CHUNK = 1000
# messages that were written while their webhook was being deleted
ORPHANED = outbox.unsent("topic = 'webhooks' AND lane NOT IN (SELECT id FROM webhooks)")


class DeliveryState(StrEnum):
    """The state of a message to a webhook."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A new webhook; kinds, domain and source filter its events, `ordered`: in order per product.

    `pattern` filters the pages and sections in events about changes of sources.
    """

    url: str
    kinds: tuple[str, ...] = ()
    domain: str | None = None
    source: str | None = None
    pattern: str | None = None
    secret: str | None = None
    allow_private: bool = False
    ordered: bool = False


class WebhookChanges(TypedDict, total=False):
    """Values to change. No kinds: all of them; domain None: all domains."""

    url: str
    kinds: Sequence[str]
    domain: str | None
    source: str | None
    pattern: str | None
    allow_private: bool
    ordered: bool
    active: bool
    # None: a new one is created
    secret: str | None


@dataclass(frozen=True, slots=True)
class WebhookWithSecret:
    """A webhook with its new secret, which is shown only once; e-mail is not signed."""

    webhook: Webhook
    secret: str | None


class Webhooks:
    """All operations on webhooks.

    NotFound is raised for an unknown ID, InvalidInput for a value that cannot work, AlreadyThere
    for a second webhook of the same URL, and SecretsUnavailable without a key for secrets.

        webhooks = Webhooks(database, Vault(settings))
        issued = await webhooks.add(NewWebhook("https://example.org/hook", domain="example.org"))
    """

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def add(self, new: NewWebhook) -> WebhookWithSecret:
        """Add a webhook, with a new secret if none is given."""
        if is_channel(new.url):
            url, secret = await checked_channel(new.url.strip()), new.url.strip()
        else:
            url = checked_url(new.url, allow_private=new.allow_private)
            secret = _checked_secret(new.secret)
        kinds = _checked_kinds(new.kinds, url)
        encrypted = self._vault.encrypt(secret, CONTEXT)
        async with self._database.transaction() as connection:
            domain_id = await _domain_id(connection, new.domain)
            values = {
                "url": url,
                "secret": encrypted,
                "kinds": kinds,
                "domain_id": domain_id,
                "source_id": new.source,
                "pattern": _checked_pattern(new.pattern),
                "allow_private": new.allow_private,
                "ordered": new.ordered,
            }
            webhook_id = await store.insert_webhook(connection, values)
            if webhook_id is None:
                raise _taken(url)
            webhook = await _existing(connection, webhook_id)
        return WebhookWithSecret(webhook, secret if webhook.is_signed else None)

    async def change(self, webhook_id: int, changes: WebhookChanges) -> WebhookWithSecret:
        """Set values; pending messages go to the new URL, signed with the new secret."""
        secret = _checked_secret(changes["secret"]) if "secret" in changes else None
        shown = (await self.get(webhook_id)).url
        if is_channel(url := changes.get("url", "")):
            if url == shown:  # as lists show it, without its secrets
                changes = {**changes}
                del changes["url"]
            else:
                secret = url.strip()
                changes = {**changes, "url": await checked_channel(secret)}
        async with self._database.transaction() as connection:
            known = await store.lock_webhook(connection, webhook_id)
            if known is None:
                raise no_such_webhook(webhook_id)
            if "secret" in changes and not known.is_signed:
                raise NotAllowed(f"messages of webhook {webhook_id} are not signed")
            values = await _values(connection, changes, known)
            if secret is not None:
                values["secret"] = self._vault.encrypt(secret, CONTEXT)
            with _only_one(values.get("url")):
                await store.update_webhook(connection, webhook_id, values)
            active = changes.get("active")
            if active:
                # an active webhook may be paused after failures: this resumes it, as enabling does
                await store.set_active(connection, webhook_id, True, None)
            elif active is False and known.is_active:
                await store.set_active(connection, webhook_id, False, BY_HAND)
            webhook = await _existing(connection, webhook_id)
        return WebhookWithSecret(webhook, secret if webhook.is_signed else None)

    async def page(self, *, cursor: str | None = None, limit: int = 100) -> Page[Webhook]:
        """Webhooks by ID, a page at a time."""
        check_limit(limit)
        found = await self._database.run(
            store.select_webhooks, after=decode_number(cursor) or 0, limit=limit + 1
        )
        return page_of(found, limit, lambda each: each.id)

    async def get(self, webhook_id: int) -> Webhook:
        """A webhook by its ID; raises NotFound."""
        return await self._database.run(_existing, webhook_id)

    async def remove(self, webhook_id: int) -> Webhook:
        """Delete a webhook and all messages to it."""
        async with self._database.transaction() as connection:
            webhook = await _existing(connection, webhook_id)
            await store.delete_webhook(connection, webhook_id)
            await outbox.delete_lane(connection, Lane(TOPIC, webhook_id))
            return webhook

    async def enable(self, webhook_id: int) -> Webhook:
        """Send messages to a webhook again, also those that wait."""
        return (await self.change(webhook_id, WebhookChanges(active=True))).webhook

    async def disable(self, webhook_id: int, reason: str | None = None) -> Webhook:
        """Stop deliveries. Pending messages are kept for three days; new events are not sent."""
        async with self._database.transaction() as connection:
            await store.set_active(connection, webhook_id, False, (reason or BY_HAND)[:1000])
            return await _existing(connection, webhook_id)

    async def rotate_secret(self, webhook_id: int, secret: str | None = None) -> WebhookWithSecret:
        """Sign with a new secret from the next message on."""
        return await self.change(webhook_id, WebhookChanges(secret=secret))

    async def deliveries(
        self,
        webhook_id: int,
        *,
        state: DeliveryState | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Delivery]:
        """Messages to a webhook, newest first; raises NotFound."""
        check_limit(limit)
        async with self._database.connection() as connection:
            await _existing(connection, webhook_id)
            found = await store.select_deliveries(
                connection,
                webhook_id,
                state=None if state is None else state.value,
                before=decode_number(cursor),
                limit=limit + 1,
            )
        return page_of(found, limit, lambda each: each.id)

    async def delivery(
        self, webhook_id: int, message_id: int, *, user_id: UUID | None = None
    ) -> tuple[Delivery, EventContent | None]:
        """A message with its responses, and its event; None if the event was deleted.

        With an owner, the event of a source or crawl of another owner is None, and there are no
        responses: a receiver may repeat what it was sent.
        """
        async with self._database.connection() as connection:
            await _existing(connection, webhook_id)
            found = await store.select_delivery(connection, webhook_id, message_id)
            if found is None:
                raise NotFound(f"webhook {webhook_id} has no message {message_id}")
        events = await event_contents(self._database, [found.event_id])
        event = events[0] if events else None
        if user_id is None or (event and event.is_visible_to(user_id)):
            return found, event
        return replace(found, responses=[]), None

    async def retry(self, webhook_id: int, message_ids: Sequence[int] | None = None) -> int:
        """Send failed and pending messages at once, with a new set of attempts; return how many."""
        async with self._database.transaction() as connection:
            webhook = await _existing(connection, webhook_id)
            if not webhook.is_active:
                raise NotAllowed(
                    f"webhook {webhook_id} is disabled: {webhook.disabled_reason}",
                    hint=Hint("Enable it first: {}", action("webhooks enable", webhook_id)),
                )
            await store.reset_failures(connection, webhook_id)
            return await outbox.renew(connection, Lane(TOPIC, webhook_id), ids=message_ids)


async def clean_up_webhooks(database: Database) -> int:
    """Abandon and delete old messages, and those of deleted webhooks; returns their number."""
    given_up = await in_chunks(
        database, outbox.give_up_old, topic=TOPIC, seconds=MAX_AGE, limit=CHUNK
    )
    deleted = await in_chunks(
        database, delete_rows, rows=outbox.DONE, seconds=KEPT_FOR, limit=CHUNK
    )
    orphans = await in_chunks(database, delete_rows, rows=ORPHANED, limit=CHUNK)
    return given_up + deleted + orphans


def checked_url(text: str, *, allow_private: bool) -> str:
    """The normalized URL; host names are checked again with every delivery."""
    hint = "For example https://example.com/hooks/prices or mailto:me@example.com"
    if (address := _MAIL.fullmatch(text.strip())) is not None and len(address[0]) <= MAX_ADDRESS:
        return f"{MAILTO}{address['user']}@{address['host'].lower()}"
    try:
        parts = ada_url.parse_url(text.strip())
    except ValueError:
        raise InvalidInput(f"{text[:200]!r} is not a URL", hint=hint) from None
    if parts["protocol"] not in ("http:", "https:") or len(parts["href"]) > MAX_URL:
        raise InvalidInput(f"{text[:200]!r} is not a valid webhook URL", hint=hint)
    if parts["username"] or parts["password"]:
        raise InvalidInput(
            "a webhook URL must not contain a user name or password: it is shown in lists",
            hint="Verify the signature in the receiver instead.",
        )
    try:
        GuardPolicy(allow_private=allow_private).check_unresolved(parts["hostname"])
    except GiveUp:
        raise _private(parts["hostname"], allow_private=allow_private) from None
    return str(parts["href"]).partition("#")[0]


def no_such_webhook(webhook_id: int) -> NotFound:
    """The error for an unknown webhook."""
    return NotFound(
        f"webhook {webhook_id} not found", hint=Hint("{} lists webhooks.", action("webhooks list"))
    )


async def _existing(connection: Connection, webhook_id: int) -> Webhook:
    webhook = await store.select_webhook(connection, webhook_id)
    if webhook is None:
        raise no_such_webhook(webhook_id)
    return webhook


def _private(host: str, *, allow_private: bool) -> NotPermitted:
    if allow_private:  # refused even so
        return NotPermitted(f"{host} is never allowed: it exposes the machine itself")
    return NotPermitted(
        f"{host} is a private address",
        hint=Hint("Set {} if events may be sent there.", Option("allow_private")),
    )


@contextmanager
def _only_one(url: str | None) -> Iterator[None]:
    """Report a URL that another webhook uses."""
    try:
        yield
    except psycopg.errors.UniqueViolation:
        raise _taken(url or "this URL") from None


def _taken(url: str) -> AlreadyThere:
    return AlreadyThere(
        f"a webhook for {url} already exists",
        hint=Hint("{} shows it, {} changes it.", action("webhooks list"), action("webhooks set")),
    )


async def _values(
    connection: Connection, changes: WebhookChanges, known: Webhook
) -> dict[str, Any]:
    """The checked columns; a URL is checked against the resulting values."""
    values: dict[str, Any] = {}
    if "url" in changes or "allow_private" in changes:
        values["allow_private"] = changes.get("allow_private", known.allow_private)
        url = changes.get("url", known.url)
        if is_channel(url) != is_channel(known.url):
            raise InvalidInput("the type of a webhook cannot be changed", hint="Add a new webhook.")
        if not is_channel(url):
            url = checked_url(url, allow_private=values["allow_private"])
        values["url"] = url
    if "ordered" in changes:
        values["ordered"] = changes["ordered"]
    kinds = changes.get("kinds", known.kinds)
    if "kinds" in changes or ("url" in values and not kinds):
        values["kinds"] = _checked_kinds(kinds, values.get("url", known.url))
    if "domain" in changes:
        values["domain_id"] = await _domain_id(connection, changes["domain"])
    if "source" in changes:
        values["source_id"] = changes["source"]
    if "pattern" in changes:
        values["pattern"] = _checked_pattern(changes["pattern"])
    return values


def _checked_kinds(kinds: Sequence[str], url: str) -> list[str]:
    """Sorted kinds of events; the default of e-mail is alerts only."""
    if not kinds and url.startswith(MAILTO):
        return [EventKind.ALERT.value]
    return sorted({checked_kind(kind).value for kind in kinds})


def _checked_pattern(text: str | None) -> str | None:
    if text is not None:
        Pattern.compile(text)
    return text


async def _domain_id(connection: Connection, host: str | None) -> int | None:
    return None if host is None else (await domain_of(connection, host)).id


def _checked_secret(given: str | None) -> str:
    if given is None:
        return signing.new_secret()
    if not (SHORTEST_SECRET <= len(given) <= LONGEST_SECRET and given.isascii()):
        raise InvalidInput(
            f"a secret has {SHORTEST_SECRET} to {LONGEST_SECRET} ASCII characters",
            hint="Without one, a random secret is created.",
        )
    return given
