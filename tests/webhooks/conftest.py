"""Webhooks, a deliverer and a receiver."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from forager.db.database import Database
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import Webhooks
from webhooks.receiver import Receiver


@pytest.fixture
def webhooks(database: Database, settings: Settings) -> Webhooks:
    return Webhooks(database, Vault(settings))


@pytest.fixture
def deliverer(database: Database, settings: Settings) -> Deliverer:
    return Deliverer(database, settings)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as server:
        yield server
