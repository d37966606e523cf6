"""A worker that claims tasks and settles them immediately: `python -m benchmarks.dispatch_worker`.

This measures only the dispatch. Settings come from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import cast
from uuid import UUID

import uvloop

from forager.db.database import Database
from forager.db.ids import new_id
from forager.dispatch.application import CeleryThread, Inbox, make_app
from forager.jobs.workers import Registration
from forager.logs import configure_logs
from forager.settings import Dispatch, Settings, load_settings
from forager.tasks.schedule import Completion, complete_tasks
from forager.tasks.stages.attempt import LeasedTask, Stage, StageOfWorker
from forager.tasks.store import claims, stages
from forager.tasks.task import CHANNEL

AT_ONCE = 20
NO_LIMIT = 1_000_000


class Idler:
    """Claims and settles tasks without doing their work."""

    def __init__(self, database: Database, settings: Settings, worker_id: UUID) -> None:
        self._database = database
        self._settings = settings
        self._who = StageOfWorker(worker_id, Stage.DOWNLOAD)

    async def do(self, among: Sequence[int] | None = None) -> int:
        async with self._database.connection() as connection:
            tasks = await claims.claim_queued(
                connection,
                self._who.worker_id,
                limit=AT_ONCE if among is None else len(among),
                busy={},
                throttled=[],
                concurrency=NO_LIMIT,
                among=among,
            )
        if tasks:
            await self._settle(tasks)
        return len(tasks)

    async def _settle(self, tasks: Sequence[LeasedTask]) -> None:
        async with self._database.transaction() as connection:
            kept = await stages.lock_leased(connection, self._who, tasks)
            done = [Completion(task_id, price_changed=False) for task_id in kept]
            await complete_tasks(connection, done, settings=self._settings)


class Desk:
    """An inbox that reports every task as done."""

    def __init__(self, loop: asyncio.AbstractEventLoop, idler: Idler) -> None:
        self._loop = loop
        self._idler = idler

    def put(self, _: str, task_ids: Sequence[int]) -> None:
        asyncio.run_coroutine_threadsafe(self._idler.do(task_ids), self._loop).result(60)


async def main() -> None:
    settings = load_settings()
    configure_logs("critical")
    assert settings.database_url is not None
    worker_id = new_id()
    async with Database(settings.database_url.get_secret_value(), name="idler") as database:
        idler = Idler(database, settings, worker_id)
        registration = Registration(database, worker_id, capacity=1, role="tasks")
        await registration.renew(stopping=False)
        if settings.dispatch is Dispatch.CELERY:
            desk = Desk(asyncio.get_running_loop(), idler)
            CeleryThread(make_app(settings, lambda: cast(Inbox, desk))).start()
            await asyncio.Event().wait()
        async with aclosing(database.notifications(CHANNEL)) as notifications:
            async for _ in notifications:
                while await idler.do():
                    pass


if __name__ == "__main__":
    uvloop.run(main())
