"""The tasks of the market."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.settings import Settings
from tasks.working import Tasks


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    return Tasks(database, settings)
