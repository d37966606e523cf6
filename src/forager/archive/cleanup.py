"""Clean-up of the archive: merge small segments in an object store, delete expired ones."""

from __future__ import annotations

from forager.archive.deletion import Pruned, plan_prune, prune
from forager.archive.options import archive_options
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("archive")


async def clean_up_archive(database: Database, settings: Settings) -> Pruned:
    options = archive_options(settings)
    storage = options.open()
    if options.in_bucket:
        await _merge(database, storage, options.segment_bytes)
    plan = await plan_prune(database, options.policy)
    pruned = await prune(database, storage, plan.delete)
    if pruned.deleted:
        log.info("archive segments deleted", segments=len(pruned.deleted), bytes=pruned.freed_bytes)
    return pruned


async def _merge(database: Database, storage: Storage, segment_bytes: int) -> None:
    from forager.archive.merging import merge_segments

    merged = await merge_segments(database, storage, segment_bytes)
    if merged.into:
        log.info("archive segments merged", segments=merged.segments, into=merged.into)
