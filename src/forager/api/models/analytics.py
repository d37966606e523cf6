"""Ready-made questions to the lake, and their answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from forager.api.models.values import Time, View


class AnalyticsQuery(View):
    name: str
    about: str


class AnalyticsQueries(View):
    queries: list[AnalyticsQuery]


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
