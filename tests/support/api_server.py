"""The API, with or without the dashboard, on a real socket of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from forager.api.server import serve
from forager.db.database import Database
from forager.settings import Settings
from support.waiting import LIMIT


@asynccontextmanager
async def api_server(settings: Settings, database: Database, **options: Any) -> AsyncIterator[str]:
    """Serve at a free port; yields the address. The server is stopped gracefully at the end."""
    stopping = asyncio.Event()
    started: asyncio.Queue[str] = asyncio.Queue()
    local = settings.model_copy(update={"api_port": 0})
    serving = asyncio.create_task(
        serve(local, database, stopping, started=started.put_nowait, **options)
    )
    async with asyncio.timeout(LIMIT):
        address = await started.get()
    yield address
    stopping.set()
    await serving
