"""`forager up`, `forager api` and `forager mcp`: serve this installation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.options import Capacity, flags_of, option, switch
from forager.cli.output import note, write
from forager.cli.running import run_until_stopped
from forager.cli.system.worker import run_worker
from forager.errors import InvalidInput, NotAllowed
from forager.mcp.clients import McpClient, client_config

if TYPE_CHECKING:
    from forager.settings import Settings

Api = Annotated[bool, typer.Option("--api/--no-api", help="Serve the API and the dashboard.")]
Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="setting")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port; 0 takes a free one.", show_default="setting"),
]


def up(
    context: typer.Context,
    capacity: Capacity = None,
    api: Api = True,
    host: Host = None,
    port: Port = None,
) -> None:
    """Run everything on this machine.

    This starts the database (unless one is configured), a worker for jobs and tasks, the
    scheduler, and, in a process of their own, the API and the dashboard.
    """
    settings = flags_of(context).load(
        quiet=False, worker_capacity=capacity, api_host=host, api_port=port
    )
    asyncio.run(run_worker(settings, name="up", api=api))


def api(context: typer.Context, host: Host = None, port: Port = None) -> None:
    """Serve the HTTP API and the dashboard.

    Ctrl-C or SIGTERM lets requests in progress finish; a second Ctrl-C stops at once.

    Without an API key it listens only on loopback, where every caller is an admin.
    """
    import uvloop

    from forager.logs import get_logger

    server = ServerPart(
        flags_of(context).load(quiet=False, api_host=host, api_port=port),
        "forager api: {0} (API: {0}/api/docs). Ctrl-C stops.",
    )

    def stop() -> None:
        get_logger("api").info("stopping: requests in progress finish; Ctrl-C again stops at once")
        server.stop()

    uvloop.run(server.serve(stop))


class ServerPart:
    """Serves the API and the dashboard until it is stopped; `welcome` is noted on a terminal."""

    def __init__(
        self, settings: Settings, welcome: str = "dashboard: {0}  API: {0}/api/docs"
    ) -> None:
        self._settings = settings
        self._welcome = welcome
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Beside a worker: if it cannot listen, that is no error."""
        from forager.logs import get_logger

        try:
            await self.serve()
        except (InvalidInput, NotAllowed) as refused:
            # jobs must run all the same, and another process here may use the port
            get_logger("up").warning(
                "no dashboard here", reason=refused.message, hint=refused.hint or ""
            )
            await self._stopping.wait()

    async def serve(self, on_signal: Callable[[], None] | None = None) -> None:
        """Serve until it is stopped; with `on_signal`, signals call it."""
        from forager.api.server import serve
        from forager.cli.system.quick_answers import quick_answers
        from forager.db.database import open_database
        from forager.mcp.transports import mcp_endpoint
        from forager.web.app import dashboard

        settings = self._settings
        async with open_database(
            settings, name="forager api", max_size=settings.api_connections, linger=False
        ) as database:
            serving = serve(
                settings,
                database,
                self._stopping,
                started=self._note_address,
                extend=dashboard,
                beside=mcp_endpoint,
            )
            async with quick_answers(database, settings):
                if on_signal is None:
                    await serving
                else:
                    grace = settings.shutdown_grace
                    await run_until_stopped(serving, on_signal, grace=grace)

    def _note_address(self, address: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            note(self._welcome.format(address))


GLOBAL_FLAGS = ("home", "database_url")


def mcp(
    context: typer.Context,
    print_config: McpClient | None = option("Print the configuration for this client, and exit."),
    read_only: bool = switch("Offer no tool that starts a crawl.", "--read-only"),
) -> None:
    """Serve the Model Context Protocol on standard input and output.

    `forager up` serves the same tools over HTTP, at /mcp.
    """
    if print_config is not None:
        given = flags_of(context).given
        named = [(name, given[name]) for name in GLOBAL_FLAGS if name in given]
        flags = [part for name, value in named for part in (f"--{name.replace('_', '-')}", value)]
        place, text = client_config(print_config, [str(part) for part in flags])
        note(f"{place}:")
        return write(f"{text}\n".encode())
    from forager.mcp.transports import serve_stdio

    settings = flags_of(context).load()
    return asyncio.run(serve_stdio(settings, read_only=read_only))
