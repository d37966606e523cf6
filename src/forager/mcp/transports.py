"""The two transports: stdio on this machine, and HTTP beside the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from forager.access.caller import LOCAL, Caller
from forager.api.services import Services
from forager.settings import Settings

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from forager.mcp.call import Context

PATH = "/mcp"


async def serve_stdio(settings: Settings, *, read_only: bool) -> None:
    """Answer the client at standard input until it closes it."""
    from mcp.server.stdio import stdio_server

    from forager.db.database import open_database
    from forager.index.engine import open_engine
    from forager.jobs.kinds import load_kinds
    from forager.mcp.call import Host, LocalCrawls
    from forager.mcp.server import create_server

    load_kinds(settings.job_modules)
    async with (
        open_database(settings, name="forager mcp") as database,
        open_engine(settings) as engine,
    ):
        services = Services(database, settings, engine=engine)
        crawls = LocalCrawls(services)
        server = create_server(Host(services, lambda _: LOCAL, read_only, crawls))
        try:
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            await crawls.close()


@asynccontextmanager
async def mcp_endpoint(app: FastAPI) -> AsyncIterator[None]:
    """Put the server beside the API at /mcp, behind the same keys, quotas and origin checks."""
    endpoint = _Endpoint(app.state.services)
    app.router.routes.append(Route(PATH, endpoint=endpoint, methods=["POST"]))
    try:
        yield
    finally:
        await endpoint.close()


class _Endpoint:
    """Streamable HTTP without sessions: every request carries its key and is complete in itself.

    The protocol library is loaded at the first request, so that others do not pay for it.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._started: asyncio.Future[StreamableHTTPSessionManager] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._started), name="mcp")
        manager = await asyncio.shield(self._started)
        await manager.handle_request(scope, receive, send)

    async def _run(self, started: asyncio.Future[Any]) -> None:
        """The library's tasks must begin and end in one task of ours."""
        try:
            manager = await asyncio.to_thread(_manager, self._services)
            async with manager.run():
                started.set_result(manager)
                await self._closing.wait()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
                self._started = None
            raise

    async def close(self) -> None:
        self._closing.set()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)


def _manager(services: Services) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from forager.mcp.call import Host
    from forager.mcp.server import create_server

    def caller_of(context: Context) -> Caller:
        caller: Caller = context.request.state.caller  # type: ignore[union-attr]
        return caller

    return StreamableHTTPSessionManager(create_server(Host(services, caller_of)), stateless=True)
