"""Archived pages of a source, to extract them again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from forager.archive.reader import read_response
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.db.database import Database
from forager.documents.page import ArchivedDocument
from forager.documents.store import reads
from forager.errors import NotFound
from forager.extract.content.repeated import RepeatedBlocks
from forager.extract.document import RemovedBlock, extract_reading

# body, URL, content type and headers
ArchivedPage = tuple[bytes, str, str | None, tuple[tuple[str, str], ...]]


async def archived_page(storage: Storage, row: ArchivedDocument) -> ArchivedPage | None:
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
    repeated = await repeated_blocks(database, found.source_id)
    read = partial(extract_reading, *page, repeated=repeated, explain=True)
    if (document := (await asyncio.to_thread(read)).document) is None:
        return None
    removed = tuple(replace(block, text=block.excerpt) for block in document.removed)
    return PageContent(found.source_id, document.chosen_by, removed)


async def repeated_blocks(database: Database, source_id: str) -> RepeatedBlocks | None:
    """The blocks that the pages of a source have in common, if they were learned."""
    value = await database.run(reads.select_repeated, source_id)
    return None if value is None else RepeatedBlocks.from_json(value)
