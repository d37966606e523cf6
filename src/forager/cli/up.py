"""`forager up`: everything there is, in one process tree."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.api import Host, Port
from forager.cli.flags import flags_of
from forager.cli.options import Capacity
from forager.cli.running import run
from forager.cli.worker import run_worker
from forager.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from forager.settings import Settings


Api = Annotated[bool, typer.Option("--api/--no-api", help="Serve the API and the dashboard.")]


def up(
    context: typer.Context,
    capacity: Capacity = None,
    api: Api = True,
    host: Host = None,
    port: Port = None,
) -> None:
    """Run everything on this machine.

    That is the database, unless one is configured, a worker for jobs and tasks, the scheduler, the
    API and the dashboard.
    """
    settings = flags_of(context).load(
        quiet=False, worker_capacity=capacity, api_host=host, api_port=port
    )
    run(run_worker(settings, name="up", more=[ServerPart(settings)] if api else []))


class ServerPart:
    """Serves until it is told to stop. Where it cannot listen, the work beside it goes on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        from forager.logs import get_logger

        try:
            await self._serve()
        except (InvalidInput, NotAllowed) as refused:
            # jobs must run all the same, and another process here may have the port for its own
            get_logger("up").warning(
                "no dashboard here", reason=refused.message, hint=refused.hint or ""
            )
            await self._stopping.wait()

    async def _serve(self) -> None:
        from forager.api.server import serve
        from forager.db.database import open_database
        from forager.web.app import dashboard

        async with open_database(
            self._settings, name="forager api", max_size=self._settings.api_connections
        ) as database:
            await serve(
                self._settings, database, self._stopping, started=_welcome, extend=dashboard
            )


def _welcome(address: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        output.note(f"dashboard: {address}  API: {address}/api/docs")
