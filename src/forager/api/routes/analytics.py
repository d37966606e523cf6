"""Analytics: questions to the copies of products, prices, pages and extractions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from forager.analytics.answers import DEFAULT_DAYS, MOST_DAYS, list_queries
from forager.api.models.values import PlainText, Time, View
from forager.api.paging import Limit, Listed, listed
from forager.api.services import Here, Operator
from forager.api.slots import analyse
from forager.db.cursor import Page


class AnalyticsQuery(View):
    name: str
    about: str


class AnalyticsAnswer(View):
    """A table: the names of its columns, and its rows in their order."""

    name: str
    days: int
    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool = Field(description="There are more rows; ask for a larger `limit`.")
    complete_until: Time | None = Field(
        description="Nothing before this time is missing; null if nothing was copied yet."
    )


router = APIRouter(prefix="/analytics", tags=["analytics"])

# the scope is all that is asked of the caller: tasks and proxies belong to the installation
# ruff: noqa: ARG001


@router.get("")
async def list_all(caller: Operator) -> Listed[AnalyticsQuery]:
    """The questions that are ready to be asked."""
    return listed(Page(list(list_queries()), None), AnalyticsQuery.of)


@router.get("/answer")
async def answer(
    here: Here,
    caller: Operator,
    query: Annotated[PlainText, Query(min_length=1, max_length=100, examples=["price-changes"])],
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="Of how many last days.")] = (
        DEFAULT_DAYS
    ),
    limit: Limit = 100,
) -> AnalyticsAnswer:
    """The answer to one of the questions, as fresh as the last `forager analytics sync`."""
    found = await analyse(here.settings, query, days=days, limit=limit)
    return AnalyticsAnswer.model_validate(found)
