"""Archived pages of a source, to extract them again."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

from forager.archive.reader import read_response
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.db.database import Database
from forager.documents.page import ArchivedDocument
from forager.documents.store import reads
from forager.errors import NotFound, WorkFailed, error_text
from forager.extract.content.repeated import RepeatedBlocks
from forager.extract.document import RemovedBlock, extract_reading
from forager.extract.text import storable
from forager.logs import get_logger
from forager.processes.calls import call_limited
from forager.processes.sandbox import SandboxLimits

log = get_logger("documents")

LIMITS = SandboxLimits(seconds=20.0, memory_mb=768)

# body, URL, content type and headers
ArchivedPage = tuple[bytes, str, str | None, tuple[tuple[str, str], ...]]


async def archived_page(storage: Storage, row: ArchivedDocument) -> ArchivedPage | None:
    """The archived response of a document, read again; None if it is not readable."""
    if row.ref is None:
        return None
    try:
        response = await read_response(storage, row.ref)
    except (ArchiveError, NotFound):
        return None
    return response.body, row.url, response.content_type, response.headers


@dataclass(frozen=True, slots=True)
class PageContent:
    """The parts of a published page that extraction left out."""

    source_id: str
    chosen_by: str  # how the main content was found
    removed: tuple[RemovedBlock, ...]


async def explain_content(database: Database, storage: Storage, key: bytes) -> PageContent | None:
    """The parts that extraction leaves out of the page that readers find under a URL."""
    found = await database.run(reads.select_archived_page, key)
    page = None if found is None else await archived_page(storage, found)
    if found is None or page is None:
        return None
    repeated = await database.run(reads.select_repeated, found.source_id)
    body, url, content_type, headers = page
    given = (storable(content_type or ""), [[*map(storable, header)] for header in headers])
    try:
        content = await call_limited(
            read_content, b64encode(body).decode(), url, *given, repeated, limits=LIMITS
        )
    except (WorkFailed, OSError) as error:
        log.warning("a page is explained without its content", reason=error_text(error))
        return None
    if content is None:
        return None
    chosen_by, removed = content
    return PageContent(found.source_id, chosen_by, tuple(RemovedBlock(*each) for each in removed))


def read_content(
    body: str,
    url: str,
    content_type: str,
    headers: list[tuple[str, str]],
    repeated: dict[str, Any] | None,
) -> tuple[str, list[tuple[str, str, str, int]]] | None:
    """How the content of a page was found, and what is not part of it; for another process."""
    document = extract_reading(
        b64decode(body),
        url,
        content_type or None,
        headers,
        repeated=None if repeated is None else RepeatedBlocks.from_json(repeated),
        explain=True,
    ).document
    if document is None:
        return None
    return document.chosen_by, [
        (storable(block.excerpt), block.element, block.reason, block.count)
        for block in document.removed
    ]


async def repeated_blocks(database: Database, source_id: str) -> RepeatedBlocks | None:
    """The blocks that the pages of a source have in common, if they were learned."""
    value = await database.run(reads.select_repeated, source_id)
    return None if value is None else RepeatedBlocks.from_json(value)
