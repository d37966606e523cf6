"""The two transports, stdio on this machine and HTTP beside the API; and their clients."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
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


# settings that say which database is meant; a client started from a desktop does not have them
PASSED_ON = ("FORAGER_HOME", "FORAGER_CONFIG")


class McpClient(StrEnum):
    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    ZED = "zed"
    CODEX = "codex"


def client_config(client: McpClient, flags: Sequence[str]) -> tuple[str, str]:
    """Where the configuration belongs, and its text; `flags` stand before the command."""
    command = _executable()
    arguments = [*flags, "mcp"]
    environment = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    place, make = _CONFIGS[client]
    return place, make(command, arguments, environment)


def _executable() -> str:
    """With its folder: programs of a desktop do not search the folders of a shell."""
    program = Path(sys.argv[0])
    return str(program.absolute()) if program.name == "forager" else "forager"


Make = Callable[[str, list[str], dict[str, str]], str]


def _shell(command: str, arguments: list[str], environment: dict[str, str]) -> str:
    passed = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
    return shlex.join(["claude", "mcp", "add", "forager", *passed, "--", command, *arguments])


def _json(key: str, extra: dict[str, str]) -> Make:
    def make(command: str, arguments: list[str], environment: dict[str, str]) -> str:
        entry: dict[str, object] = {**extra, "command": command, "args": arguments}
        if environment:
            entry["env"] = environment
        return json.dumps({key: {"forager": entry}}, indent=2)

    return make


def _toml(command: str, arguments: list[str], environment: dict[str, str]) -> str:
    # JSON strings and lists of them are TOML as well
    lines = ["[mcp_servers.forager]", f"command = {json.dumps(command)}"]
    lines.append(f"args = {json.dumps(arguments)}")
    if environment:
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines)


_CONFIGS: dict[McpClient, tuple[str, Make]] = {
    McpClient.CLAUDE_CODE: ("Run this in a shell", _shell),
    McpClient.CLAUDE_DESKTOP: (
        "Merge this into claude_desktop_config.json",
        _json("mcpServers", {}),
    ),
    McpClient.CURSOR: ("Merge this into ~/.cursor/mcp.json", _json("mcpServers", {})),
    McpClient.VSCODE: ("Merge this into .vscode/mcp.json", _json("servers", {"type": "stdio"})),
    McpClient.ZED: ("Merge this into Zed's settings.json", _json("context_servers", {})),
    McpClient.CODEX: ("Add this to ~/.codex/config.toml", _toml),
}
