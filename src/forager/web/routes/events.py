"""Events: what happened to products and domains, and what happened to jobs."""

from __future__ import annotations

from forager.db.cursor import Page as Rows
from forager.jobs.history import KINDS, list_moves
from forager.web.event_text import summary_of
from forager.web.forms import Form
from forager.web.page import Page, asked, attempt, following, new_router, page
from forager.web.visit import Reads, Visit
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.webhook import EventRow

router = new_router()

PAGE_SIZE = 50


@page(router, "/events")
async def events(visit: Reads) -> Page:
    form = asked(visit)
    found, trouble = await attempt(_found(visit, form), Rows([], None))
    return Page(
        "events.html",
        {
            "events": [(event, summary_of(event)) for event in found.items],
            "next_url": following(visit, found.next_cursor),
            "asked": form,
            "kinds": list(EventKind),
            "trouble": trouble,
        },
    )


@page(router, "/events/jobs")
async def moves(visit: Reads) -> Page:
    form = asked(visit)
    found = await list_moves(
        visit.database,
        move=form.optional("kind"),
        user_id=visit.caller.sees_only,
        cursor=form.optional("cursor"),
        limit=PAGE_SIZE,
    )
    return Page(
        "job_moves.html",
        {
            "moves": found.items,
            "next_url": following(visit, found.next_cursor),
            "asked": form,
            "kinds": KINDS,
        },
    )


async def _found(visit: Visit, form: Form) -> Rows[EventRow]:
    return await list_events(
        visit.database,
        kind=form.optional("kind"),
        domain=form.optional("domain"),
        product_id=form.number("product", least=1, most=2**63 - 1),
        cursor=form.optional("cursor"),
        limit=PAGE_SIZE,
    )
