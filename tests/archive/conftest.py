"""An archive in a folder, and a job that writes to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from archived_job import ArchivedJob, start_job
from forager.archive.storage import Storage, open_storage
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings


@pytest.fixture
def folder(settings: Settings) -> Path:
    return settings.home / "archive"


@pytest.fixture
def storage(folder: Path) -> Storage:
    return open_storage(folder)


@pytest.fixture
async def job(database: Database, storage: Storage, queue: Queue) -> AsyncIterator[ArchivedJob]:
    job = await start_job(database, storage, queue)
    yield job
    await job.writer.close()
