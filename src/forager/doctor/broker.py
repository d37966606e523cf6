"""The broker, where tasks reach the workers through one."""

from __future__ import annotations

import asyncio

from forager.db.database import Database
from forager.dispatch import store
from forager.dispatch.broker import Broker
from forager.dispatch.errors import BrokerUnavailable, CeleryMissing
from forager.dispatch.topology import DEAD, STAGES, routes_of
from forager.doctor.check import Check, fail, failed_with, ok, warn
from forager.outbox.store import select_backlog
from forager.settings import Settings

# the relay tells of a task at once, unless the broker does not take it
LONG = 60.0


async def check_broker(database: Database, settings: Settings) -> Check:
    async with database.connection() as connection:
        backlog = await select_backlog(connection, STAGES)
        regions = await store.select_regions(connection)
    queues = {route.queue for region in (None, *regions) for route in routes_of(region)}
    try:
        depths = await asyncio.to_thread(_depths, settings, {*queues, DEAD})
    except CeleryMissing as error:
        return failed_with("broker", error)
    except BrokerUnavailable as error:
        return fail(
            "broker",
            f"{error.message}; {backlog.waiting} messages wait for it, and none is lost",
            "Start RabbitMQ, or mend FORAGER_BROKER_URL; with FORAGER_DISPATCH=postgres it is not"
            " needed.",
        )
    dead = depths.pop(DEAD)
    finding = f"{sum(depths.values())} messages wait for workers, {backlog.waiting} to be sent"
    if dead:
        return warn(
            "broker",
            f"{finding}; {dead} could not be read, or were delivered too often",
            f"Look at the queue {DEAD} of RabbitMQ, and purge it; their tasks are not lost.",
        )
    if backlog.oldest_seconds > LONG:
        return warn(
            "broker",
            f"{finding}, the oldest for {backlog.oldest_seconds:.0f} s",
            "See whether a worker or scheduler runs that relays them, and its log.",
        )
    return ok("broker", finding)


def _depths(settings: Settings, queues: set[str]) -> dict[str, int]:
    assert settings.broker_url is not None
    broker = Broker(settings.broker_url.get_secret_value())
    try:
        return broker.depths(queues)
    finally:
        broker.close()
