"""What keeps a URL fresh as the page of a product, if it is tracked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Database
from forager.errors import NotFound
from forager.extract.urls import NormalisedUrl
from forager.hints import Hint
from forager.settings import Settings
from forager.tasks.service import Tasks
from forager.tasks.task import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedAs:
    """The task of a URL, why it does not run now, and how it went the last time."""

    task_id: int
    status: str
    why: str | Hint
    next_at: datetime | None
    last_attempt: str | None
    last_at: datetime | None


async def tracked_as(
    database: Database, settings: Settings, url: NormalisedUrl
) -> TrackedAs | None:
    try:
        report = await Tasks(database, settings).report(url)
    except NotFound:
        return None
    last = report.attempts[0] if report.attempts else None
    return TrackedAs(
        task_id=report.task.id,
        status=report.task.shown_status,
        why=report.why,
        next_at=report.next_at,
        last_attempt=_words(last) if last else None,
        last_at=last.finished_at if last else None,
    )


def _words(attempt: Attempt) -> str:
    status = f" (HTTP {attempt.http_status})" if attempt.http_status else ""
    return f"{attempt.stage} {attempt.outcome}{status}"
