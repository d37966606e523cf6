"""Explain a URL: what became of it, why, and what would happen now."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query

from forager.crawl.explain.explanation import explain as explain_url
from forager.errors import InvalidInput, NotFound
from forager.web.page import Page, new_router, page
from forager.web.visit import Reads, Visit

router = new_router()

Text = Annotated[str, Query(max_length=10_000)]
JobName = Annotated[str, Query(max_length=100)]


@page(router, "/explain")
async def explain(visit: Reads, url: Text = "", job: JobName = "") -> Page:
    values: dict[str, object] = {"url": url.strip(), "job": job.strip(), "trouble": None}
    if not url.strip():
        return Page("explain.html", {**values, "found": None})
    try:
        return Page("explain.html", {**values, **await _explained(visit, url.strip(), job.strip())})
    except (InvalidInput, NotFound) as error:
        return Page("explain.html", {**values, "found": None, "trouble": error})


async def _explained(visit: Visit, url: str, job: str) -> dict[str, object]:
    here, owner = visit.here, visit.caller.sees_only
    chosen = await here.job_of(visit.caller, await here.queue.resolve(job)) if job else None
    found = await explain_url(
        here.database, here.queue, url, job_id=chosen.id if chosen else None, user_id=owner
    )
    crawl = await here.queue.get(found.job_id) if found.job_id else None
    return {"found": found, "crawl": crawl, "at": datetime.now(UTC)}
