"""The audit: what the last one found, and another one now."""

from __future__ import annotations

from forager.errors import NotFound
from forager.products.audit import Audit, last_audit
from forager.web.formats import counted
from forager.web.forms import Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.visit import Operates, Reads, Visit

router = new_router()


@page(router, "/audit")
async def show(visit: Reads) -> Page:
    return Page("audit.html", {"audit": await _last(visit)})


@action(router, "/audit")
async def run(visit: Operates, form: Submitted) -> Done:  # noqa: ARG001
    found = await visit.here.audit()
    checks, findings = counted(found.checks, "check"), counted(len(found.findings), "finding")
    return Done(f"{checks} completed: {findings}.", to="/audit")


async def _last(visit: Visit) -> Audit | None:
    try:
        return await last_audit(visit.here.database)
    except NotFound:
        return None
