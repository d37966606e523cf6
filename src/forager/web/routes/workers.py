"""Workers and background services: which processes run, and their state."""

from __future__ import annotations

from forager.jobs.workers import list_workers
from forager.services.report import list_service_processes
from forager.web.page import Page, new_router, page
from forager.web.visit import Operates
from forager.web.worker_state import shown_state

router = new_router()


@page(router, "/workers")
async def workers(visit: Operates) -> Page:
    found = await list_workers(visit.here.database)
    rows = [(worker, shown_state(worker, visit.here.settings.stale_after)) for worker in found]
    processes = await list_service_processes(visit.here.database, visit.here.settings)
    return Page("workers.html", {"rows": rows, "processes": processes})
