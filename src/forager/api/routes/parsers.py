"""Reading the archive again takes long: the number and time of these requests are limited."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from forager.api.services import AdminServices
from forager.operations.models import PlainText, RequestModel, example
from forager.parsers.operations import BacktestReport, RereadingReport, Version

MAX_PAGES = 500


class BacktestOrder(RequestModel):
    """The versions and pages to compare."""

    model_config = example(against="1", limit=50)

    against: Version = Field(description="The version to compare with, or `generic`.")
    version: Version | None = Field(default=None, description="The newest version by default.")
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only pages of this domain."
    )
    history: bool = Field(
        default=False, description="All stored pages, not only the newest of each URL."
    )
    limit: int = Field(default=100, ge=1, le=MAX_PAGES, description="Maximum number of pages.")


class ApplyOrder(RequestModel):
    """The version that reads archived pages again."""

    model_config = example(domain="shop.example")

    version: Version | None = Field(default=None, description="The active version by default.")
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only pages of this domain."
    )
    rewrite_history: bool = Field(
        default=False, description="Store the corrections; otherwise only report them."
    )


router = APIRouter(prefix="/parsers", tags=["parsers"])

Name = Annotated[
    PlainText,
    Path(min_length=1, max_length=100, description="Name of the parser.", examples=["amazon"]),
]


@router.post("/{name}/backtest")
async def backtest(name: Name, order: BacktestOrder, services: AdminServices) -> BacktestReport:
    """Parse archived pages with two versions and return the differences. Stores nothing.

    It is answered when it is done: at most 500 pages and a minute, one at a time.
    """
    report = await services.backtest(
        name,
        version=order.version,
        against=order.against,
        domain=order.domain,
        history=order.history,
        limit=order.limit,
    )
    return BacktestReport.of(report)


@router.post("/{name}/apply")
async def apply(name: Name, order: ApplyOrder, services: AdminServices) -> RereadingReport:
    """Read archived pages again with a version and correct price histories, lows and highs.

    Without `rewrite_history`, reports the changes and stores nothing. No alert is triggered. It is
    answered when it is done: within a minute, and not beside a backtest.
    """
    report = await services.reread(
        name, version=order.version, domain=order.domain, write=order.rewrite_history
    )
    return RereadingReport.of(report)
