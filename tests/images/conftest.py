"""A shop with images."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from forager.db.database import Database
from forager.settings import Settings
from images.image_shop import Shop
from servers.site import Site


@pytest.fixture(autouse=True)
def sandboxes(kept_sandboxes: None) -> None:
    """Fetchers share the processes that inspect images."""


@pytest.fixture
async def shop(database: Database, settings: Settings) -> AsyncIterator[Shop]:
    async with Site() as site:
        yield Shop(database, settings, site)
