"""A worker for tasks: both stages and the images, under one row in the list of workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from forager.archive.writer import close_segments_of
from forager.clock import local_time
from forager.db.database import Database
from forager.db.outages import Outage, listen
from forager.errors import DatabaseUnavailable, DiskFull, error_text
from forager.fetch.polite import Fetching
from forager.images.fetcher import ImageFetcher
from forager.jobs.workers import Registration
from forager.logs import get_logger
from forager.parsers.reading import ReadingPool
from forager.parsers.registry import installed_versions, load_parsers
from forager.processes.control import Tick
from forager.render.finding import find_browser
from forager.settings import Settings
from forager.tasks.hints import Hints, send_hints
from forager.tasks.rendering import RenderDecisions, TaskBrowser
from forager.tasks.stages.attempt import Stage
from forager.tasks.stages.download import Downloader
from forager.tasks.stages.loop import StageParts, TaskLeases
from forager.tasks.stages.parse import ParseStage
from forager.tasks.store import stages as store
from forager.tasks.task import CHANNEL

log = get_logger("tasks")

TRANSIENT_ERRORS = (DatabaseUnavailable, DiskFull)
# no heartbeat takes longer, even if the database is unreachable
ANSWER_LIMIT = 15.0
RETRY_INTERVAL = 1.0
RELEASE_LIMIT = 3.0


class TaskWorker:
    """Downloads and parses until it is stopped; `on_renewed` is called with every heartbeat.

    With `hints` it works only on hinted tasks.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        worker_id: UUID,
        *,
        on_renewed: Callable[[float], None] = lambda _: None,
        hints: Hints | None = None,
    ) -> None:
        self._database = database
        self._limited = database.with_answer_limit(ANSWER_LIMIT)
        self._settings = settings
        self._worker_id = worker_id
        self._on_renewed = on_renewed
        self._leases = TaskLeases()
        self._hints = hints
        self._unclaimed: list[int] = []
        # a worker that others consider dead must not return: its segments may be deleted
        self._registration = Registration(
            self._limited,
            worker_id,
            capacity=settings.task_concurrency,
            role="tasks",
            region=settings.region,
            renders=find_browser(settings).path is not None,
            returns=False,
            parsers=installed_versions,
        )
        self._outage = Outage(log, "the database is unreachable, will retry")
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Request a graceful stop: fetched pages are committed, other tasks are released."""
        self._stopping.set()

    def tick(self) -> Tick:
        return self._leases.tick()

    async def run(self) -> None:
        for broken in load_parsers(self._settings.parser_modules).broken:
            log.warning("a parser cannot be used", origin=broken.origin, reason=broken.reason)
        async with AsyncExitStack() as stack:
            fetching = await stack.enter_async_context(Fetching(self._database, self._settings))
            pool = await stack.enter_async_context(ReadingPool(self._settings))
            await self._enter()
            log.info("task worker started", worker=str(self._worker_id))
            try:
                await self._work(fetching, pool)
            finally:
                await self._leave()

    async def _enter(self) -> None:
        while not self._stopping.is_set():
            with self._outage:
                await self._renew()
                return
            await asyncio.sleep(RETRY_INTERVAL)

    async def _work(self, fetching: Fetching, pool: ReadingPool) -> None:
        parsing, downloading = self._stages(fetching, pool)
        wanted = self._settings.task_stages
        stages = []
        if wanted != "parse":
            stages.append(asyncio.ensure_future(downloading.run()))
        if wanted != "download":
            stages.append(asyncio.ensure_future(parsing.run()))
        beside = [
            asyncio.ensure_future(work) for work in self._beside(fetching, parsing, downloading)
        ]
        stop: asyncio.Future[Any] = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({stop, *stages, *beside}, return_when=asyncio.FIRST_COMPLETED)
            if self._hints is not None:
                self._unclaimed = await self._hints.close()
            downloading.stop()
            parsing.stop()
            for ended in beside:
                if ended.done():
                    ended.result()  # none of them ends but by a bug or a lost row
            await asyncio.gather(*stages)
        finally:
            for work in (stop, *stages, *beside):
                work.cancel()
            await asyncio.gather(stop, *stages, *beside, return_exceptions=True)

    def _stages(self, fetching: Fetching, pool: ReadingPool) -> tuple[ParseStage, Downloader]:
        decisions = RenderDecisions(self._database, self._settings)
        parts = StageParts(self._database, self._settings, self._worker_id, self._leases, decisions)
        parse = None if self._hints is None else self._hints.of(Stage.PARSE)
        download = None if self._hints is None else self._hints.of(Stage.DOWNLOAD)
        parsing = ParseStage(parts, pool, parse)
        browser = TaskBrowser(self._settings, fetching)
        return parsing, Downloader(
            parts, fetching, browser, on_downloaded=parsing.wake, hints=download
        )

    def _beside(
        self, fetching: Fetching, parsing: ParseStage, downloading: Downloader
    ) -> list[Coroutine[Any, Any, None]]:
        # polling continues as well
        listening = listen(self._database, CHANNEL, lambda _: downloading.wake())
        work = [self._beat(parsing, downloading), listening]
        if self._settings.images:
            work.append(ImageFetcher(self._database, self._settings, fetching).run())
        return work

    async def _beat(self, parsing: ParseStage, downloading: Downloader) -> None:
        """Renew the row of this worker, and compare the leased tasks with the database."""
        while True:
            pause = self._settings.heartbeat_interval
            with self._outage:
                await self._renew()
                for task_id in await self._compare():
                    downloading.drop(task_id)
                    parsing.drop(task_id)
            await asyncio.sleep(min(pause, RETRY_INTERVAL) if self._outage.lasts else pause)

    async def _renew(self) -> None:
        asked_at = local_time()
        await self._registration.renew(stopping=self._stopping.is_set())
        self._leases.may_claim = self._registration.note is None
        self._on_renewed(asked_at)

    async def _compare(self) -> list[int]:
        """Release tasks that only the database assigns to this worker, or that were stopped."""
        async with self._leases.claiming:
            known = self._leases.leased()
            async with self._limited.connection() as connection:
                await store.give_back(
                    connection, self._worker_id, stopped_only=True, reason="it was stopped"
                )
                leased = await store.select_leased(connection, self._worker_id)
                unknown = [id_ for id_, lease in leased.items() if known.get(id_) != lease]
                if unknown:
                    log.warning("gives back tasks that it did not know of", tasks=len(unknown))
                    await store.give_back(
                        connection,
                        self._worker_id,
                        ids=unknown,
                        reason="the answer to the claim was lost",
                    )
                    await send_hints(connection, self._settings, unknown)
        return [id_ for id_, lease in known.items() if leased.get(id_) != lease]

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(RELEASE_LIMIT):
                await self._release_all()
        except (*TRANSIENT_ERRORS, TimeoutError) as error:
            # recovery will find the tasks
            log.warning("stopped without giving tasks back", reason=error_text(error))
        log.info("task worker stopped", worker=str(self._worker_id))

    async def _release_all(self) -> None:
        database = self._database.with_answer_limit(RELEASE_LIMIT)
        async with database.transaction() as connection:
            given = await store.give_back(
                connection, self._worker_id, reason="the worker was stopped"
            )
            await send_hints(connection, self._settings, [*given, *self._unclaimed])
            if given:
                await store.notify_workers(connection)
            await close_segments_of(connection, self._worker_id)
        await self._registration.end()
        if given:
            log.info("tasks given back", tasks=len(given))
