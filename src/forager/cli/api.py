"""`forager api`: serve the HTTP API and the dashboard until told to stop."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.flags import flags_of
from forager.cli.running import run_until_stopped

if TYPE_CHECKING:
    from forager.settings import Settings


Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="setting")]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port; 0 takes a free one.", show_default="setting"),
]


def api(context: typer.Context, host: Host = None, port: Port = None) -> None:
    """Serve the HTTP API and the dashboard.

    Ctrl-C or SIGTERM lets requests under way finish; Ctrl-C twice: at once.

    Without any key it listens on loopback only, where everybody is an admin.
    """
    import uvloop

    settings = flags_of(context).load(quiet=False, api_host=host, api_port=port)
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from forager.api.server import serve
    from forager.db.database import open_database
    from forager.logs import get_logger
    from forager.web.app import dashboard

    log = get_logger("api")
    stopping = asyncio.Event()

    def stop() -> None:
        log.info("stopping: requests under way finish; Ctrl-C again stops at once")
        stopping.set()

    async with open_database(
        settings, name="forager api", max_size=settings.api_connections
    ) as database:
        serving = serve(settings, database, stopping, started=_welcome, extend=dashboard)
        await run_until_stopped(serving, stop)


def _welcome(address: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        output.note(f"forager api: {address} (API: {address}/api/docs). Ctrl-C stops.")
