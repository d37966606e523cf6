"""Parsers: active versions, success rates, rollouts and backtests."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from forager.api.limits import Listed, Paged100, listed
from forager.api.models import Order, PlainText, View, example
from forager.api.services import Administers, Reads
from forager.parsers import backtest as tests
from forager.parsers import overview as parser_overview
from forager.parsers import rollouts
from forager.parsers.overview import overview
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import roll_back, roll_out

MAX_PAGES = 500
Version = Annotated[PlainText, Field(min_length=1, max_length=100)]


class Parser(View, row=parser_overview.ParserLine):
    """One version of a parser; `missing`: it should run, but is not installed."""

    state: Literal["active", "canary", "idle", "missing"]
    recent_rate: float | None = Field(description="Of the last 100 pages of each domain.")
    missing_on: list[str] = Field(
        description="Running workers that should use this version and do not have it installed."
    )


class BrokenParser(View):
    """A plug-in that could not be loaded."""

    origin: str
    reason: str


class Parsers(View):
    items: list[Parser] = Field(validation_alias="parsers")
    broken: list[BrokenParser]


class ParserRate(View):
    """The success rate of one version at one domain."""

    domain: str
    parser: str
    version: str
    role: str
    recent_pages: int
    recent_rate: float | None
    week_pages: int
    week_rate: float | None


class RolloutOrder(Order):
    model_config = example(version="1", canary=0.1)

    version: Version
    canary: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Only run it beside the active version, on this share of the tasks.",
    )


class Rollout(View, row=rollouts.Rollout):
    """The rollout state of a parser; workers apply it within seconds."""

    missing_on: list[str] = Field(
        description="Running workers that do not have the rolled-out version installed."
    )


class BacktestOrder(Order):
    model_config = example(against="1", limit=50)

    against: Version = Field(description="The version to compare with, or `generic`.")
    version: Version | None = Field(default=None, description="The newest version by default.")
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = None
    history: bool = Field(
        default=False, description="All stored pages, not only the newest of each URL."
    )
    limit: int = Field(default=100, ge=1, le=MAX_PAGES, description="Maximum number of pages.")


class ReadingError(View):
    url: str
    message: str


class BacktestVersion(View):
    version: str
    rate: float | None
    outcomes: dict[str, int]
    milliseconds_per_page: float | None = Field(validation_alias="milliseconds")
    errors: list[ReadingError]


class BacktestExample(View, row=tests.Example):
    """A page on which a field was changed, gained or lost."""


class BacktestField(View, row=tests.FieldReport):
    examples: list[BacktestExample]


class BacktestReport(View):
    """The new version compared with the old one, field by field."""

    parser: str
    pages: int
    unreadable: int = Field(description="Pages that are no longer in the archive.")
    truncated: bool = Field(description="There are more pages than were read.")
    old: BacktestVersion
    new: BacktestVersion
    fields: dict[str, BacktestField]


router = APIRouter(prefix="/parsers", tags=["parsers"])

Name = Annotated[PlainText, Path(min_length=1, max_length=100, examples=["amazon"])]


@router.get("")
async def list_parsers(here: Reads) -> Parsers:
    """List parsers: versions, patterns, status and success rates."""
    return Parsers.of(await overview(here.database, here.settings))


@router.get("/rates")
async def rates(
    here: Reads,
    paging: Paged100,
    domain: Annotated[PlainText | None, Query(min_length=1, max_length=300)] = None,
) -> Listed[ParserRate]:
    """List the success rate of each version by domain: last 100 pages, and last 7 days."""
    page = await list_rates(here.database, domain=domain, **paging)
    return listed(page, ParserRate.of)


@router.post("/{name}/rollout")
async def rollout(name: Name, order: RolloutOrder, here: Administers) -> Rollout:
    """Activate a version; with `canary`, run it on a share of the tasks first."""
    load_parsers(here.settings.parser_modules)
    done = await roll_out(here.database, here.settings, name, order.version, canary=order.canary)
    return Rollout.of(done)


@router.post("/{name}/rollback")
async def rollback(name: Name, here: Administers) -> Rollout:
    """Undo the last step: end the canary, or return to the previous version."""
    load_parsers(here.settings.parser_modules)
    return Rollout.of(await roll_back(here.database, name))


@router.post("/{name}/backtest")
async def backtest(name: Name, order: BacktestOrder, here: Administers) -> BacktestReport:
    """Parse archived pages with two versions and return the differences. Stores nothing.

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
