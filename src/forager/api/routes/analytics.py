"""Analytics: questions to the copies of products, prices, pages and extractions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from forager.analytics.answers import DEFAULT_DAYS, MOST_DAYS, list_queries
from forager.api.analysis import analyse
from forager.api.models.analytics import AnalyticsAnswer, AnalyticsQueries, AnalyticsQuery
from forager.api.models.values import PlainText
from forager.api.paging import Limit
from forager.api.services import Here, Operator

router = APIRouter(prefix="/analytics", tags=["analytics"])

# the scope is all that is asked of the caller: tasks and proxies belong to the installation
# ruff: noqa: ARG001


@router.get("")
async def queries(caller: Operator) -> AnalyticsQueries:
    """The questions that are ready to be asked."""
    found = [AnalyticsQuery.model_validate(each) for each in list_queries()]
    return AnalyticsQueries(queries=found)


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
