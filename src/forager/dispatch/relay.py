"""The relay: publishes messages of the outbox to the broker, and deletes them when confirmed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Self, TypeVar
from uuid import UUID

from forager.clock import wait_for_event
from forager.db.database import Connection, Database
from forager.db.outages import Outage, listen
from forager.dispatch import store
from forager.dispatch.broker import Broker, BrokerUnavailable
from forager.dispatch.message import Band, Route, TaskMessage
from forager.logs import get_logger
from forager.metrics.catalog import DISPATCHED
from forager.outbox import service as outbox
from forager.outbox.claim import Claim, claimed
from forager.outbox.message import Lane, Message, RetryPolicy
from forager.services.service import Service
from forager.settings import Settings
from forager.tasks.task import CHANNEL

log = get_logger("dispatch")

BATCH = 1_000
# a batch that is not confirmed in time is retried in smaller parts, down to this size
SMALLEST_BATCH = 10
# longer than publishing a batch can take
LEASE = 60.0
# for messages to a queue that rejects them
RETRY = RetryPolicy(first=10.0, longest=300.0)
# high priorities first, and downloaded pages before others
LANES = [Lane(stage, band) for band in Band for stage in ("parse", "crawl", "render")]

Answer = TypeVar("Answer")


class BrokerThread:
    """The broker, used from an event loop in one thread: threads cannot share a connection.

    It is opened by its first use, also after it was closed.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: tuple[Broker, ThreadPoolExecutor] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def do(self, work: Callable[[Broker], Answer]) -> Answer:
        if self._open is None:
            self._open = Broker(self._url), ThreadPoolExecutor(1, thread_name_prefix="broker")
        broker, thread = self._open
        return await asyncio.wrap_future(thread.submit(work, broker))

    def close(self) -> None:
        if self._open is not None:
            broker, thread = self._open
            self._open = None
            thread.submit(broker.close)
            thread.shutdown(wait=False)


class Relay:
    """Publishes messages; any number of processes may run it."""

    def __init__(
        self, database: Database, settings: Settings, process_id: UUID | None = None
    ) -> None:
        assert settings.broker_url is not None  # checked by the settings
        self._database = database
        self._settings = settings
        self._process_id = process_id
        self._broker = BrokerThread(settings.broker_url.get_secret_value())
        self._refusals = Outage(log, "a queue of the broker refuses messages")
        self._refusing: set[Route] = set()
        self._woken = asyncio.Event()
        self._batch = BATCH

    def service(self) -> Service:
        """Without an interval: its step waits for notifications."""
        return Service(name="dispatch relay", every=0.0, step=self._step, resources=self._resources)

    @asynccontextmanager
    async def _resources(self) -> AsyncIterator[None]:
        listening = asyncio.ensure_future(
            listen(self._database, CHANNEL, lambda _: self._woken.set())
        )
        try:
            yield
        finally:
            listening.cancel()
            self.close()

    async def _step(self) -> None:
        asked = self._batch
        if await self.run_once() < asked:
            await wait_for_event(self._woken, self._settings.poll_interval)
            self._woken.clear()

    async def run_once(self) -> int:
        """Publish one batch; returns the number of claimed messages."""
        asked, self._batch = self._batch, max(SMALLEST_BATCH, self._batch // 4)
        messages = await self._database.run(
            outbox.claim, LANES, limit=asked, lease=LEASE, claimed_by=self._process_id
        )
        if messages:
            async with claimed(self._database, messages) as claim:
                await self._relay(claim)
        self._batch = min(BATCH, 2 * asked)
        return len(messages)

    def close(self) -> None:
        self._broker.close()

    async def _relay(self, claim: Claim) -> None:
        wanted = await self._database.run(
            task_messages, claim.messages, task_proxies=self._settings.task_proxies
        )
        refused = await self._publish(list(wanted.values()))
        ids = list(wanted)
        errors = {ids[place]: reason for place, reason in refused.items()}
        await claim.settle(
            [each.id for each in claim.messages if each.id not in errors],
            [RETRY.failure(each, errors[each.id]) for each in claim.messages if each.id in errors],
        )

    async def _publish(self, messages: Sequence[TaskMessage]) -> Mapping[int, str]:
        """Publish messages; returns the rejected ones by index."""
        if not messages:
            return {}
        try:
            refused = await self._broker.do(lambda broker: broker.publish(messages))
        except BrokerUnavailable:
            DISPATCHED.add("all", "failed", amount=len(messages))
            raise
        sent = Counter(each.route for place, each in enumerate(messages) if place not in refused)
        for route, number in sent.items():
            DISPATCHED.add(route.stage, "sent", amount=number)
        if refused:
            DISPATCHED.add("all", "failed", amount=len(refused))
        self._note({messages[place].route: reason for place, reason in refused.items()}, sent)
        return refused

    def _note(self, refused: Mapping[Route, str], sent: Iterable[Route]) -> None:
        """Log queues that reject messages, and when all of them work again."""
        for route, reason in refused.items():
            self._refusals.note(BrokerUnavailable(f"{route.queue}: {reason}"))
        self._refusing = self._refusing.difference(sent) | refused.keys()
        if not self._refusing:
            self._refusals.over()


async def task_messages(
    connection: Connection, messages: Sequence[Message], *, task_proxies: bool
) -> dict[int, TaskMessage]:
    """The messages to publish by id, without tasks that were parsed meanwhile."""
    domains = sorted({each.ref_id for each in messages})
    places = await store.select_places(connection, domains, task_proxies=task_proxies)
    parse = [id for each in messages if each.topic == "parse" for id in each.payload or ()]
    downloaded = await store.select_downloaded(connection, parse) if parse else set()
    wanted = {}
    for each in messages:
        crawled_in, parsed_in = places.get(each.ref_id, (None, None))
        region, task_ids = crawled_in, list(each.payload or ())
        if each.topic == "parse":
            region, task_ids = parsed_in, [id for id in task_ids if id in downloaded]
        if task_ids:
            wanted[each.id] = TaskMessage(Route(each.topic, Band(each.lane), region), task_ids)
    return wanted
