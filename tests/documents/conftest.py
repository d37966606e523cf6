"""A source to crawl by hand."""

from __future__ import annotations

import pytest

from built_site import Crawls
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings


@pytest.fixture
def crawls(database: Database, queue: Queue, settings: Settings) -> Crawls:
    return Crawls(database, queue, settings)
