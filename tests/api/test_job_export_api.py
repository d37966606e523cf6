"""A job as a file over HTTP."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from api.client import Api
from archived_job import ArchivedJob, Settled, html, start_job
from forager.access.caller import Scope
from forager.archive.options import archive_options
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.settings import Settings
from foreign_readers import by_warcio

Keyed = Callable[..., Awaitable[Api]]


@pytest.fixture
async def job(database: Database, settings: Settings, queue: Queue) -> AsyncIterator[ArchivedJob]:
    job = await start_job(database, archive_options(settings).open(), queue)
    await job.settle([html(0), html(1), Settled("https://docs.example.org/3", "failed")])
    yield job
    await job.writer.close()


async def test_rows_and_responses(api: Api, job: ArchivedJob) -> None:
    path = f"/api/v1/jobs/{job.id}/export"
    rows = await api.get(path)
    assert rows.headers["Content-Type"] == "application/x-ndjson"
    assert rows.headers["Content-Disposition"] == f'attachment; filename="job-{job.id}.jsonl"'
    assert len([json.loads(line) for line in rows.body.splitlines()]) == 3
    failed = await api.get(f"{path}?outcome=failed&body=true")
    assert json.loads(failed.body)["body"] is None
    warc = await api.get(f"{path}?format=warc")
    assert gzip.decompress(warc.body).startswith(b"WARC/1.1")
    assert len([r for r in by_warcio(warc.body) if r.kind == "response"]) == 2
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO((await api.get(f"{path}?format=parquet")).body))
    assert table.num_rows == 3
    for query in ("format=warc&body=true", "format=../x", "outcome=lost"):
        assert (await api.get(f"{path}?{query}")).status == 422


async def test_of_ones_own_jobs_only(keyed: Keyed, job: ArchivedJob) -> None:
    reader = await keyed(Scope.READ)
    assert (await reader.get(f"/api/v1/jobs/{job.id}/export")).status == 404
