"""A task's page as it was archived last."""

from __future__ import annotations

from forager.archive.errors import ArchiveError
from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_hash
from forager.extract.urls import Refusal, normalise
from forager.parsers.scaffold import SavedPage
from forager.settings import Settings
from forager.tasks.store.archived_pages import select_task_page


async def archived_page(database: Database, settings: Settings, url: str) -> SavedPage | None:
    """The newest page of the task for a URL; None where there is none in the archive."""
    address = normalise(url)
    if isinstance(address, Refusal):
        raise InvalidInput(f"{url} cannot be fetched: {address.value}")
    async with database.connection() as connection:
        found = await select_task_page(connection, url_hash(address))
    if found is None:
        return None
    try:
        archived = await read_response(archive_options(settings).open(), found.ref)
    except (ArchiveError, NotFound):
        return None
    types = (value for name, value in archived.headers if name.lower() == "content-type")
    return SavedPage(archived.url, archived.body, next(types, None)) if archived.body else None
