"""What a tool is called with: the services, the caller, and a way to report progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from mcp.server.context import ServerRequestContext

from forager.access.caller import Caller
from forager.api.services import Services
from forager.crawl.foreground import Foreground
from forager.logs import get_logger

log = get_logger("mcp")

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """What a transport provides: services, who calls, and perhaps a place to run crawls."""

    services: Services
    caller_of: Callable[[Context], Caller]
    # tools that change nothing
    read_only: bool = False
    # None: workers run the jobs
    crawls: LocalCrawls | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    host: Host
    caller: Caller
    context: Context

    @property
    def services(self) -> Services:
        """The services that the caller may use."""
        return replace(self.host.services, caller=self.caller)

    async def report_progress(self, done: int, total: int, message: str) -> None:
        await self.context.session.report_progress(done, total, message)


@dataclass(slots=True)
class LocalCrawls:
    """Crawls that run inside a stdio server, where there may be no worker.

    A worker that claims a job first keeps it. What is left when the client closes the server goes
    back to the queue; the next `crawl_site` of the source, or a worker, continues it.
    """

    services: Services
    _running: dict[UUID, asyncio.Task[Any]] = field(default_factory=dict)

    def start(self, job_id: UUID) -> None:
        """Run a crawl in this process, unless it runs already."""
        if job_id not in self._running:
            task = asyncio.create_task(self._run(job_id), name=f"crawl {job_id}")
            self._running[job_id] = task
            task.add_done_callback(lambda _: self._running.pop(job_id, None))

    async def _run(self, job_id: UUID) -> None:
        try:
            await Foreground(self.services.database, self.services.settings, job_id).run()
        except Exception:
            log.exception("a crawl stopped; its job stays in the queue", job=str(job_id))

    async def close(self) -> None:
        """Stop all crawls; they continue where they stopped."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
