"""The audit: do products, prices, images and tasks agree with each other, and are they fresh?"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from forager.db.database import Database
from forager.db.rows import select_now
from forager.errors import NotFound
from forager.hints import Hint, action
from forager.images.files import open_image_files
from forager.logs import get_logger
from forager.products.store import audit as store
from forager.products.store.audit import Found
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
class Check:
    """What is looked for, and what it means if it is found."""

    name: str
    concern: Concern
    meaning: str


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    concern: Concern
    meaning: str
    count: int
    examples: list[Any]


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; nothing is good."""

    at: datetime
    seconds: float
    checks: int
    findings: list[Finding]


_INTEGRITY, _STALENESS = Concern.INTEGRITY, Concern.STALENESS

CHECKS = (
    Check("products_without_task", _STALENESS, "products that no task keeps fresh any more"),
    Check("tasks_without_domain", _INTEGRITY, "tasks whose domain does not exist"),
    Check("completed_without_next_crawl", _INTEGRITY, "completed tasks that never become due"),
    Check(
        "dead_letters_of_living_tasks",
        _INTEGRITY,
        "open dead letters whose task has not failed, or is gone",
    ),
    Check("failed_without_dead_letter", _INTEGRITY, "failed tasks without a dead letter"),
    Check(
        "archive_segments_gone",
        _INTEGRITY,
        "archive segments that tasks or extractions refer to, and that do not exist",
    ),
    Check("images_without_file", _INTEGRITY, "images marked as stored without a file record"),
    Check("products_not_seen", _STALENESS, "products not seen for three of their intervals"),
    Check("tasks_overdue", _STALENESS, "tasks that have been due for more than an hour"),
    Check("domains_that_fail", _STALENESS, "domains all of whose tasks have failed"),
)
PRICES = Check(
    "prices_differ", _INTEGRITY, "products whose price is not the last one in their history"
)
FILES = Check(
    "image_files_missing", _INTEGRITY, "images of a sample whose file is missing or cut off"
)


async def audit_catalog(database: Database, settings: Settings) -> Audit:
    """Look at everything, and record what was found as an event."""
    began = time.monotonic()
    at = await database.run(select_now)
    findings = [finding async for finding in _findings(database, settings)]
    audit = Audit(at, time.monotonic() - began, len(CHECKS) + 2, findings)
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
    """The newest audit, from its event."""
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
    """Audit the catalog if the last audit is a day old. Two at once are two events."""
    async with database.connection() as connection:
        if await store.was_audited(connection, seconds=EVERY):
            return None
    audit = await audit_catalog(database, settings)
    for finding in audit.findings:
        log.warning("audit", check=finding.check, count=finding.count, why=finding.meaning)
    return audit


async def _findings(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    parameters = {"every": settings.recrawl_every, "late": LATE}
    for check in CHECKS:
        found = await database.run(store.find, check.name, examples=EXAMPLES, **parameters)
        if found.count:
            yield _finding(check, found)
    for check, found in (
        (PRICES, await _differing_prices(database)),
        (FILES, await _missing_files(database, settings)),
    ):
        if found.count:
            yield _finding(check, found)


async def _differing_prices(database: Database) -> Found:
    """In pieces: a catalogue may be large, and no statement of ours is to take a minute."""
    wrong: list[int] = []
    count, after = 0, 0
    while True:
        found, last = await database.run(store.check_prices, after=after, limit=CHUNK)
        count += len(found)
        wrong = (wrong + found)[:EXAMPLES]
        if last is None:
            return Found(count, wrong)
        after = last


async def _missing_files(database: Database, settings: Settings) -> Found:
    files = open_image_files(settings)
    sample = await database.run(store.sample_images, IMAGE_SAMPLE)
    missing = []
    for image_id, path, size in sample:
        if await files.size(path) != size:
            # it may have been dropped, with its file, since it was listed
            async with database.connection() as connection:
                if await store.is_stored(connection, image_id, path):
                    missing.append(image_id)
    return Found(len(missing), missing[:EXAMPLES])


def _finding(check: Check, found: Found) -> Finding:
    return Finding(check.name, check.concern, check.meaning, found.count, found.examples)
