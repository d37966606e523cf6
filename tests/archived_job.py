"""A job with settled URLs and archived responses, written the way a crawl writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from forager.archive import store
from forager.archive.segment import ArchiveRef, job_owner
from forager.archive.storage import Storage
from forager.archive.warc_record import ResponseRecord, pack
from forager.archive.writer import ArchiveWriter, growth_of
from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from forager.jobs.store.leases import hold_lease
from support.sql import execute

WHEN = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Settled:
    """One row of `crawl_visited`, and what was received for it."""

    url: str
    outcome: str = "fetched"
    body: bytes | None = None
    content_type: str | None = HTML
    parent: str | None = None
    more: tuple[tuple[str, Any], ...] = ()


class ArchivedJob:
    """A job that was claimed and is being crawled."""

    def __init__(self, database: Database, storage: Storage, queue: Queue, lease: Lease) -> None:
        self.database = database
        self.queue = queue
        self.lease = lease
        self.writer = ArchiveWriter(storage, job_owner(self.id), lease.number, self.register)

    @property
    def id(self) -> UUID:
        return self.lease.job_id

    async def register(self, segment: str) -> None:
        async with self.database.connection() as connection:
            await store.register_segment(connection, segment, self.id)

    async def settle(self, pages: Sequence[Settled]) -> list[ArchiveRef]:
        """Archive, and then commit in one round trip, as the engine does."""
        refs = await self.archive(pages)
        async with self.database.connection() as connection:
            await self.commit(connection, pages, refs)
        return refs

    async def archive(self, pages: Sequence[Settled]) -> list[ArchiveRef]:
        return await self.writer.write([pack(response(p)) for p in pages if p.body is not None])

    async def commit(
        self, connection: Connection, pages: Sequence[Settled], refs: Sequence[ArchiveRef]
    ) -> None:
        async with connection.pipeline(), connection.transaction():
            await hold_lease(connection, self.lease)
            await insert_visited(connection, self.id, pages, refs)
            await store.grow_segments(connection, growth_of(refs))

    async def end(self) -> None:
        await self.writer.close()
        async with self.database.transaction() as connection:
            await self.queue.complete(connection, self.lease)


async def start_job(database: Database, storage: Storage, queue: Queue) -> ArchivedJob:
    await queue.enqueue(NewJob(kind="selftest"))
    worker = new_id()
    [job] = await queue.claim(worker, kinds=["selftest"])
    return ArchivedJob(database, storage, queue, Lease(job.id, job.lease, worker))


def html(number: int) -> Settled:
    body = f"<title>Page {number}</title><p>Text of page {number}: ä ö ü".encode()
    return Settled(f"https://docs.example.org/{number}", body=body)


def key(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()[:16]


def response(page: Settled) -> ResponseRecord:
    headers = [("Content-Type", page.content_type)] if page.content_type else []
    return ResponseRecord(page.url, WHEN, 200, headers, page.body or b"", "OK")


async def insert_visited(
    connection: Connection, job_id: UUID, pages: Sequence[Settled], refs: Sequence[ArchiveRef]
) -> None:
    rest = iter(refs)
    for page in pages:
        ref = next(rest) if page.body is not None else None
        row = {
            "job_id": job_id,
            "url_hash": key(page.url),
            "url": page.url,
            "outcome": page.outcome,
            "http_status": 200 if page.body is not None else None,
            "depth": 1 if page.parent else 0,
            "parent": key(page.parent) if page.parent else None,
            "via": "link" if page.parent else "seed",
            "content_type": page.content_type,
            "size": None if page.body is None else len(page.body),
            "content_hash": None if page.body is None else hashlib.sha256(page.body).digest(),
            "segment": ref and ref.segment,
            "segment_offset": ref and ref.offset,
            "segment_length": ref and ref.length,
            **dict(page.more),
        }
        columns, values = ", ".join(row), ", ".join(["%s"] * len(row))
        await connection.execute(
            f"INSERT INTO crawl_visited ({columns}) VALUES ({values})".encode(), tuple(row.values())
        )


select_refs = partial(
    execute,
    statement="SELECT segment, segment_offset, segment_length FROM crawl_visited"
    " WHERE segment IS NOT NULL ORDER BY 1, 2",
)
