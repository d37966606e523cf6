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
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.operations.slots import Slots
from forager.products.audit import last_audit
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

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
    with suppress(NotFound):  # none was run yet
        audit = await last_audit(visit.database)
    return WebPage("audit.html", audit=audit)


@action(router, "/audit")
async def run_audit(visit: OperatorVisit, form: Submitted) -> Done:
    found = await visit.audit()
    checks, findings = counted(found.checks, "check"), counted(len(found.findings), "finding")
    return Done(f"{checks} completed: {findings}.", to="/audit")
