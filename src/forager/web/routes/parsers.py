"""Parsers: active versions, success rates, rollouts and backtests."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from forager.api.services import BACKTEST_SECONDS
from forager.errors import InvalidInput
from forager.parsers.backtest import Backtest
from forager.parsers.overview import overview
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import Rollout, load_plan, roll_back, roll_out
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, attempt, cached, new_router, page
from forager.web.visit import AdminVisit, ReaderVisit, WebVisit

router = new_router()

MAX_PAGES = 500
DEFAULT_PAGES = 100

Name = Annotated[str, Path(min_length=1, max_length=100)]


@page(router, "/parsers")
async def list_parsers(visit: ReaderVisit) -> WebPage:
    plan = await load_plan(visit.database)
    rates = await cached(visit, lambda: _load(visit), repr(plan))
    undoable = [
        name
        for name, rollout in plan.rollouts.items()
        if rollout.canary_version is not None or rollout.previous_version is not None
    ]
    return WebPage("parsers.html", **rates.answer, at=rates.at, undoable=undoable)


@action(router, "/parsers/{name}/rollout")
async def rollout(visit: AdminVisit, form: Submitted, name: Name) -> Done:
    load_parsers(visit.settings.parser_modules)
    canary = form.amount("canary", most=100)
    done = await roll_out(
        visit.database,
        visit.settings,
        name,
        form.text("version"),
        canary=None if canary is None else canary / 100,
    )
    if done.canary_version is not None:
        text = f"Version {done.canary_version} of {name} runs as a canary."
    else:
        text = _active_text(name, done)
    if done.missing_on:
        text += f" Not installed on: {', '.join(done.missing_on[:5])}."
    return Done(text, to="/parsers")


@action(router, "/parsers/{name}/rollback")
async def rollback(visit: AdminVisit, form: Submitted, name: Name) -> Done:
    load_parsers(visit.settings.parser_modules)
    done = await roll_back(visit.database, name)
    return Done(_active_text(name, done), to="/parsers")


def _active_text(name: str, done: Rollout) -> str:
    if done.is_generic:
        return f"Pages of {name} are read by the generic extraction now."
    return f"Version {done.active_version} of {name} is now active."


@action(router, "/parsers/backtest")
async def compare(visit: AdminVisit, form: Submitted) -> WebPage:
    """Respond with the result, because a backtest stores nothing."""
    limit = form.number("limit", least=1, most=MAX_PAGES) or DEFAULT_PAGES
    report = await _backtest(visit, form, limit)
    differing = {name: each for name, each in report.fields.items() if each.differs}
    return WebPage("backtest.html", report=report, fields=differing, limit=limit)


async def _load(visit: WebVisit) -> dict[str, object]:
    domain = visit.asked.text("domain")
    found = await overview(visit.database, visit.settings)
    rates, problem = await attempt(
        lambda: list_rates(visit.database, domain=domain or None, **visit.paging)
    )
    return {
        "parsers": found.parsers,
        "broken": found.broken,
        "names": list(dict.fromkeys(each.name for each in found.parsers)),
        "versions": list(dict.fromkeys(each.version for each in found.parsers)),
        "rates": rates,
        "domain": domain,
        "max_pages": MAX_PAGES,
        "default_pages": DEFAULT_PAGES,
        "seconds": BACKTEST_SECONDS,
        "problem": problem,
    }


async def _backtest(visit: WebVisit, form: Form, limit: int) -> Backtest:
    if not form.text("against"):
        raise InvalidInput("a backtest needs the version to compare with")
    return await visit.backtest(
        form.text("name"),
        version=form.optional("version"),
        against=form.text("against"),
        domain=form.optional("domain"),
        history=form.checked("history"),
        limit=limit,
    )
