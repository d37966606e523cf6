"""Events: what happened to products and domains, and what happened to jobs."""

from __future__ import annotations

from forager.db.cursor import Page as Rows
from forager.errors import InvalidInput, NotFound
from forager.jobs.timeline import KINDS, list_moves
from forager.web.asking import asked, following
from forager.web.event_view import told_by
from forager.web.forms import Form
from forager.web.page import Page, new_router, page
from forager.web.visit import Reads, Visit
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.store.events import EventRow

router = new_router()

PAGE_SIZE = 50


@page(router, "/events")
async def events(visit: Reads) -> Page:
    form = asked(visit)
    trouble = None
    try:
        found = await _found(visit, form)
    except (InvalidInput, NotFound) as error:
        found, trouble = Rows([], None), error
    return Page(
        "events.html",
        {
            "events": [(event, told_by(event)) for event in found.items],
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
        visit.here.database,
        move=form.text("kind") or None,
        user_id=visit.caller.sees_only,
        cursor=form.text("cursor") or None,
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
        visit.here.database,
        kind=form.text("kind") or None,
        domain=form.text("domain") or None,
        product_id=form.number("product", least=1, most=2**63 - 1),
        cursor=form.text("cursor") or None,
        limit=PAGE_SIZE,
    )
