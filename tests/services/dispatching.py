"""Tasks that reach workers through a broker: what runs beside, and the workers of both kinds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import amqp
from kombu import Connection

from forager.db.database import Database
from forager.db.ids import new_id
from forager.dispatch.broker import declare_exchanges, declare_queue
from forager.dispatch.message import DEAD, EXCHANGE, Route, TaskMessage, routes_of
from forager.dispatch.services import dispatch_services
from forager.services.service import Service
from forager.settings import Dispatch, Settings
from forager.tasks.scheduler import Scheduler
from forager.tasks.workers.recovery import TaskRecovery
from forager.tasks.workers.supervisor import WorkerProcess
from services.servers.rabbitmq import RabbitMQ
from support.waiting import LIMIT
from tasks.working import Tasks

BIN = Path(sys.executable).parent
REGIONS = (None, "eu")


class Wire:
    """A direct client of the broker: reads queues, and puts invalid messages into them."""

    def __init__(self, rabbitmq: RabbitMQ) -> None:
        self._connection = Connection(rabbitmq.url, connect_timeout=10)
        self.channel = self._connection.channel()

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()

    def clean(self) -> None:
        """Remove what earlier tests left."""
        queues = [route.queue for region in REGIONS for route in routes_of(region)]
        declare_exchanges(self.channel)
        for queue in queues:
            declare_queue(self.channel, queue)
        # not deleted: a quorum queue that was recreated a moment before its broker is killed does
        # not come back (RabbitMQ 3.10)
        for queue in (*queues, DEAD):
            self.channel.queue_purge(queue)

    def depth(self, queue: str) -> int:
        return int(self.channel.queue_declare(queue, passive=True).message_count)

    def put(self, route: Route, task_ids: list[int]) -> None:
        message = TaskMessage(route, task_ids)
        self.put_raw(route, message.body(), **message.properties())

    def put_raw(self, route: Route, body: bytes, **properties: Any) -> None:
        made = amqp.Message(body, **properties)
        self.channel.basic_publish(made, EXCHANGE, routing_key=route.queue)


@contextmanager
def wired(rabbitmq: RabbitMQ) -> Iterator[Wire]:
    wire = Wire(rabbitmq)
    try:
        yield wire
    finally:
        wire.close()


def by_celery(settings: Settings, rabbitmq: RabbitMQ, **changes: Any) -> Settings:
    """Short retry delays, and no images."""
    quick: dict[str, Any] = {
        "task_retry_delay": 0.01,
        "task_retry_delay_max": 0.05,
        "scheduler_interval": 0.1,
        "images": False,
        "dispatch": Dispatch.CELERY,
        "broker_url": rabbitmq.url,
    }
    return Settings(**(settings.model_dump() | quick | changes))


def by_postgres(settings: Settings) -> Settings:
    return settings.model_copy(update={"dispatch": Dispatch.POSTGRES})


def beside(database: Database, settings: Settings) -> list[Service]:
    """What `forager worker` runs beside the work, for tasks."""
    services = [Scheduler(database, settings).service(), TaskRecovery(database, settings).service()]
    if settings.dispatch is Dispatch.CELERY:
        services += dispatch_services(database, settings, new_id())
    return services


class Worker:
    """A worker's process, as a supervisor starts it."""

    def __init__(self, tasks: Tasks, settings: Settings | None = None) -> None:
        self._database = tasks.database
        self._settings = settings or tasks.settings
        self.started = self._start()

    def _start(self) -> WorkerProcess:
        settings = self._settings
        is_told = settings.dispatch is Dispatch.CELERY
        module = "forager.dispatch" if is_told else "forager.tasks"
        return WorkerProcess(new_id(), self._database.url, settings, module)

    async def stop(self) -> int | None:
        os.kill(self.started.pid, signal.SIGTERM)
        return await self._exited()

    async def kill_and_replace(self) -> None:
        """SIGKILL; its supervisor recovers the tasks, and starts another."""
        await self.kill()
        await TaskRecovery(self._database, self._settings).recover_worker(self.started.worker_id)
        self.started = self._start()

    async def kill(self) -> None:
        self.started.kill()
        await self._exited()

    async def _exited(self) -> int | None:
        async with asyncio.timeout(LIMIT):
            await self.started.exited.wait()
        return self.started.exit_code


@asynccontextmanager
async def worker(tasks: Tasks, settings: Settings | None = None) -> AsyncIterator[Worker]:
    started = Worker(tasks, settings)
    try:
        yield started
    finally:
        await started.kill()


def environment_of(settings: Settings) -> dict[str, str]:
    """For a program that takes these settings from its environment."""
    assert settings.database_url is not None
    assert settings.broker_url is not None
    return os.environ | {
        "FORAGER_HOME": str(settings.home),
        "FORAGER_DATABASE_URL": settings.database_url.get_secret_value(),
        "FORAGER_DISPATCH": settings.dispatch.value,
        "FORAGER_BROKER_URL": settings.broker_url.get_secret_value(),
        "FORAGER_SCHEDULER_INTERVAL": "0.1",
        "FORAGER_POLL_INTERVAL": "0.1",
        "FORAGER_HEARTBEAT_INTERVAL": "1",
        "FORAGER_IMAGES": "false",
        "FORAGER_LOG_LEVEL": "critical",
    }


@contextmanager
def command(settings: Settings, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [BIN / arguments[0], *arguments[1:]],
        env=environment_of(settings),
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
