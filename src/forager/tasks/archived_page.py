"""Stored responses of a task: the newest page, or that of an earlier visit."""

from __future__ import annotations

from forager.archive.options import archive_options
from forager.archive.reader import ArchivedResponse, read_response
from forager.archive.warc_record import ArchiveError
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_hash
from forager.extract.urls import Refusal, normalize
from forager.parsers import page_cache
from forager.parsers.page_cache import CachedPage
from forager.settings import Settings
from forager.tasks.store.archived_pages import (
    ArchivedPage,
    archived_pages,
    select_page,
    select_visit,
)

__all__ = ["ArchivedPage", "archived_pages"]

MOST_VISITS = 100_000


async def archived_page(database: Database, settings: Settings, url: str) -> CachedPage | None:
    """The newest page of the task for a URL; None if the archive has none."""
    address = normalize(url)
    if isinstance(address, Refusal):
        raise InvalidInput(f"{url} cannot be fetched: {address.value}")
    found = await database.run(select_page, url_hash(address))
    if found is None:
        return None
    try:
        archived = await read_response(archive_options(settings).open(), found)
    except (ArchiveError, NotFound):
        return None
    return page_cache.archived_page(archived) if archived.body else None


async def visited_page(
    database: Database, settings: Settings, task_id: int, *, visit: int = 1
) -> CachedPage:
    return page_cache.archived_page(
        await visited_response(database, settings, task_id, visit=visit)
    )


async def visited_response(
    database: Database, settings: Settings, task_id: int, *, visit: int = 1
) -> ArchivedResponse:
    """The stored response of a visit; 1 is the newest that has one."""
    if not 1 <= visit <= MOST_VISITS:
        raise InvalidInput(f"a visit is a number from 1 (the newest) to {MOST_VISITS}")
    ref = await database.run(select_visit, task_id, number=visit)
    if ref is None:
        raise NotFound(
            f"task {task_id} has no stored response {visit}",
            hint="Responses are kept as long as the archive keeps their segment.",
        )
    return await read_response(archive_options(settings).open(), ref)
