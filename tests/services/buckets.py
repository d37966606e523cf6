"""Buckets for tests, and what is in them."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from archived_job import select_refs
from forager.archive.objects import BucketLimits
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.db.database import Database
from services.servers.minio import MinIO

LIMIT = 120.0
# for tests in which the store is to be given up soon
SHORT_LIMITS = BucketLimits(connect=5.0, request=5.0, retry=1.0)


def new_bucket(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an archive in a new bucket; the environment has its credentials."""
    for name, value in minio.variables().items():
        monkeypatch.setenv(name, value)
    name = f"test-{uuid4().hex[:16]}"
    _make(minio, name)
    return f"s3://{name}/some/folder"


def _make(minio: MinIO, name: str) -> None:
    """A server that says it is ready may still answer 503 for a moment."""
    limit = time.monotonic() + LIMIT
    while True:
        try:
            return minio.make_bucket(name)
        except AssertionError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)


async def archived_bodies(database: Database, storage: Storage) -> dict[str, bytes]:
    """What rows refer to, read."""
    refs = [ArchiveRef(*row) for row in await select_refs(database)]
    responses = [await read_response(storage, ref) for ref in refs]
    return {response.url: response.body for response in responses}
