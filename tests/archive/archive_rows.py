"""Segments of tests: their rows, their age and what a check finds."""

from __future__ import annotations

from typing import Any

from archived_job import ArchivedJob, html
from forager.archive import store
from forager.archive.audit import AuditedSegment, SegmentProblem, audit
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.db.database import Database


async def finished(job: ArchivedJob, pages: int = 3) -> list[ArchiveRef]:
    refs = await job.settle([html(number) for number in range(pages)])
    await job.end()
    return refs


async def segment_row(database: Database, name: str) -> Any:
    async with database.connection() as connection:
        return await store.select_segment(connection, name)


async def findings(database: Database, storage: Storage) -> list[AuditedSegment]:
    return [finding async for finding in audit(database, storage)]


async def troubles(database: Database, storage: Storage) -> list[tuple[SegmentProblem, ...]]:
    return [finding.problems for finding in await findings(database, storage)]
