"""The audit: run the checks of the catalog, and record their report as an event."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

from forager.checks import Finding, Level, Report, Topic, checks_in, run_checks
from forager.db.database import Database
from forager.errors import NotFound
from forager.events.event import EventKind, NewEvent
from forager.events.service import list_events, record_events
from forager.hints import Hint, action
from forager.logs import get_logger
from forager.products import checks
from forager.products.store import audit as store
from forager.settings import Settings

log = get_logger("audit")

EVERY = 86400.0


async def audit_catalog(database: Database, settings: Settings) -> Report:
    """Run all checks of the catalog, and record the problems as an event."""
    report = await run_checks(checks_in(checks), database, settings)
    report = replace(report, findings=report.problems)
    async with database.transaction() as connection:
        await record_events(connection, [NewEvent(EventKind.AUDIT, None, None, asdict(report))])
    return report


async def last_audit(database: Database) -> Report:
    """The findings of the last audit; raises NotFound before the first."""
    page = await list_events(database, kind=EventKind.AUDIT, limit=1)
    if not page.items:
        raise NotFound(
            "there was no audit yet",
            hint=Hint("{} runs one. Workers run one every day.", action("products audit")),
        )
    payload = page.items[0].payload
    findings = [
        Finding(
            check=each["check"],
            topic=Topic.PRODUCTS,
            # an event of an earlier version has a meaning, and neither level nor next step
            level=Level(each.get("level", Level.WARN)),
            message=each.get("message") or each["meaning"],
            impact=each.get("impact"),
            next_step=each.get("next_step"),
            count=each["count"],
            examples=each["examples"],
        )
        for each in payload["findings"]
    ]
    at = datetime.fromisoformat(payload["at"])
    ok = payload.get("ok", not findings)
    return Report(at, payload["seconds"], ok, payload["checks"], findings)


async def audit_if_due(database: Database, settings: Settings) -> Report | None:
    """Audit the catalog if the last audit is a day old."""
    if await database.run(store.was_audited, seconds=EVERY):
        return None
    report = await audit_catalog(database, settings)
    for finding in report.findings:
        log.warning("audit", check=finding.check, count=finding.count, why=finding.message)
    return report
