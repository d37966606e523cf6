"""Background services of the search index, depending on whether an engine is configured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from forager.db.database import Database
from forager.index import store
from forager.index.kind import Kind
from forager.logs import get_logger
from forager.outbox.store import delete_unsent
from forager.services.service import Service, in_chunks
from forager.settings import Search, Settings

log = get_logger("index")

CLEANUP_INTERVAL = 600.0
# other workers may have the engine configured: an index that none of them fed for this long
UNFED_FOR = 3600.0
CHUNK = 5_000
ORPHANED = "topic IN ('sections', 'products') AND topic NOT IN (SELECT kind FROM search_indexes)"


def index_service(
    database: Database, settings: Settings, kinds: Sequence[Kind], process_id: UUID | None = None
) -> Service:
    """The service that feeds the search engine; without an engine, its clean-up."""
    if settings.search is not Search.OPENSEARCH:
        step = partial(forget_unfed_indexes, database)
        return Service(name="search index cleanup", every=CLEANUP_INTERVAL, step=step)
    from forager.index.feeder import Feeder

    return Feeder.of(database, settings, kinds, process_id).service()


async def forget_unfed_indexes(database: Database, *, unfed_for: float = UNFED_FOR) -> int:
    """Delete indexes that no worker feeds, and their messages; return the number of messages."""
    async with database.connection() as connection:
        for kind in await store.delete_unfed(connection, unfed_for):
            log.info("search index forgotten: the search engine is switched off", kind=kind)
    return await in_chunks(database, delete_unsent, condition=ORPHANED, limit=CHUNK)
