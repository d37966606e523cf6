"""Check of the message broker."""

from __future__ import annotations

import asyncio

from forager.checks import Result, Topic, check, fail, warn
from forager.db.database import Database
from forager.dispatch import store
from forager.dispatch.broker import Broker, BrokerUnavailable
from forager.dispatch.message import DEAD, STAGES, routes_of
from forager.outbox.service import select_backlog
from forager.settings import Dispatch, Settings

# tasks are sent within seconds
LONG = 60.0


@check("broker", Topic.WORK, "Workers get no tasks through it; the tasks wait in PostgreSQL.")
async def check_broker(database: Database, settings: Settings) -> Result:
    if settings.dispatch is not Dispatch.CELERY:
        return "not configured"
    async with database.connection() as connection:
        backlog = await select_backlog(connection, STAGES)
        regions = await store.select_regions(connection)
    queues = {route.queue for region in (None, *regions) for route in routes_of(region)}
    try:
        depths = await asyncio.to_thread(_depths, settings, {*queues, DEAD})
    except BrokerUnavailable as error:
        return fail(
            f"{error.message}; {backlog.waiting} messages wait for it, and none is lost",
            "Start RabbitMQ, correct FORAGER_BROKER_URL, or set FORAGER_DISPATCH=postgres.",
        )
    dead = depths.pop(DEAD)
    message = f"{sum(depths.values())} messages wait for workers, {backlog.waiting} to be sent"
    if dead:
        return warn(
            f"{message}; {dead} could not be read, or were delivered too often",
            f"Check the queue {DEAD} of RabbitMQ, and purge it; their tasks are not lost.",
        )
    if backlog.oldest_seconds > LONG:
        return warn(
            f"{message}, the oldest for {backlog.oldest_seconds:.0f} s",
            "See whether a worker or scheduler runs that relays them, and its log.",
        )
    return message


def _depths(settings: Settings, queues: set[str]) -> dict[str, int]:
    assert settings.broker_url is not None
    broker = Broker(settings.broker_url.get_secret_value())
    try:
        return broker.depths(queues)
    finally:
        broker.close()
