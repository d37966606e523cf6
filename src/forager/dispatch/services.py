"""Background services of task dispatch: the relay and the sweeper, or without a broker a clean-up.

The sweeper enqueues new messages for tasks whose messages were lost: with the worker that had them,
or because a process without a broker queued the tasks, or before a hold was lifted.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from forager.db.database import Database
from forager.db.retention import delete_rows
from forager.dispatch import store
from forager.dispatch.message import Route, routes_of
from forager.dispatch.relay import BrokerThread, Relay
from forager.logs import get_logger
from forager.outbox.service import unsent
from forager.services.service import Service, in_chunks
from forager.settings import Dispatch, Settings
from forager.tasks.hints import send_hints, touch

HINT_CLEANUP_INTERVAL = 300.0
# processes that still use the broker keep their hints while a deployment stops using it
HINT_AGE = 600.0
CHUNK = 10_000
UNUSED = unsent(
    """
    topic IN ('crawl', 'parse', 'render')
    AND created_at < now() - make_interval(secs => %(older)s)
"""
)


def dispatch_services(database: Database, settings: Settings, process_id: UUID) -> list[Service]:
    """`process_id`: the service process whose end releases the claimed messages of its relay."""
    if settings.dispatch is not Dispatch.CELERY:
        step = partial(delete_unused_hints, database)
        return [Service(name="dispatch cleanup", every=HINT_CLEANUP_INTERVAL, step=step)]
    return [Relay(database, settings, process_id).service(), Sweeper(database, settings).service()]


async def delete_unused_hints(database: Database, *, older: float = HINT_AGE) -> int:
    """Delete hints for a broker that is not configured: workers poll the database instead."""
    return await in_chunks(database, delete_rows, rows=UNUSED, older=older, limit=CHUNK)


log = get_logger("dispatch")

LONGEST_INTERVAL = 10.0
LIMIT = 2_000
# a task that waits this many times longer than usual has lost its message
LOST_AFTER = 10


class Sweeper:
    """Any number of processes may run it: a new message restarts the wait of its task."""

    def __init__(self, database: Database, settings: Settings) -> None:
        assert settings.broker_url is not None
        self._database = database
        self._settings = settings
        self._broker = BrokerThread(settings.broker_url.get_secret_value())

    def service(self) -> Service:
        every = min(LONGEST_INTERVAL, self._settings.dispatch_resend_after)
        return Service(
            name="dispatch sweep", every=every, step=self.run_once, resources=lambda: self._broker
        )

    async def run_once(self) -> int:
        """Enqueue messages for tasks that lost theirs; returns the number of tasks."""
        busy = await self._busy_routes()
        waited = self._settings.dispatch_resend_after
        async with self._database.transaction() as connection:
            forgotten = await store.lock_forgotten(
                connection,
                waited=waited,
                lost=LOST_AFTER * waited,
                busy=busy,
                limit=LIMIT,
                task_proxies=self._settings.task_proxies,
            )
            await touch(connection, forgotten)
            await send_hints(connection, self._settings, forgotten)
        if forgotten:
            log.info("tasks enqueued for the broker again", tasks=len(forgotten))
        return len(forgotten)

    def close(self) -> None:
        self._broker.close()

    async def _busy_routes(self) -> list[Route]:
        """Routes with waiting messages: their workers are busy, so messages are lost later."""
        regions = await self._database.run(store.select_regions)
        routes = {route for region in (None, *regions) for route in routes_of(region)}
        queues = {route.queue: route for route in routes}
        waiting = await self._broker.do(lambda broker: broker.waiting(queues))
        return [queues[name] for name in waiting]
