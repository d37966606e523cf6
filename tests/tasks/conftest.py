"""A shop on a real socket, and tasks that want to know its prices."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.settings import Settings
from tasks.visited_shop import VisitedShop
from tasks.working import Tasks


@pytest.fixture(autouse=True)
def sandboxes(kept_sandboxes: None) -> None:
    """Workers in this process share the processes that read products."""


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    """Short retry delays, and no images."""
    quick = {"task_retry_delay": 0.01, "task_retry_delay_max": 0.05, "images": False}
    return Tasks(database, Settings(**(settings.model_dump() | quick)))


@pytest.fixture
def market(tasks: Tasks) -> VisitedShop:
    return VisitedShop(tasks)
