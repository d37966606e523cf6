"""Tracking: pages that people name are kept fresh from now on."""

from __future__ import annotations

from forager.access.caller import Scope
from forager.errors import InvalidInput
from forager.tasks.task import DEFAULT_PRIORITY, PRIORITIES, parse_every
from forager.tasks.tracking import Tracked
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, asked, new_router, page
from forager.web.visit import Operates, Visit

router = new_router()

MAX_URLS = 10_000


@page(router, "/track")
async def form_page(visit: Operates) -> Page:
    return Page(
        "track.html",
        {
            "url": asked(visit).text("url"),
            "priorities": PRIORITIES,
            "default_priority": DEFAULT_PRIORITY,
            "default_every": visit.here.settings.recrawl_every,
            "most": MAX_URLS,
        },
    )


@action(router, "/track")
async def track(visit: Operates, form: Submitted) -> Done:
    urls = form.lines("urls")
    if not 1 <= len(urls) <= MAX_URLS:
        raise InvalidInput(
            f"give from 1 to {MAX_URLS:,} URLs, one per line",
            hint="Use `forager products track --from FILE` for more.",
        )
    tracked = await _tracked(visit, form, urls)
    if not tracked.kept:
        raise InvalidInput(f"nothing is tracked: {_refused(tracked)}")
    to = await _place(visit, urls)
    return Done(_told(tracked), to=to, leaves=True, failed=bool(tracked.bad))


async def _tracked(visit: Visit, form: Form, urls: list[str]) -> Tracked:
    if form.checked("allow_private"):
        visit.caller.require(Scope.ADMIN)
    every = form.text("every")
    return await visit.here.tasks.track(
        urls,
        every=parse_every(every) if every else None,
        priority=form.number("priority", least=0, most=9),
        allow_private=form.checked("allow_private"),
    )


async def _place(visit: Visit, urls: list[str]) -> str:
    """Where to watch: the one task, or all of them."""
    if len(urls) == 1:
        [task_id] = await visit.here.tasks.ids_of(urls)
        if task_id is not None:
            return f"/tasks/{task_id}"
    return "/tasks"


def _told(tracked: Tracked) -> str:
    text = f"{counted(tracked.added, 'page')} tracked from now on"
    if tracked.known:
        text += f", {tracked.known:,} were already"
    return f"{text}. {_refused(tracked)}".strip()


def _refused(tracked: Tracked) -> str:
    if not tracked.bad:
        return ""
    first = tracked.first_bad[0]
    return f"{counted(tracked.bad, 'line')} refused, the first: {first.text}: {first.reason}"
