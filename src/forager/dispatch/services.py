"""Background services of task dispatch, depending on whether a broker is configured."""

from __future__ import annotations

from functools import partial

from forager.db.database import Database
from forager.services.chunks import in_chunks
from forager.services.service import Service
from forager.settings import Dispatch, Settings
from forager.tasks.store.hints import delete_hints

HINT_CLEANUP_INTERVAL = 300.0
# processes that still use the broker keep their hints while a deployment leaves it
HINT_AGE = 600.0
CHUNK = 10_000


def dispatch_services(database: Database, settings: Settings) -> list[Service]:
    if settings.dispatch is not Dispatch.CELERY:
        step = partial(delete_unused_hints, database)
        return [Service(name="dispatch cleanup", every=HINT_CLEANUP_INTERVAL, step=step)]
    from forager.dispatch.relay import Relay
    from forager.dispatch.sweeper import Sweeper

    return [Relay(database, settings).service(), Sweeper(database, settings).service()]


async def delete_unused_hints(database: Database, *, older: float = HINT_AGE) -> int:
    """Delete hints for a broker that is not configured: workers poll the database instead."""
    return await in_chunks(database, delete_hints, older=older, limit=CHUNK)
