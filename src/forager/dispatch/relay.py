"""The relay: tells the broker what the outbox says, and deletes that only when it is confirmed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Self, TypeVar

from forager.db.database import Connection, Database
from forager.db.patience import TROUBLE, Patience
from forager.dispatch import store
from forager.dispatch.broker import Broker
from forager.dispatch.errors import BrokerUnavailable
from forager.dispatch.message import TaskMessage
from forager.dispatch.topology import Band, Route
from forager.logs import get_logger
from forager.metrics.recorded import DISPATCHED
from forager.services.service import Service
from forager.settings import Settings
from forager.tasks.store.hints import delete_told
from forager.tasks.task import CHANNEL

log = get_logger("dispatch")

BATCH = 1_000
# what does not get through in time is tried in smaller portions, down to this
FEWEST = 10
# whoever downloaded a page has it in memory, and reads it himself if he can
LEFT_ALONE = 1.0
# for a queue that takes no messages, while others do
REST = 10.0

Answer = TypeVar("Answer")


class BrokerThread:
    """The broker from an event loop, in one thread: a connection is not shared by threads.

    It opens with its first use, also after it was closed.
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
    """Any number of processes may run one: each takes rows that no other has locked."""

    def __init__(self, database: Database, settings: Settings) -> None:
        assert settings.broker_url is not None  # the settings see to it
        self._database = database
        self._settings = settings
        self._broker = BrokerThread(settings.broker_url.get_secret_value())
        self._refusals = Patience(log, "a queue of the broker takes no messages")
        self._resting: dict[Route, float] = {}
        self._woken = asyncio.Event()
        self._batch = BATCH

    def service(self) -> Service:
        """Its step waits for notifications by itself."""
        return Service(name="dispatch relay", every=0.0, step=self._step, resources=self._resources)

    @asynccontextmanager
    async def _resources(self) -> AsyncIterator[None]:
        listening = asyncio.ensure_future(self._listen())
        try:
            yield
        finally:
            listening.cancel()
            self.close()

    async def _step(self) -> None:
        asked = self._batch
        if await self.run_once() < asked:
            await self._nap()

    async def run_once(self) -> int:
        """Tell of one batch; how many rows that were."""
        asked, self._batch = self._batch, max(FEWEST, self._batch // 4)
        async with self._database.transaction() as connection:
            told = await self._tell(connection, asked)
        self._batch = min(BATCH, 2 * asked)
        return told

    def close(self) -> None:
        self._broker.close()

    async def _tell(self, connection: Connection, most: int) -> int:
        hints = await store.lock_hints(
            connection,
            limit=most,
            left_alone=LEFT_ALONE,
            task_proxies=self._settings.task_proxies,
            resting=self._resting_now(),
        )
        named = [hint for hint in hints if hint.task_ids]
        refused = await self._publish(
            [
                TaskMessage(Route(hint.stage, Band(hint.band), hint.region), hint.task_ids)
                for hint in named
            ]
        )
        left = {named[place].id for place in refused}
        await delete_told(connection, [hint.id for hint in hints if hint.id not in left])
        return len(hints)

    async def _publish(self, messages: Sequence[TaskMessage]) -> Mapping[int, str]:
        """Which of them were refused, by their place."""
        if not messages:
            return {}
        try:
            refused = await self._broker.do(lambda broker: broker.publish(messages))
        except BrokerUnavailable:
            DISPATCHED.add("all", "failed", amount=len(messages))
            raise
        sent = (message for place, message in enumerate(messages) if place not in refused)
        for stage, number in Counter(message.route.stage for message in sent).items():
            DISPATCHED.add(stage, "sent", amount=number)
        if refused:
            DISPATCHED.add("all", "failed", amount=len(refused))
        self._let_rest({messages[place].route: reason for place, reason in refused.items()})
        return refused

    def _let_rest(self, refused: Mapping[Route, str]) -> None:
        until = time.monotonic() + REST
        for route, reason in refused.items():
            self._resting[route] = until
            self._refusals.note(BrokerUnavailable(f"{route.queue}: {reason}"))
        if not self._resting:
            self._refusals.over()

    def _resting_now(self) -> list[Route]:
        now = time.monotonic()
        self._resting = {route: until for route, until in self._resting.items() if now < until}
        return list(self._resting)

    async def _nap(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.poll_interval):
                await self._woken.wait()
        self._woken.clear()

    async def _listen(self) -> None:
        """Wake up when something was queued. Polling goes on all the same."""
        while True:
            with suppress(*TROUBLE):
                async with aclosing(self._database.notifications(CHANNEL)) as notifications:
                    async for _ in notifications:
                        self._woken.set()
            await asyncio.sleep(self._settings.poll_interval)
