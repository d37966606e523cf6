"""The audit: checks that products, prices, images and tasks are consistent and fresh."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from forager.archive.storage import size_of
from forager.db.database import Database
from forager.db.rows import select_now
from forager.errors import NotFound
from forager.hints import Hint, action
from forager.images.files import open_image_files
from forager.logs import get_logger
from forager.products.store import audit as store
from forager.settings import Settings
from forager.webhooks.events import EventKind, NewEvent, list_events, record_events

log = get_logger("audit")

EVERY = 86400.0
EXAMPLES = 10
CHUNK = 10_000
IMAGE_SAMPLE = 200
# how late a task may be before it is reported: the scheduler ticks every second
LATE = 3600.0


class Concern(StrEnum):
    INTEGRITY = "integrity"
    STALENESS = "staleness"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    concern: Concern
    meaning: str
    count: int
    examples: list[Any]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit; without findings the catalog is consistent."""

    at: datetime
    seconds: float
    checks: int
    findings: list[Finding]


_INTEGRITY, _STALENESS = Concern.INTEGRITY, Concern.STALENESS

CHECKS = {
    "products_without_task": (_STALENESS, "products that no task keeps fresh any more"),
    "tasks_without_domain": (_INTEGRITY, "tasks whose domain does not exist"),
    "completed_without_next_crawl": (_INTEGRITY, "completed tasks that never become due"),
    "dead_letters_of_living_tasks": (
        _INTEGRITY,
        "open dead letters whose task has not failed, or is gone",
    ),
    "failed_without_dead_letter": (_INTEGRITY, "failed tasks without a dead letter"),
    "archive_segments_gone": (
        _INTEGRITY,
        "archive segments that tasks or extractions refer to, and that do not exist",
    ),
    "images_without_file": (_INTEGRITY, "images marked as stored without a file record"),
    "products_not_seen": (_STALENESS, "products not seen for three of their intervals"),
    "tasks_overdue": (_STALENESS, "tasks that have been due for more than an hour"),
    "domains_that_fail": (_STALENESS, "domains all of whose tasks have failed"),
    "prices_differ": (_INTEGRITY, "products whose price is not the last one in their history"),
    "image_files_missing": (
        _INTEGRITY,
        "images of a sample whose file is missing or cut off",
    ),
}


async def audit_catalog(database: Database, settings: Settings) -> Audit:
    """Run all checks, and record the findings as an event."""
    began = time.monotonic()
    at = await database.run(select_now)
    findings = [finding async for finding in _findings(database, settings)]
    audit = Audit(at, time.monotonic() - began, len(CHECKS), findings)
    payload = {
        "at": at,
        "seconds": round(audit.seconds, 3),
        "checks": audit.checks,
        "findings": [asdict(finding) for finding in findings],
    }
    async with database.transaction() as connection:
        await record_events(connection, [NewEvent(EventKind.AUDIT, None, None, payload)])
    return audit


async def last_audit(database: Database) -> Audit:
    page = await list_events(database, kind=EventKind.AUDIT, limit=1)
    if not page.items:
        raise NotFound(
            "there was no audit yet",
            hint=Hint("{} runs one. Workers run one every day.", action("products audit")),
        )
    payload = page.items[0].payload
    findings = [
        Finding(**{**each, "concern": Concern(each["concern"])}) for each in payload["findings"]
    ]
    at = datetime.fromisoformat(payload["at"])
    return Audit(at, payload["seconds"], payload["checks"], findings)


async def audit_if_due(database: Database, settings: Settings) -> Audit | None:
    """Audit the catalog if the last audit is a day old."""
    if await database.run(store.was_audited, seconds=EVERY):
        return None
    audit = await audit_catalog(database, settings)
    for finding in audit.findings:
        log.warning("audit", check=finding.check, count=finding.count, why=finding.meaning)
    return audit


async def _findings(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    for check, (concern, meaning) in CHECKS.items():
        count, examples = await _find(database, settings, check)
        if count:
            yield Finding(check, concern, meaning, count, examples)


async def _find(database: Database, settings: Settings, check: str) -> tuple[int, list[Any]]:
    """The number of rows that are wrong, and some of them."""
    if check == "prices_differ":
        return await _differing_prices(database)
    if check == "image_files_missing":
        return await _missing_files(database, settings)
    return await database.run(
        store.find, check, examples=EXAMPLES, every=settings.recrawl_every, late=LATE
    )


async def _differing_prices(database: Database) -> tuple[int, list[Any]]:
    """Check in chunks, so that no statement takes long in a large catalog."""
    wrong: list[int] = []
    count, after = 0, 0
    while True:
        found, last = await database.run(store.check_prices, after=after, limit=CHUNK)
        count += len(found)
        wrong = (wrong + found)[:EXAMPLES]
        if last is None:
            return count, wrong
        after = last


async def _missing_files(database: Database, settings: Settings) -> tuple[int, list[Any]]:
    files = open_image_files(settings)
    missing = []
    for image_id, path, size in await database.run(store.sample_images, IMAGE_SAMPLE):
        # it may have been deleted, with its file, since it was listed
        if await size_of(files, path) != size and await database.run(
            store.is_stored, image_id, path
        ):
            missing.append(image_id)
    return len(missing), missing[:EXAMPLES]
