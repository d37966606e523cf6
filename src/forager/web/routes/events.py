"""Events: what happened to products and domains, and what happened to jobs."""

from __future__ import annotations

from forager.api.models import LARGEST_BIGINT
from forager.jobs.history import KINDS, list_moves
from forager.web.page import Page, attempt, new_router, page
from forager.web.visit import Reads
from forager.webhooks.events import EventKind, list_events

router = new_router()


@page(router, "/events")
async def events(visit: Reads) -> Page:
    form = visit.asked
    found, trouble = await attempt(
        lambda: list_events(
            visit.database,
            kind=form.optional("kind"),
            domain=form.optional("domain"),
            product_id=form.number("product", least=1, most=LARGEST_BIGINT),
            **visit.paging,
        )
    )
    return Page("events.html", events=found, kinds=list(EventKind), trouble=trouble)


@page(router, "/events/jobs")
async def moves(visit: Reads) -> Page:
    kind, owner = visit.asked.optional("kind"), visit.caller.sees_only
    found = await list_moves(visit.database, move=kind, user_id=owner, **visit.paging)
    return Page("job_moves.html", moves=found, kinds=KINDS)
