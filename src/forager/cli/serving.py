"""The API and the dashboard as one part of `forager up`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from forager.cli import output
from forager.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from forager.settings import Settings


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
