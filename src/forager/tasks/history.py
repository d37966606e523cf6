"""History of tasks: attempts, errors, extractions and counters are deleted by age."""

from __future__ import annotations

from typing import Any

from forager.db.database import Database
from forager.fetch.proxies.store.usage import delete_old_usage
from forager.logs import get_logger
from forager.parsers.store.rates import delete_old_rates
from forager.services.service import in_chunks
from forager.settings import Settings
from forager.tasks.store import recovery as store
from forager.webhooks.store import delete_old_events

log = get_logger("tasks")

CHUNK = 10_000


async def delete_old_history(database: Database, settings: Settings, *, chunk: int = CHUNK) -> int:
    """Delete rows older than the history to keep; return their number."""
    age: dict[str, Any] = {"days": settings.history_days, "limit": chunk}
    deleted = 0
    for delete in (delete_old_events, delete_old_rates, delete_old_usage):
        deleted += await in_chunks(database, delete, **age)
    for table in store.AGEING:
        deleted += await in_chunks(database, store.delete_old, ageing=table, **age)
    if deleted:
        log.info("old history of tasks deleted", rows=deleted)
    return deleted
