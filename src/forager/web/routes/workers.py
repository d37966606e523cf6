"""Workers: who is there, and what each has to say."""

from __future__ import annotations

from forager.jobs.report import list_workers
from forager.web.page import Page, new_router, page
from forager.web.visit import Operates
from forager.web.worker_state import shown_state

router = new_router()


@page(router, "/workers")
async def workers(visit: Operates) -> Page:
    found = await list_workers(visit.here.database)
    rows = [(worker, shown_state(worker, visit.here.settings.stale_after)) for worker in found]
    return Page("workers.html", {"rows": rows})
