"""Analytics: a ready-made question, and its answer as a table."""

from __future__ import annotations

from forager.analytics.answers import DEFAULT_DAYS, MOST_DAYS, Answer, list_queries
from forager.analytics.clickhouse import ClickHouseAway
from forager.api.analysis import analyse
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.web.asking import asked, remembered
from forager.web.forms import Form
from forager.web.page import Page, new_router, page
from forager.web.visit import Operates, Visit

router = new_router()

ROWS = 100


@page(router, "/analytics")
async def show(visit: Operates) -> Page:
    form = asked(visit)
    found: Answer | None = None
    trouble = None
    try:
        found = (await remembered(visit, lambda: _found(visit, form))).answer
    except (InvalidInput, NotFound, NotAllowed, ClickHouseAway) as error:
        trouble = error
    return Page(
        "analytics.html",
        {
            "queries": list_queries(),
            "chosen": _chosen(form),
            "days": form.text("days") or DEFAULT_DAYS,
            "found": found,
            "trouble": trouble,
        },
    )


def _chosen(form: Form) -> str:
    return form.text("query") or list_queries()[0].name


async def _found(visit: Visit, form: Form) -> Answer:
    days = form.number("days", least=1, most=MOST_DAYS) or DEFAULT_DAYS
    return await analyse(visit.here.settings, _chosen(form), days=days, limit=ROWS)
