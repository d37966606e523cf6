"""Background services of task dispatch, depending on whether a broker is configured."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from forager.db.database import Database
from forager.outbox.store import delete_unsent
from forager.services.service import Service, in_chunks
from forager.settings import Dispatch, Settings

HINT_CLEANUP_INTERVAL = 300.0
# processes that still use the broker keep their hints while a deployment leaves it
HINT_AGE = 600.0
CHUNK = 10_000
UNUSED = "topic IN ('crawl', 'parse') AND created_at < now() - make_interval(secs => %(older)s)"


def dispatch_services(
    database: Database, settings: Settings, process_id: UUID | None = None
) -> list[Service]:
    if settings.dispatch is not Dispatch.CELERY:
        step = partial(delete_unused_hints, database)
        return [Service(name="dispatch cleanup", every=HINT_CLEANUP_INTERVAL, step=step)]
    from forager.dispatch.relay import Relay
    from forager.dispatch.sweeper import Sweeper

    return [Relay(database, settings, process_id).service(), Sweeper(database, settings).service()]


async def delete_unused_hints(database: Database, *, older: float = HINT_AGE) -> int:
    """Delete hints for a broker that is not configured: workers poll the database instead."""
    return await in_chunks(database, delete_unsent, condition=UNUSED, older=older, limit=CHUNK)
