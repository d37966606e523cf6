"""The server: binds, serves until stopped, and lets requests in progress finish."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    nullcontext,
)
from functools import partial

import uvicorn
from fastapi import FastAPI

from forager.access import answers
from forager.access.keys import any_key
from forager.api.app import create_app
from forager.api.authentication import is_loopback
from forager.api.connections import ConnectionLimits, LimitedConnection, limits_of, server_log
from forager.clock import wait_for_event
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed
from forager.hints import Hint, Option, action
from forager.index.engine import open_engine
from forager.listening import noted_address
from forager.logs import get_logger
from forager.metrics.recorder import recording
from forager.processes.identity import process_name
from forager.services.report import identify, run_services
from forager.services.service import Service
from forager.settings import Settings
from forager.tracing import tracing

log = get_logger("api")

BACKLOG = 2048
# room for a cursor and a URL with every character escaped
MAX_HEAD_BYTES = 64 * 1024
GRACE = 10
CLEANUP_INTERVAL = 3600.0


class _Server(uvicorn.Server):
    """Leaves signals to the caller, and wakes up once per second instead of ten times."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.exit = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        # tick 0 also renews the date in the headers
        while not await self.on_tick(0):
            await wait_for_event(self.exit, 1.0)


async def serve(
    settings: Settings,
    database: Database,
    stopping: asyncio.Event,
    *,
    started: Callable[[str], None] | None = None,
    extend: Callable[[FastAPI], AbstractContextManager[object]] = nullcontext,
    beside: Callable[[FastAPI], AbstractAsyncContextManager[object]] = nullcontext,
) -> None:
    """Answer requests until `stopping` is set; `started` gets the address.

    `extend` and `beside` may add to the application for as long as it runs, as the dashboard and
    the MCP server do.
    """
    has_keys = await any_key(database)
    refuse_unprotected_api(settings, has_keys=has_keys)
    line = bind(settings)
    log.info("api listens", address=_address(line), keys=has_keys)
    async with open_engine(settings) as engine:
        app = create_app(settings, database, engine)
        server = _Server(_config(app, limits_of(settings)))
        noted = noted_address(settings.home, _address(line))
        with line, noted, server_log(), extend(app), tracing(settings, "api"):
            async with (
                recording(database, settings),
                run_services(
                    database, settings, identify("api", process_name()), [_answer_cleanup(database)]
                ),
                beside(app),
            ):
                await _run(server, app, line, stopping, started)


def _answer_cleanup(database: Database) -> Service:
    step = partial(answers.delete_expired, database)
    return Service(name="API answer cleanup", every=CLEANUP_INTERVAL, step=step)


async def _run(
    server: _Server,
    app: FastAPI,
    line: socket.socket,
    stopping: asyncio.Event,
    started: Callable[[str], None] | None,
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[line]), name="api server")
    stopped = asyncio.create_task(stopping.wait())
    if started is not None:
        started(_address(line))
    try:
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await app.state.hub.close()
        server.should_exit = True
        server.exit.set()
        await serving
    finally:
        # without waiting, if this task is cancelled
        server.force_exit = server.should_exit = True
        server.exit.set()
        stopped.cancel()
        await asyncio.gather(serving, stopped, return_exceptions=True)


def refuse_unprotected_api(settings: Settings, *, has_keys: bool) -> None:
    """Without any key every caller is an admin, so only this machine may connect."""
    if has_keys or is_loopback(settings.api_host):
        return
    raise NotAllowed(
        f"without an API key the API listens on loopback only, not on {settings.api_host}",
        hint=Hint("Create a key first: {}", action("keys create", "NAME", scope="admin")),
    )


def bind(settings: Settings) -> socket.socket:
    host, port = settings.api_host.strip("[]"), settings.api_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the protocol is named, because asyncio turns Nagle's delay off only where it sees TCP
    line = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.bind((host, port))
        line.listen(BACKLOG)
    except OSError as error:
        line.close()
        raise InvalidInput(
            f"the API cannot listen on {host}:{port}: {error.strerror or error}",
            hint=Hint(
                "Set another {} or {}, or stop the process that uses it.",
                Option("port"),
                Option("host"),
            ),
        ) from None
    return line


def _config(app: FastAPI, limits: ConnectionLimits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(LimitedConnection, limits),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )


def _address(line: socket.socket) -> str:
    host, port = line.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
