"""The audit: what the last one found, and another one now."""

from __future__ import annotations

import asyncio

from forager.api.slots import Slots
from forager.catalog.audit import Audit, audit_catalog, last_audit
from forager.errors import NotAllowed, NotFound
from forager.web.formats import counted
from forager.web.forms import Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.visit import Operates, Reads, Visit

router = new_router()

AUDITS = Slots(1, "an audit")
LONGEST = 300.0


@page(router, "/audit")
async def show(visit: Reads) -> Page:
    return Page("audit.html", {"audit": await _last(visit)})


@action(router, "/audit")
async def run(visit: Operates, form: Submitted) -> Done:  # noqa: ARG001
    try:
        with AUDITS.taken():
            async with asyncio.timeout(LONGEST):
                found = await audit_catalog(visit.here.database, visit.here.settings)
    except TimeoutError:
        raise NotAllowed(
            f"the audit took longer than {LONGEST:g} s",
            hint="Run `forager products audit`, which waits for as long as it takes.",
        ) from None
    checks, findings = counted(found.checks, "check"), counted(len(found.findings), "finding")
    return Done(f"{checks} made: {findings}.", to="/audit")


async def _last(visit: Visit) -> Audit | None:
    try:
        return await last_audit(visit.here.database)
    except NotFound:
        return None
