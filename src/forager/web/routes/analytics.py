"""Analytics and audits: ready-made questions, and the state of the catalog."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from forager.analytics.answers import (
    DEFAULT_DAYS,
    MOST_DAYS,
    QueryResult,
    answer,
    check_engine,
    list_queries,
)
from forager.analytics.clickhouse import ClickHouseUnavailable
from forager.analytics.operations import ANALYSES
from forager.analytics.sync import sync
from forager.checks import Examination, Level, Report, Topic
from forager.doctor.registry import checks_of
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.operations.slots import Slots
from forager.products.audit import last_audit
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import AdminVisit, OperatorVisit, ReaderVisit, WebVisit

router = new_router()

ROWS = 100
SYNCS = Slots(1, "a copy of the data")
SYNC_SECONDS = 60.0


@page(router, "/analytics")
async def show(visit: OperatorVisit) -> WebPage:
    form = visit.asked
    found, problem = None, None
    try:
        found = (await cached(visit, lambda: _found(visit, form))).answer
    except (InvalidInput, NotFound, NotAllowed, ClickHouseUnavailable) as error:
        problem = error
    return WebPage(
        "analytics.html",
        queries=list_queries(),
        chosen=_chosen(form),
        days=form.text("days") or DEFAULT_DAYS,
        found=found,
        problem=problem,
    )


@action(router, "/analytics/sync")
async def copy_data(visit: OperatorVisit, form: Submitted) -> Done:
    check_engine(visit.settings)
    with SYNCS.taken():
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                done = await sync(visit.database, visit.settings)
        except TimeoutError:
            return Done(
                "Copying takes longer than a minute: run forager analytics sync.", to="/analytics"
            )
    return Done(f"{counted(sum(done.rows.values()), 'row')} copied.", to="/analytics", leaves=True)


def _chosen(form: Form) -> str:
    return form.text("query") or list_queries()[0].name


async def _found(visit: WebVisit, form: Form) -> QueryResult:
    days = form.number("days", least=1, most=MOST_DAYS) or DEFAULT_DAYS
    with ANALYSES.taken():
        return await answer(visit.settings, _chosen(form), days=days, limit=ROWS)


@page(router, "/audit")
async def show_audit(visit: ReaderVisit) -> WebPage:
    audit = None
    with suppress(NotFound):
        audit = await last_audit(visit.database)
    return checks_page(
        "Audit",
        "Checks that products, prices, images and tasks are consistent and up to date. Workers run"
        " the audit every day.",
        audit,
        run="/audit" if visit.may_operate else None,
    )


@action(router, "/audit")
async def run_audit(visit: OperatorVisit, form: Submitted) -> Done:
    found = await visit.audit()
    text = f"Audit finished: {counted(len(found.findings), 'finding')}."
    return Done(text, to="/audit", leaves=True)


@page(router, "/doctor")
async def show_doctor(visit: AdminVisit) -> WebPage:
    """Run the checks of `forager doctor`, except for the small job, in the process of the page."""
    examination = Examination()
    # these read disks and start programs
    await asyncio.to_thread(asyncio.run, examination.run(checks_of(Topic.MACHINE), visit.settings))
    for topic in (Topic.SERVER, Topic.WORK):
        await examination.run(checks_of(topic), visit.database, visit.settings)
    return checks_page(
        "Doctor",
        "Checks of this machine, the database and the work, run now. The command also runs a"
        " small job.",
        examination.report(),
    )


@action(router, "/sources/{source_id}/check")
async def check_source(visit: OperatorVisit, form: Submitted, source_id: str) -> WebPage:
    report = await visit.check_source(await visit.get_source(source_id))
    intro = "Compares published pages with their archived responses to find lost content."
    return checks_page(f"Check of {source_id}", intro, report)


def checks_page(
    title: str, intro: str, report: Report | None, *, run: str | None = None
) -> WebPage:
    """The findings of some checks, and a button that runs them again."""
    findings = report.findings if report else []
    return WebPage(
        "checks.html",
        title=title,
        intro=intro,
        report=report,
        problems=[each for each in findings if each.level is not Level.OK],
        passed=[each for each in findings if each.level is Level.OK],
        run=run,
    )
