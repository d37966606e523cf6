"""Exports of a job as one file: archived responses, or one row for each settled URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO
from uuid import UUID

from forager.archive.reader import ExportReport, read_response, warc_parts
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError, Codec
from forager.crawl.results.url_lists import UrlFilter
from forager.crawl.settlement import Outcome, SettledUrl
from forager.crawl.store import url_lists as store
from forager.db.cursor import batches
from forager.db.database import Database
from forager.documents.export import job_export, zip_parts
from forager.errors import NotFound
from forager.extract.decode import decode
from forager.extract.kinds import ContentKind, kind_of
from forager.logs import get_logger
from forager.row_files import file_parts

log = get_logger("crawl")

# bodies that are read at the same time, because an object store is slow to answer
_READ_AHEAD = 16

Progress = Callable[[int], None]


class CrawlExportFormat(StrEnum):
    """The format of the export of a job."""

    WARC = "warc"
    JSONL = "jsonl"
    PARQUET = "parquet"
    MARKDOWN = "markdown"  # a zip file of the pages that the job has published


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlExport:
    """Contents of an export. `codec` is for WARC, `body` for the other formats."""

    format: CrawlExportFormat
    outcomes: tuple[Outcome, ...] = tuple(Outcome)
    body: bool = False
    codec: Codec | None = Codec.GZIP


async def export_size(database: Database, job_id: UUID, wanted: CrawlExport) -> int:
    """The number of rows, responses or pages of an export."""
    if wanted.format is CrawlExportFormat.MARKDOWN:
        return (await job_export(database, job_id)).pages
    return await database.run(
        store.count_settled,
        job_id,
        wanted.outcomes,
        archived=wanted.format is CrawlExportFormat.WARC,
    )


async def export_job(
    database: Database,
    storage: Storage,
    job_id: UUID,
    wanted: CrawlExport,
    file: BinaryIO,
    progress: Progress = lambda _: None,
) -> ExportReport:
    """Write an export. Memory does not grow with the job."""
    report, expected = ExportReport(), 0
    if wanted.format is CrawlExportFormat.WARC:
        expected = await export_size(database, job_id, wanted)
    async for part in export_stream(database, storage, job_id, wanted, progress, report):
        file.write(part)
    file.flush()
    if wanted.format is CrawlExportFormat.WARC:
        _compare(job_id, expected, report)
    return report


async def export_stream(
    database: Database,
    storage: Storage,
    job_id: UUID,
    wanted: CrawlExport,
    progress: Progress = lambda _: None,
    report: ExportReport | None = None,
) -> AsyncIterator[bytes]:
    """The bytes of an export, a part at a time; unreadable responses are left out."""
    report = report or ExportReport()
    if wanted.format is CrawlExportFormat.MARKDOWN:
        parts = zip_parts(database, await job_export(database, job_id), progress)
    elif wanted.format is CrawlExportFormat.WARC:
        refs = _archived_responses(database, job_id, wanted.outcomes, progress)
        parts = warc_parts(storage, refs, wanted.codec, {"isPartOf": str(job_id)}, report)
    else:
        columns = _COLUMNS | {"body": "string"} if wanted.body else _COLUMNS
        rows = _rows(database, storage, job_id, wanted, progress, report)
        parts = file_parts(wanted.format, columns, rows)
    async for part in parts:
        yield part


async def _rows(
    database: Database,
    storage: Storage,
    job_id: UUID,
    wanted: CrawlExport,
    progress: Progress,
    report: ExportReport,
) -> AsyncIterator[list[dict[str, Any]]]:
    async for page in _settled_urls(database, job_id, wanted.outcomes):
        step = _READ_AHEAD if wanted.body else len(page)
        for start in range(0, len(page), step):
            part = page[start : start + step]
            rows = [row_of(settled) for settled in part]
            if wanted.body:
                report.missed += await _add_bodies(storage, part, rows)
            yield rows
            report.written += len(rows)
            progress(len(rows))


def _settled_urls(
    database: Database, job_id: UUID, outcomes: Sequence[Outcome]
) -> AsyncIterator[list[SettledUrl]]:
    """All settled URLs of a job, a page at a time, always in the same order."""
    wanted, limit = UrlFilter(outcomes=outcomes), store.PAGE_ROWS

    async def select(after: bytes) -> list[SettledUrl]:
        return await database.run(
            store.select_in_key_order, job_id, wanted, after=after, scan=2**62, limit=limit
        )

    return batches(select, b"", lambda url: url.url_hash, limit)


async def _archived_responses(
    database: Database, job_id: UUID, outcomes: Sequence[Outcome], progress: Progress
) -> AsyncIterator[ArchiveRef]:
    """References to the archived responses of a job.

    By URL, not by segment: a merge moves responses to another segment meanwhile, never to another
    URL. Within a page they come in the order in which they were written, which reads faster.
    """
    limit = store.PAGE_ROWS

    async def select(after: bytes) -> list[tuple[bytes, ArchiveRef]]:
        return await database.run(store.select_refs, job_id, outcomes, after=after, limit=limit)

    async for page in batches(select, b"", lambda row: row[0], limit):
        for ref in sorted((ref for _, ref in page), key=lambda r: (r.segment, r.offset)):
            yield ref
            progress(1)


def _compare(job_id: UUID, expected: int, report: ExportReport) -> None:
    """Warn only: a running job settles more, and a limit of the archive drops some."""
    found = report.written + report.missed
    if found != expected:
        log.warning(
            "more or fewer responses than at the beginning",
            job=str(job_id),
            expected=expected,
            found=found,
        )


def row_of(settled: SettledUrl) -> dict[str, Any]:
    """A settled URL as programs get it."""
    row = {name: getattr(settled, name, None) for name in _COLUMNS}
    row["content_hash"] = settled.content_hash.hex() if settled.content_hash else None
    row["archive"] = str(settled.ref) if settled.ref else None
    return row


async def _add_bodies(
    storage: Storage, page: Sequence[SettledUrl], rows: Sequence[dict[str, Any]]
) -> int:
    """Add the text of each page; the answer is how many could not be read."""
    missed = 0
    readings = (_text_of(storage, settled) for settled in page)
    texts = await asyncio.gather(*readings, return_exceptions=True)
    for row, text in zip(rows, texts, strict=True):
        if isinstance(text, ArchiveError | NotFound):
            missed += 1
        elif isinstance(text, BaseException):
            raise text
        row["body"] = text if isinstance(text, str) else None
    return missed


async def _text_of(storage: Storage, settled: SettledUrl) -> str | None:
    """The page as text; nothing for what is not text."""
    if settled.ref is None:
        return None
    response = await read_response(storage, settled.ref)
    if kind_of(response.body, settled.content_type, settled.url) is ContentKind.OTHER:
        return None
    return decode(response.body, settled.content_type).text


_COLUMNS = {
    "url": "string",
    "outcome": "string",
    "reason": "string",
    "detail": "string",
    "duplicate_of": "string",
    "http_status": "int16",
    "depth": "int16",
    "parent_url": "string",
    "via": "string",
    "content_type": "string",
    "title": "string",
    "size": "int32",
    "settled_at": "timestamp",
    "content_hash": "string",
    "archive": "string",
}
