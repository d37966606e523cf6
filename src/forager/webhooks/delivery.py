"""Delivery: what the outbox holds for webhooks is sent, until it was taken or given up.

A message is marked after it was taken: whoever dies in between sends it again. None is lost, and
each carries an id by which a receiver knows that it had it already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from forager.db.database import Database
from forager.fetch.headers import agent_header
from forager.logs import get_logger
from forager.metrics.recorded import WEBHOOK_DELIVERIES
from forager.secrets import SecretsUnavailable, Vault
from forager.services.service import Service, backoff
from forager.settings import Settings
from forager.webhooks import signing
from forager.webhooks.outbox import failure_of
from forager.webhooks.posting import Posted, Poster
from forager.webhooks.service import CONTEXT, no_such_webhook
from forager.webhooks.store import outbox
from forager.webhooks.store import webhooks as store
from forager.webhooks.store.events import WEBHOOKS
from forager.webhooks.store.outbox import Failure, Message
from forager.webhooks.store.webhooks import Receiver, Told

log = get_logger("webhooks")

POLL_INTERVAL = 1.0
PER_CLAIM = 20
AT_ONCE = 4
# more than the slowest receiver can make one claim last
LEASE = 300.0
# a webhook that fails rests for 5 s, doubling up to an hour
FIRST_REST = 5.0
LONGEST_REST = 3600.0
GONE = 410
TEST_KIND = "webhook.test"


@dataclass(frozen=True, slots=True)
class Tried:
    """A message and what its receiver said; None: there is nothing to tell any more."""

    message: Message
    posted: Posted | None


class Deliverer:
    """Any number of processes may run one. A webhook that fails or hangs holds up no other."""

    def __init__(
        self, database: Database, settings: Settings, process_id: UUID | None = None
    ) -> None:
        """`process_id`: the service process whose end releases its claimed messages."""
        self._database = database
        self._process_id = process_id
        self._vault = Vault(settings)
        self._agent = agent_header(settings)
        self._poster = Poster(self._agent)
        self._busy: dict[int, asyncio.Task[int]] = {}

    def service(self) -> Service:
        """Its step waits for deliveries by itself."""
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
        async with Poster(self._agent) as self._poster:
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
        await _first_of(self._busy.values(), POLL_INTERVAL)

    async def run_once(self) -> int:
        """Send what is due now; how many messages were taken."""
        async with Poster(self._agent) as poster:
            claimed = await self._claim(())
            return sum(
                await asyncio.gather(
                    *(self._deliver(poster, receiver, messages) for receiver, messages in claimed)
                )
            )

    async def _claim(self, busy: Sequence[int]) -> list[tuple[Receiver, list[Message]]]:
        async with self._database.connection() as connection:
            ready = await store.select_ready(connection, busy=busy)
            if not ready:
                return []
            messages = await outbox.claim(
                connection,
                WEBHOOKS,
                targets=[receiver.id for receiver in ready],
                # one that failed is tried with one message before it gets more
                limits=[1 if receiver.failures else PER_CLAIM for receiver in ready],
                lease_seconds=LEASE,
                claimed_by=self._process_id,
            )
        by_target: dict[int, list[Message]] = {}
        for message in messages:
            by_target.setdefault(message.target_id, []).append(message)
        return [(each, by_target[each.id]) for each in ready if each.id in by_target]

    async def _deliver(
        self, poster: Poster, receiver: Receiver, messages: Sequence[Message]
    ) -> int:
        """Send a few at a time until all were taken or a few were not; how many were taken."""
        left = {message.id for message in messages}
        taken = 0
        try:
            told = await self._told(messages)
            secret = self._vault.open(receiver.secret, CONTEXT)
            for start in range(0, len(messages), AT_ONCE):
                few = messages[start : start + AT_ONCE]
                tried = await asyncio.gather(
                    *(_send(poster, receiver, secret, each, told.get(each.ref_id)) for each in few)
                )
                taken_now = await self._settle(receiver, tried)
                left -= {message.id for message in few}
                taken += taken_now
                if taken_now < len(few):
                    break
        except SecretsUnavailable as error:
            log.error("cannot be signed", webhook=receiver.id, reason=error.message)
            await self._let_rest(receiver, None)
        finally:
            if left:
                async with self._database.connection() as connection:
                    await outbox.release(connection, list(left))
        return taken

    async def _told(self, messages: Sequence[Message]) -> Mapping[int, Told]:
        async with self._database.connection() as connection:
            told = await store.select_told(connection, [message.ref_id for message in messages])
        return {event.id: event for event in told}

    async def _settle(self, receiver: Receiver, tried: Sequence[Tried]) -> int:
        """Write down what became of each; the receiver works if it took any."""
        answers = [each.posted for each in tried if each.posted is not None]
        taken = [each.message.id for each in tried if each.posted and each.posted.taken]
        failures = [_failure(each) for each in tried if not (each.posted and each.posted.taken)]
        gone = any(answer.status == GONE for answer in answers)
        async with self._database.transaction() as connection:
            if taken:
                await outbox.mark_sent(connection, taken)
                await store.forget_failures(connection, receiver.id)
            if failures:
                await outbox.mark_failed(connection, failures)
            if gone:
                await store.set_active(connection, receiver.id, False, "it answered 410 Gone")
        WEBHOOK_DELIVERIES.add("taken", amount=len(taken))
        WEBHOOK_DELIVERIES.add("refused", amount=len(failures))
        if gone:
            log.warning("webhook disabled", webhook=receiver.id, reason="it answered 410 Gone")
        elif answers and not taken:
            await self._let_rest(receiver, answers[-1])
        return len(taken)

    async def _let_rest(self, receiver: Receiver, answer: Posted | None) -> None:
        seconds = backoff(receiver.failures + 1, FIRST_REST, LONGEST_REST)
        if answer is not None:
            log.info("not taken", webhook=receiver.id, reason=answer.error)
            seconds = max(seconds, min(answer.retry_after or 0.0, LONGEST_REST))
        async with self._database.connection() as connection:
            await store.let_rest(connection, receiver.id, seconds)


async def send_test(database: Database, settings: Settings, webhook_id: int) -> Posted:
    """Send a webhook something that looks like an event; also one that is disabled."""
    async with database.connection() as connection:
        receiver = await store.select_receiver(connection, webhook_id)
    if receiver is None:
        raise no_such_webhook(webhook_id)
    secret = Vault(settings).open(receiver.secret, CONTEXT)
    body = orjson.dumps(
        {
            "id": None,
            "kind": TEST_KIND,
            "occurred_at": _shown(datetime.now(UTC)),
            "domain": None,
            "product": None,
            "data": {"webhook_id": webhook_id},
        }
    )
    async with Poster(agent_header(settings)) as poster:
        return await _post(poster, receiver, secret, body, TEST_KIND, "test")


async def _send(
    poster: Poster, receiver: Receiver, secret: str, message: Message, event: Told | None
) -> Tried:
    if event is None:
        return Tried(message, None)
    body = orjson.dumps(_content(event))
    posted = await _post(poster, receiver, secret, body, event.kind, str(message.id))
    return Tried(message, posted)


async def _post(
    poster: Poster, receiver: Receiver, secret: str, body: bytes, kind: str, delivery: str
) -> Posted:
    headers = {
        "Forager-Event": kind,
        "Forager-Delivery": delivery,
        signing.HEADER: signing.sign(secret, body, int(time.time())),
    }
    return await poster.post(receiver.url, body, headers, allow_private=receiver.allow_private)


def _content(event: Told) -> dict[str, Any]:
    product = {"id": event.product_id, "url": event.product_url, "name": event.product_name}
    return {
        "id": event.id,
        "kind": event.kind,
        "occurred_at": _shown(event.occurred_at),
        "domain": event.domain,
        "product": None if event.product_id is None else product,
        "data": event.payload,
    }


def _shown(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _failure(tried: Tried) -> Failure:
    if tried.posted is None:
        return Failure(tried.message.id, "the event is gone", None)
    error = tried.posted.error or ""
    if tried.posted.status == GONE:
        return Failure(tried.message.id, error, None)
    return failure_of(tried.message, error)


async def _first_of(tasks: Collection[asyncio.Task[int]], seconds: float) -> None:
    """Wait until one is done, or for so long."""
    if tasks:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(seconds)


def _log_failure(task: asyncio.Task[int]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        # its messages come back when their lease has passed
        log.warning("a delivery broke off", reason=str(error))
