"""Starting a crawl: of a site, or of the small one that comes with Forager."""

from __future__ import annotations

from typing import Any

from forager.crawl.admission import start_crawl
from forager.crawl.options import CrawlOptions, crawl_options
from forager.errors import ForagerError
from forager.jobs.queue import Enqueued
from forager.web.demo import SOURCE, DemoSite
from forager.web.errors import told_to_people, wants_fragment, words_of
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.visit import Administers, Operates, Visit

router = new_router()

MAX_URLS = 1000


@page(router, "/new-crawl")
async def form_page(visit: Operates) -> Page:  # noqa: ARG001 - the scope
    return Page("new_crawl.html", {"given": Form({}), "problem": None})


@action(router, "/new-crawl")
async def start(visit: Operates, form: Submitted) -> Done | Page:
    try:
        return _started(await _start(visit, _options(form), form.text("source") or None, form))
    except ForagerError as error:
        if wants_fragment(visit.request):
            raise
        # without scripts the page itself is the answer: what was typed must be in it
        problem = told_to_people(error)
        values = {"given": form, "problem": words_of(problem)}
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
    text = f"The crawl of {name} is started." if asked.created else f"{name} is being crawled."
    return Done(text, to=f"/jobs/{asked.job.id}", leaves=True)


def _options(form: Form) -> CrawlOptions:
    given: dict[str, Any] = {
        "urls": form.lines("urls")[:MAX_URLS],
        "strategy": form.text("strategy"),
        "scope": form.text("scope"),
        "include": form.lines("include"),
        "exclude": form.lines("exclude"),
        "max_pages": form.number("max_pages", least=1),
        "max_depth": form.number("max_depth", most=1000),
        "max_time": form.amount("max_time"),
        "delay": form.amount("delay", most=3600),
        "concurrency": form.number("concurrency", least=1, most=1000),
        "allow_private": form.checked("allow_private") or None,
    }
    return crawl_options(
        {name: value for name, value in given.items() if value not in (None, "", [])}
    )
