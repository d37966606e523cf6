"""Operations on copied data: the prepared queries, and their results."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from forager.analytics import answers
from forager.db.cursor import Page
from forager.operations.models import Limit, Listed, PlainText, ResponseModel, Time, listed
from forager.operations.operation import Context, Group, Scope
from forager.operations.slots import Slots

analytics = Group(
    "analytics",
    "Products, prices, pages and parsers as Parquet files, and queries on them.",
    page="Analytics",
    sees=Scope.OPERATE,
)
# each is a process that may use two cores and 2 GB
ANALYSES = Slots(2, "an analysis")

QueryName = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=100,
        description="Name of the query, as listed by `analytics list`.",
        examples=["price-changes"],
    ),
]
Days = Annotated[int, Field(ge=1, le=answers.MOST_DAYS, description="Number of days to cover.")]


class AnalyticsQuery(ResponseModel, thing="query"):
    """A prepared query."""

    name: str
    about: str = Field(description="What the query answers.")


_ABOUT_ANSWER = {
    "days": "Number of days covered.",
    "columns": "Names of the columns.",
    "rows": "Rows of the result.",
}


class AnalyticsAnswer(ResponseModel, row=answers.QueryResult, about=_ABOUT_ANSWER, thing="query"):
    """A table: names of the columns, and rows."""

    is_cut: bool = Field(description="There are more rows; ask for a larger `limit`.")
    complete_until: Time | None = Field(
        description="Nothing before this time is missing; null if nothing was copied yet."
    )


@analytics.operation("list", "GET /analytics", columns={"NAME": "name", "WHAT": "about"})
async def list_all(_context: Context) -> Listed[AnalyticsQuery]:
    """List the available queries."""
    return listed(Page(list(answers.list_queries()), None), AnalyticsQuery.of)


@analytics.operation("run", "GET /analytics/answer", arguments=("query",))
async def answer(
    context: Context, query: QueryName, days: Days = answers.DEFAULT_DAYS, limit: Limit = 100
) -> AnalyticsAnswer:
    """Run a query. Results are as fresh as the last `forager analytics sync`."""
    with ANALYSES.taken():
        found = await answers.answer(context.settings, query, days=days, limit=limit)
    return AnalyticsAnswer.of(found)
