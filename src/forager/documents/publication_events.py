"""Events about generations that are published or held back."""

from __future__ import annotations

from typing import Any

from forager.db.database import Connection
from forager.documents.generation import Generation, Source
from forager.documents.store.generations import select_generation_by_id
from forager.events import service as events
from forager.events.event import EventKind, NewEvent


async def record_publication(
    connection: Connection, source: Source, generation: Generation
) -> None:
    """Record that readers see a generation instead of the one of the source as it was."""
    before = source.published_number
    payload = {
        **_counts(generation),
        "previous_generation": before,
        "rolled_back": before is not None and generation.number < before,
        "warning": generation.note,
        "difference": difference_path(source.id, before, generation.number),
    }
    await _record(connection, EventKind.SOURCE_PUBLISHED, source, payload)
    if before is not None:
        await events.enqueue_changes(connection, source.id, generation.id, before)


async def record_held_back(connection: Connection, source: Source, generation_id: int) -> None:
    """Record that the quality gate or a newer publication stopped a generation, and why."""
    generation = await select_generation_by_id(connection, generation_id)
    assert generation is not None  # it was held back in this transaction
    payload = {
        **_counts(generation),
        "published_generation": source.published_number,
        "reason": generation.note,
        "difference": difference_path(source.id, source.published_number, generation.number),
    }
    await _record(connection, EventKind.SOURCE_HELD_BACK, source, payload)


async def _record(
    connection: Connection, kind: EventKind, source: Source, payload: dict[str, Any]
) -> None:
    event = NewEvent(kind, None, None, payload, source_id=source.id, user_id=source.user_id)
    await events.record_events(connection, [event])


def _counts(generation: Generation) -> dict[str, Any]:
    return {
        "source": generation.source_id,
        "generation": generation.number,
        "job": None if generation.job_id is None else str(generation.job_id),
        "pages": generation.pages,
        "added": generation.added,
        "changed": generation.changed,
        "removed": generation.removed,
        "unchanged": generation.unchanged,
        "carried_over": generation.carried_over,
    }


def difference_path(source_id: str, old: int | None, new: int) -> str | None:
    """The page of the dashboard, and below /api/v1 the endpoint, that shows the difference."""
    return None if old is None else f"/sources/{source_id}/diff?old={old}&new={new}"
