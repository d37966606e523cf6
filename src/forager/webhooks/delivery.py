"""Delivery: the messages of the outbox are posted to webhooks until they are taken or given up.

A message is acknowledged after it was taken: a process that dies in between sends it again. No
message is lost, and each carries an id by which a receiver recognizes a duplicate.

A failed message waits on its own, with exponential backoff, while others are sent. A webhook is
paused as a whole only after several failures in a row, or when it sends Retry-After; after the
pause it gets a single message, and the rest when that was taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

import orjson

from forager.amounts import time_text
from forager.backoff import backoff
from forager.db.database import Database
from forager.errors import error_text
from forager.events.event import EventContent
from forager.events.service import event_contents
from forager.fetch.response import agent_header
from forager.logs import get_logger
from forager.metrics.catalog import WEBHOOK_DELIVERIES
from forager.outbox import service as outbox
from forager.outbox.claim import Claim, claimed
from forager.outbox.message import Failure, Lane, Message, RetryPolicy
from forager.secrets import SecretsUnavailable, Vault
from forager.services.service import Service
from forager.settings import Settings
from forager.webhooks import signing, store
from forager.webhooks.chat import ChatUnavailable, check_installed, send_to_channel
from forager.webhooks.mail import Mailer, MailUnavailable
from forager.webhooks.posting import PostOutcome, WebhookPoster
from forager.webhooks.service import CONTEXT, no_such_webhook
from forager.webhooks.webhook import TOPIC, Receiver, is_http

log = get_logger("webhooks")

POLL_INTERVAL = 1.0
# while no webhook could receive anything
IDLE_POLL_INTERVAL = 5.0
PER_CLAIM = 20
AT_ONCE = 4
# longer than one claim can take
LEASE = 300.0
# 5 s, doubling up to 6 hours: 20 attempts take about two days
RETRY = RetryPolicy(first=5.0, longest=6 * 3600.0, max_attempts=20)
# failures in a row after which a webhook is paused: for 5 s, doubling up to an hour
PAUSE_AFTER = 5
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 3600.0
# while the secret key or the mail server is missing
UNREADY_PAUSE = 60.0
GONE = 410
GONE_REASON = "it answered 410 Gone"
TEST_KIND = "webhook.test"


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """A message and the response of its receiver; None: its event was deleted."""

    message: Message
    posted: PostOutcome | None

    @property
    def was_taken(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.posted is not None and self.posted.taken

    def failure(self) -> Failure:
        """Why the message was not accepted, and when it is sent again."""
        if self.posted is None:
            return Failure(self.message.id, "the event was deleted", None)
        error = self.posted.error or ""
        if self.posted.is_permanent or self.posted.status == GONE:
            return Failure(self.message.id, error, None)
        return RETRY.failure(self.message, error)


class Deliverer:
    """Sends messages; any number of processes may run it. A failing webhook delays no other."""

    def __init__(
        self, database: Database, settings: Settings, process_id: UUID | None = None
    ) -> None:
        """`process_id`: the service process whose end releases its claimed messages."""
        self._database = database
        self._settings = settings
        self._process_id = process_id
        self._vault = Vault(settings)
        self._agent = agent_header(settings)
        self._poster = WebhookPoster(self._agent)
        self._busy: dict[int, asyncio.Task[int]] = {}
        self._poll_interval = POLL_INTERVAL

    def service(self) -> Service:
        """Without an interval: its step waits for deliveries."""
        return Service(
            name="webhook delivery",
            every=0.0,
            step=self._step,
            first_within=0.0,
            resources=self._resources,
        )

    @asynccontextmanager
    async def _resources(self) -> AsyncIterator[None]:
        self._busy = {}
        async with WebhookPoster(self._agent) as self._poster:
            try:
                yield
            finally:
                for task in self._busy.values():
                    task.cancel()
                await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def _step(self) -> None:
        """Start deliveries to every webhook with due messages, and wait until one is done."""
        for webhook_id in [key for key, task in self._busy.items() if task.done()]:
            _log_failure(self._busy.pop(webhook_id))
        for receiver, messages in await self._claim(list(self._busy)):
            delivery = self._deliver(self._poster, receiver, messages)
            self._busy[receiver.id] = asyncio.create_task(delivery)
        await _first_of(self._busy.values(), self._poll_interval)

    async def run_once(self) -> int:
        """Send due messages; returns how many were accepted."""
        async with WebhookPoster(self._agent) as poster:
            found = await self._claim(())
            return sum(
                await asyncio.gather(
                    *(self._deliver(poster, receiver, messages) for receiver, messages in found)
                )
            )

    async def _claim(self, busy: Sequence[int]) -> list[tuple[Receiver, list[Message]]]:
        async with self._database.connection() as connection:
            ready = await store.select_ready(connection, busy=busy)
            self._poll_interval = POLL_INTERVAL if ready or busy else IDLE_POLL_INTERVAL
            if not ready:
                return []
            lanes = [Lane(TOPIC, each.id, _per_claim(each)) for each in ready]
            messages = await outbox.claim(
                connection, lanes, lease=LEASE, claimed_by=self._process_id
            )
        by_webhook: dict[int, list[Message]] = {}
        for message in messages:
            by_webhook.setdefault(message.lane, []).append(message)
        return [(each, by_webhook[each.id]) for each in ready if each.id in by_webhook]

    async def _deliver(
        self, poster: WebhookPoster, receiver: Receiver, messages: Sequence[Message]
    ) -> int:
        """Send a few at a time until the webhook is paused; returns how many were accepted."""
        taken, is_failing = 0, receiver.failures > 0
        async with claimed(self._database, messages) as claim:
            try:
                send = _sender(poster, receiver, self._vault, self._settings)
            except (SecretsUnavailable, MailUnavailable, ChatUnavailable) as error:
                log.error("messages cannot be sent", webhook=receiver.id, reason=error.message)
                await self._pause(receiver, UNREADY_PAUSE, error.message)
                return 0
            contents = await self._contents(messages)
            for start in range(0, len(messages), AT_ONCE):
                few = messages[start : start + AT_ONCE]
                attempts = await asyncio.gather(
                    *(_attempt(send, each, contents.get(each.ref_id)) for each in few)
                )
                await self._settle(claim, attempts)
                taken_now = sum(each.was_taken for each in attempts)
                taken += taken_now
                if (is_failing or taken_now < len(few)) and await self._evaluate(
                    receiver, attempts
                ):
                    break
                is_failing = taken_now < len(few)
        return taken

    async def _contents(self, messages: Sequence[Message]) -> Mapping[int, EventContent]:
        found = await event_contents(self._database, [each.ref_id for each in messages])
        return {event.id: event for event in found}

    async def _settle(self, claim: Claim, attempts: Sequence[DeliveryAttempt]) -> None:
        taken = [each.message.id for each in attempts if each.was_taken]
        failures = [each.failure() for each in attempts if not each.was_taken]
        responses = {
            each.message.id: each.posted.record(each.message.attempts + 1)
            for each in attempts
            if each.posted is not None
        }
        await claim.settle(taken, failures, keep_record=True, responses=responses)
        WEBHOOK_DELIVERIES.add("taken", amount=len(taken))
        WEBHOOK_DELIVERIES.add("refused", amount=len(failures))

    async def _evaluate(self, receiver: Receiver, attempts: Sequence[DeliveryAttempt]) -> bool:
        """Count failures in a row; returns whether deliveries to this webhook pause."""
        answers = [each.posted for each in attempts if each.posted is not None]
        if not answers:
            return False
        failed = list(takewhile(lambda posted: not posted.taken, reversed(answers)))
        is_gone = any(posted.status == GONE for posted in answers)
        async with self._database.transaction() as connection:
            failures = await store.record_answers(
                connection, receiver.id, failures=len(failed), was_taken=len(failed) < len(answers)
            )
            if is_gone:
                await store.set_active(connection, receiver.id, False, GONE_REASON)
        if is_gone:
            log.warning("webhook disabled", webhook=receiver.id, reason=GONE_REASON)
            return True
        retry_after = max((posted.retry_after or 0.0 for posted in failed), default=0.0)
        seconds = min(retry_after, LONGEST_PAUSE)
        if failures >= PAUSE_AFTER:
            # up to AT_ONCE failures count before the first pause can begin
            pauses = failures - PAUSE_AFTER - AT_ONCE + 2
            wait = backoff(pauses, FIRST_PAUSE, LONGEST_PAUSE)
            seconds = max(seconds, wait)
        if seconds:
            await self._pause(receiver, seconds, failed[0].error)
        return seconds > 0

    async def _pause(self, receiver: Receiver, seconds: float, reason: str | None) -> None:
        log.info("webhook paused", webhook=receiver.id, seconds=round(seconds), reason=reason)
        await self._database.run(store.pause, receiver.id, seconds)


def _per_claim(receiver: Receiver) -> int:
    if receiver.failures >= PAUSE_AFTER:
        return 1
    # a mail server or a channel may take minutes for a few messages
    return PER_CLAIM if is_http(receiver.url) else AT_ONCE


async def send_test(database: Database, settings: Settings, webhook_id: int) -> PostOutcome:
    """Send a test event to a webhook, also to one that is disabled."""
    receiver = await database.run(store.select_receiver, webhook_id)
    if receiver is None:
        raise no_such_webhook(webhook_id)
    content = {
        "id": None,
        "kind": TEST_KIND,
        "occurred_at": time_text(datetime.now(UTC)),
        "domain": None,
        "source": None,
        "product": None,
        "data": {"webhook_id": webhook_id},
    }
    async with WebhookPoster(agent_header(settings)) as poster:
        send = _sender(poster, receiver, Vault(settings), settings)
        return await send(content, "test", 1)


# content of a message, ID of the delivery, number of the attempt
Send = Callable[[Mapping[str, Any], str, int], Awaitable[PostOutcome]]


def _sender(poster: WebhookPoster, receiver: Receiver, vault: Vault, settings: Settings) -> Send:
    """The function that sends to a receiver; raises an error while that is not possible."""
    if receiver.is_mail:
        mailer = Mailer(settings)
        return lambda content, delivery, _: mailer.send(receiver.url, content, delivery)
    secret = vault.decrypt(receiver.secret, CONTEXT)
    if not is_http(receiver.url):
        check_installed()
        return lambda content, *_: send_to_channel(
            secret, content, allow_private=receiver.allow_private
        )

    def post(content: Mapping[str, Any], delivery: str, attempt: int) -> Awaitable[PostOutcome]:
        body = orjson.dumps(content)
        headers = {
            "Forager-Event": content["kind"],
            "Forager-Delivery": delivery,
            "Forager-Attempt": str(attempt),
            signing.HEADER: signing.sign(secret, body, int(time.time())),
        }
        return poster.post(receiver.url, body, headers, allow_private=receiver.allow_private)

    return post


async def _attempt(send: Send, message: Message, event: EventContent | None) -> DeliveryAttempt:
    if event is None:
        return DeliveryAttempt(message, None)
    posted = await send(message_content(event), str(message.id), message.attempts + 1)
    return DeliveryAttempt(message, posted)


def message_content(event: EventContent) -> dict[str, Any]:
    """The body of a message."""
    product = {"id": event.product_id, "url": event.product_url, "name": event.product_name}
    return {
        "id": event.id,
        "kind": event.kind,
        "occurred_at": time_text(event.occurred_at),
        "domain": event.domain,
        "source": event.source_id,
        "product": None if event.product_id is None else product,
        "data": event.payload,
    }


async def _first_of(tasks: Collection[asyncio.Task[int]], seconds: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(seconds)


def _log_failure(task: asyncio.Task[int]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("delivery failed", reason=error_text(error))
