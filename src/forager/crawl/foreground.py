"""A crawl in the foreground: the same queue, supervisor and runner, watched until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

from forager.crawl.reports.report import CrawlReport, crawl_report
from forager.db.database import Database
from forager.db.outages import retry_until_available
from forager.errors import DatabaseUnavailable
from forager.jobs.lifecycle import FINISHED, IllegalMove, Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.logs import get_logger
from forager.metrics.recorder import recording
from forager.processes.started import StartedProcess
from forager.render.finding import find_browser
from forager.settings import Settings

log = get_logger("crawl")

LOOK_INTERVAL = 0.25


class Foreground:
    """Runs one job here, unless a worker elsewhere has it, and reports until it ends or pauses."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        job_id: UUID,
        show: Callable[[CrawlReport], None] = lambda _: None,
        spare: StartedProcess | None = None,
        *,
        embeds: bool = False,
    ) -> None:
        """With `embeds`, it ends when what it published can be searched by meaning."""
        self._database = database
        self._settings = settings
        self._queue = Queue(database, settings)
        self._job_id = job_id
        self._show = show
        self._supervisor = Supervisor(
            database,
            settings,
            renders=find_browser(settings).path is not None,
            only=job_id,
            spare=spare,
        )
        self._pausing: asyncio.Task[None] | None = None
        self._embeds = embeds
        self._cleaning: asyncio.Task[None] | None = None

    async def run(self) -> CrawlReport:
        """Run the crawl until it has ended or is paused, and return its report."""
        async with recording(self._database, self._settings):
            report = await self._run()
        if report.job.status is Status.COMPLETED:
            await self._clean_up()
        return report

    async def _clean_up(self) -> None:
        # imported here, so that the crawl does not wait for it
        from forager.crawl.clean_up import clean_up

        self._cleaning = asyncio.create_task(
            clean_up(self._database, self._settings, embeds=self._embeds)
        )
        try:
            await asyncio.wait({self._cleaning})
        finally:
            self._cleaning.cancel()
            await asyncio.gather(self._cleaning, return_exceptions=True)

    async def _run(self) -> CrawlReport:
        supervising = asyncio.create_task(self._supervisor.run())
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({supervising, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not watching.done():
                supervising.result()  # it ends only by a bug, which is raised here
            return await watching
        finally:
            watching.cancel()
            self._supervisor.stop()
            await asyncio.wait({supervising})

    def pause(self) -> None:
        """Request a clean pause; `run` returns when the job is paused, or has ended."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        self._pausing = asyncio.ensure_future(self._pause())

    def stop_at_once(self) -> None:
        """Do not wait for the runner: what it has not committed goes back to the frontier."""
        for runner in self._supervisor.runners.all:
            runner.kill("stopped by the user")

    async def _pause(self) -> None:
        try:
            # retried while the database is unreachable: the pause is still wanted then
            await retry_until_available(
                lambda: self._queue.pause(self._job_id, reason="interrupted at the terminal"), log
            )
        except IllegalMove:
            return  # it ended just now

    async def _watch(self) -> CrawlReport:
        while True:
            report = await self._look()
            if report is not None:
                self._show(report)
                if _has_ended(report):
                    return report
            await asyncio.sleep(LOOK_INTERVAL)

    async def _look(self) -> CrawlReport | None:
        try:
            return await crawl_report(self._database, self._queue, self._job_id)
        except DatabaseUnavailable:
            return None  # the supervisor says so, and brings it back if it can


def _has_ended(report: CrawlReport) -> bool:
    job = report.job
    return job.status in FINISHED or (job.status is Status.PAUSED and job.worker_id is None)
