"""A real API server over the test's database, and a site that can be crawled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from forager.db.database import Database
from forager.settings import Settings
from servers.site import Site, html
from support.api_server import api_server


@pytest.fixture
def api_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0})


@pytest.fixture
async def address(api_settings: Settings, database: Database) -> AsyncIterator[str]:
    async with api_server(api_settings, database) as served:
        yield served


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site({"/": html("Home", ["/a", "/b", "/gone"]), "/a": html("A"), "/b": html("B")})
    with site.served():
        yield site
