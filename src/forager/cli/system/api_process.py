"""The API of `forager up`: a process beside the worker, so that neither can stop the other."""

from __future__ import annotations

import asyncio
import time

from forager.clock import wait_for_event
from forager.db.database import Database
from forager.errors import ForagerError
from forager.processes.control import Assignment, Command, Stop, StopCause
from forager.processes.identity import process_name
from forager.processes.lease_monitor import LeaseMonitor, join_supervisor
from forager.processes.signals import time_to_finish
from forager.processes.supervised import SupervisedProcess, watch_limits
from forager.services.report import identify, run_services
from forager.services.service import Service
from forager.settings import Settings

# the next start of a process that ran for this long has no backoff
WELL_AFTER = 60.0
KILL_LIMIT = 5.0


class ApiProcess(SupervisedProcess):
    """The process that serves the API and the dashboard."""

    def __init__(self, settings: Settings) -> None:
        url = settings.database_url
        given = {**settings.for_child_process(), "database_url": url and url.get_secret_value()}
        assignment = Assignment(worker_id="", database_url="", settings=given)
        mark = f"api {process_name()} {time.monotonic()}"
        super().__init__(__name__, assignment, name="API process", mark=mark)

    @property
    def is_busy(self) -> bool:
        return False  # it has no limit that is reached within seconds

    def _broken_memory_limit(self, limit: int) -> str | None:  # noqa: ARG002
        return None  # that limit is for jobs


class ApiDied(ForagerError):
    """The API process died."""


class ApiPart:
    """Keeps the API process running. It is a service, so that others see its restarts."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._stopping = asyncio.Event()
        self._process: ApiProcess | None = None

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        service = Service(name="API process", every=0.1, step=self.run_once, first_within=0.0)
        identity = identify("api supervisor", process_name())
        limits = asyncio.ensure_future(
            watch_limits(lambda: [self._process] if self._process else [], self._settings)
        )
        try:
            async with run_services(self._database, self._settings, identity, [service]):
                await self._stopping.wait()
                await self._end()
        finally:
            limits.cancel()
            if self._process is not None:
                self._process.kill()

    async def run_once(self) -> None:
        """Start the process if it does not run, and watch it for a while."""
        if self._stopping.is_set():
            return
        if self._process is None or self._process.exited.is_set():
            self._process = ApiProcess(self._settings)
        await wait_for_event(self._process.exited, WELL_AFTER)
        if self._process.exited.is_set() and not self._stopping.is_set():
            raise ApiDied(self._process.how_it_ended())

    async def _end(self) -> None:
        """Let requests in progress finish, and kill a process that takes too long."""
        if self._process is not None:
            self._process.ask_to_stop(StopCause.SHUTDOWN)
            limit = time_to_finish(self._settings.shutdown_grace)
            await wait_for_event(self._process.exited, limit)
            self._process.kill()
            await wait_for_event(self._process.exited, KILL_LIMIT)


def main() -> None:
    import uvloop

    _, settings, lease_monitor = join_supervisor()
    uvloop.run(_serve(settings, lease_monitor))


async def _serve(settings: Settings, lease_monitor: LeaseMonitor) -> None:
    from forager.cli.system.up import ServerPart

    server = ServerPart(settings)

    def deliver(command: Command) -> None:
        if isinstance(command, Stop):
            server.stop()

    lease_monitor.attach(deliver)
    ticking = asyncio.ensure_future(lease_monitor.keep_ticking())
    try:
        await server.run()
    finally:
        ticking.cancel()


if __name__ == "__main__":
    main()
