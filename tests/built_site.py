"""A site that exists only as pages: crawled by calling the writer the way the engine does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.names import section_names
from forager.documents.page import IndexedDocument, NewPage
from forager.documents.writer import GenerationWriter
from forager.extract.keys import url_key
from forager.extract.sections import Section
from forager.jobs.context import JobContext
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from forager.jobs.store import leases
from forager.settings import Settings
from support.sql import execute

WHEN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SOURCE = "docs.example.org"
BASE = f"https://{SOURCE}/"
KIND = "selftest"


def document(text: str, *, version: str = "1", language: str | None = "en") -> IndexedDocument:
    """A page with an introduction and one subsection."""
    title = f"Title of {text}"
    sections = [
        Section("Guide", 1, "guide", f"About {text}.", 0, None),
        Section("Details", 2, "details", f"First line\n{text}\nlast line", 1, 0, ("a place",)),
    ]
    digest = hashlib.sha256(text.encode()).digest()
    names = section_names(title, sections)
    return IndexedDocument(title, language, sections, digest, version, names)


def page(path: str, text: str | None, **changes: Any) -> NewPage:
    """A page with this text; None stands for an answer of 304."""
    url = BASE + path
    values: dict[str, Any] = {
        "url": url,
        "key": url_key(url),
        "document": None if text is None else document(text),
        "fetched_at": WHEN,
        "etag": None if text is None else f'"{text}"',
        "outlinks": None if text is None else f"links of {path}".encode(),
    }
    return NewPage(**{**values, **changes})


def pages(site: Mapping[str, str | None]) -> list[NewPage]:
    return [page(path, text) for path, text in site.items()]


@dataclass(slots=True)
class Crawls:
    """Runs jobs of one source by hand, so that a test decides where each of them stands."""

    database: Database
    queue: Queue
    settings: Settings
    source: str = SOURCE
    kind: str = KIND
    payload: dict[str, Any] = field(default_factory=dict)

    async def start(self) -> Crawl:
        await self.queue.enqueue(
            NewJob(kind=self.kind, payload=self.payload, source_id=self.source)
        )
        return await self.claim()

    async def claim(self) -> Crawl:
        worker = new_id()
        [job] = await self.queue.claim(worker, kinds=[self.kind])
        lease = Lease(job.id, job.lease, worker)
        context = JobContext(job, lease, self.database, self.settings)
        writer = await GenerationWriter.open(context, base_url=BASE, extractor_version="1")
        return Crawl(self, context, writer)

    async def crawl(self, site: Mapping[str, str | None]) -> str | None:
        """A whole crawl; what it says if it is not published."""
        crawl = await self.start()
        await crawl.write(pages(site))
        return await crawl.finish()


@dataclass(slots=True)
class Crawl:
    """One run of one job."""

    crawls: Crawls
    context: JobContext
    writer: GenerationWriter

    async def write(self, batch: Sequence[NewPage]) -> None:
        previous = await self.writer.previous([page.key for page in batch])
        plan = self.writer.plan(batch, previous)
        async with self.context.commit() as connection:
            await self.writer.write(connection, plan)

    async def ledger(self, *, fetched: int, reasons: Mapping[str, int]) -> None:
        failed = sum(reasons.values())
        await execute(
            self.crawls.database,
            """
            INSERT INTO crawl_states (job_id, discovered, fetched, failed, reasons)
            VALUES (%s, %s, %s, %s, jsonb_build_object('failed', %s::jsonb)) RETURNING 1
            """,
            self.context.job.id,
            fetched + failed,
            fetched,
            failed,
            "{" + ", ".join(f'"{reason}": {n}' for reason, n in reasons.items()) + "}",
        )

    async def finish(self) -> str | None:
        """Complete the job as a runner does."""
        async with self.crawls.database.transaction() as connection:
            await leases.hold_lease(connection, self.context.lease)
            reason = await self.writer.finish(connection)
            await self.crawls.queue.complete(
                connection, self.context.lease, stop_reason=reason or "finished"
            )
        return reason


async def counts_of(database: Database, *tables: str) -> dict[str, int]:
    return {
        table: (await execute(database, f"SELECT count(*) FROM {table}"))[0][0] for table in tables
    }


async def active_site(database: Database, source: str = SOURCE) -> dict[str, str]:
    """What readers see: path and title of each page."""
    rows = await execute(
        database, "SELECT path, title FROM documents_active WHERE source_id = %s", source
    )
    return {path.removeprefix("/"): title.removeprefix("Title of ") for path, title in rows}
