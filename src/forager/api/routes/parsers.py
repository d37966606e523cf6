"""Parsers: which version of each counts, how well they read, and how two compare."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from forager.api.models.parsers import (
    BacktestOrder,
    BacktestReport,
    ParserRate,
    Parsers,
    Rollout,
    RolloutOrder,
)
from forager.api.models.values import PlainText
from forager.api.paging import Cursor, Limit, Listed, listed
from forager.api.services import Admin, Here, Reader
from forager.parsers.overview import overview
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import roll_back, roll_out

router = APIRouter(prefix="/parsers", tags=["parsers"])

# the scope is all that is asked of the caller: parsers belong to the installation
# ruff: noqa: ARG001

Name = Annotated[PlainText, Path(min_length=1, max_length=100, examples=["amazon"])]


@router.get("")
async def list_parsers(here: Here, caller: Reader) -> Parsers:
    """Parsers: versions, patterns, what counts, what is tried, and how well they read."""
    return Parsers.of(await overview(here.database, here.settings))


@router.get("/rates")
async def rates(
    here: Here,
    caller: Reader,
    domain: Annotated[PlainText | None, Query(min_length=1, max_length=300)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Listed[ParserRate]:
    """How well each version reads each domain: of its last 100 pages, and in 7 days."""
    page = await list_rates(here.database, domain=domain, cursor=cursor, limit=limit)
    return listed(page, ParserRate.of)


@router.post("/{name}/rollout")
async def rollout(name: Name, order: RolloutOrder, here: Here, caller: Admin) -> Rollout:
    """Let a version count from now on; with `canary`, try it on some tasks first."""
    load_parsers(here.settings.parser_modules)
    done = await roll_out(here.database, name, order.version, canary=order.canary)
    return Rollout.of(done)


@router.post("/{name}/rollback")
async def rollback(name: Name, here: Here, caller: Admin) -> Rollout:
    """Undo the last step: end a trial, or else return to the version before."""
    load_parsers(here.settings.parser_modules)
    return Rollout.of(await roll_back(here.database, name))


@router.post("/{name}/backtest")
async def backtest(name: Name, order: BacktestOrder, here: Here, caller: Admin) -> BacktestReport:
    """Read archived pages with two versions and say what differs; nothing is fetched or stored.

    It is answered when it is done: at most 500 pages and a minute, one at a time.
    """
    report = await here.backtest(
        name,
        version=order.version,
        against=order.against,
        domain=order.domain,
        history=order.history,
        limit=order.limit,
    )
    return BacktestReport.of(report)
