"""A real API server over the test's database, and a site that can be crawled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from forager.api.server import serve
from forager.db.database import Database
from forager.settings import Settings
from servers.site import Site, html


@pytest.fixture
def api_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0})


@pytest.fixture
async def address(api_settings: Settings, database: Database) -> AsyncIterator[str]:
    stopping = asyncio.Event()
    started: asyncio.Queue[str] = asyncio.Queue()
    serving = asyncio.create_task(
        serve(api_settings, database, stopping, started=started.put_nowait)
    )
    async with asyncio.timeout(60):
        where = await started.get()
    yield where
    stopping.set()
    await serving


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site({"/": html("Home", ["/a", "/b", "/gone"]), "/a": html("A"), "/b": html("B")})
    with site.served():
        yield site
