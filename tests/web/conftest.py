"""A real server with the dashboard, visitors to it, and a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.api import services
from forager.db.database import Database
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings
from forager.web.app import dashboard
from support.api_server import api_server
from web.browser import Tab, open_browser, open_tab
from web.catalog_rows import Catalog, fill
from web.visitor import Visitor


@pytest.fixture(autouse=True)
def nothing_is_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages show the current state even where a busy machine takes long to compute it."""
    monkeypatch.setattr(services, "CHEAP", 600.0)


@pytest.fixture
def web_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0})


@pytest.fixture
async def address(web_settings: Settings, database: Database) -> AsyncIterator[str]:
    async with api_server(web_settings, database, extend=dashboard) as served:
        yield served


@pytest.fixture
async def visitor(address: str) -> AsyncIterator[Visitor]:
    async with Visitor(address) as someone:
        yield someone


@pytest.fixture
async def admin_key(database: Database) -> str:
    """The text of a key that may do everything."""
    return (await create_key(database, "test", scope=Scope.ADMIN)).text


@pytest.fixture
async def tab(address: str) -> AsyncIterator[Tab]:
    """A tab of a browser at this machine; it must have nothing to complain about at the end."""
    async with open_browser() as browser:
        opened, _ = await open_tab(browser, address)
        yield opened
        assert opened.complaints == []


@pytest.fixture
async def worker(database: Database, web_settings: Settings) -> AsyncIterator[Supervisor]:
    """A worker that runs jobs."""
    supervisor = Supervisor(database, web_settings)
    running = asyncio.ensure_future(supervisor.run())
    yield supervisor
    supervisor.stop()
    await asyncio.wait_for(running, 60)


@pytest.fixture
async def catalog(database: Database, web_settings: Settings) -> Catalog:
    return await fill(database, web_settings)
