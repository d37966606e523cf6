"""Start a crawl of a site, or of the bundled site."""

from __future__ import annotations

import re
from typing import Any

from forager.crawl.admission import start_crawl
from forager.crawl.options import CrawlOptions, crawl_options
from forager.errors import ForagerError, InvalidInput
from forager.jobs.queue import Enqueued
from forager.web.crawl_fields import crawl_fields
from forager.web.demo import SOURCE, DemoSite
from forager.web.errors import told_to_people, wants_fragment, words_of
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.visit import Administers, Operates, Visit

router = new_router()

FIELDS = crawl_fields()
# an option at the start of a line that says what is wrong with it
_OPTION = re.compile(r"^(?P<name>\w+)(?:\.[^:\n]+)?:", re.MULTILINE)

MAX_URLS = 1000


@page(router, "/new-crawl")
async def form_page(visit: Operates) -> Page:  # noqa: ARG001 - the scope
    return Page("new_crawl.html", {"fields": FIELDS, "given": Form({}), "problem": None})


@action(router, "/new-crawl")
async def start(visit: Operates, form: Submitted) -> Done | Page:
    try:
        return _started(await _start(visit, _options(form), form.text("source") or None, form))
    except ForagerError as error:
        if wants_fragment(visit.request):
            raise
        # without scripts the page itself is the answer: what was typed must be in it
        problem = told_to_people(error)
        values = {"fields": FIELDS, "given": form, "problem": words_of(problem)}
        return Page("new_crawl.html", values, status=problem.status)


@action(router, "/new-crawl/demo")
async def start_demo(visit: Administers, form: Submitted) -> Done:
    demo: DemoSite = visit.request.app.state.demo
    return _started(await _start(visit, demo.options(), SOURCE, form))


async def _start(visit: Visit, options: CrawlOptions, source: str | None, form: Form) -> Enqueued:
    return await start_crawl(
        visit.here.database,
        visit.here.settings,
        visit.caller,
        options,
        source=source,
        priority=form.number("priority") or 0,
    )


def _started(asked: Enqueued) -> Done:
    name = asked.job.source_id
    text = f"Crawl of {name} started." if asked.created else f"{name} is already being crawled."
    return Done(text, to=f"/jobs/{asked.job.id}", leaves=True)


def _options(form: Form) -> CrawlOptions:
    given: dict[str, Any] = {"urls": form.lines("urls")[:MAX_URLS]}
    for field in FIELDS:
        if (value := field.read(form)) is not None:
            given[field.option] = value
    try:
        return crawl_options(given)
    except InvalidInput as error:
        raise InvalidInput(_OPTION.sub(_as_title, error.message), hint=error.hint) from None


def _as_title(option: re.Match[str]) -> str:
    """The name of an option as the form shows it."""
    titles = {field.option: field.title for field in FIELDS}
    return f"{titles.get(option['name'], 'URLs')}:"
