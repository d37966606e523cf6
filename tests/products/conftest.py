"""A shop with products."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.settings import Settings
from products.product_shop import Shop


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()
