"""Whether a worker is still heard of."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.jobs.workers import Worker


def is_stale(worker: Worker, stale_after: float) -> bool:
    return (datetime.now(UTC) - worker.last_seen).total_seconds() > stale_after


def shown_state(worker: Worker, stale_after: float) -> str:
    """The state in words for people: a worker that is not heard of is stale."""
    return "stale" if is_stale(worker, stale_after) else worker.state
