"""Requests to track a URL: the URL as it was written, and the terms, or why it is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from forager.amounts import checked_interval
from forager.errors import InvalidInput
from forager.hints import Hint
from forager.settings.crawling import RenderMode
from forager.tasks.task import PRIORITIES

MOST_RETRIES = 1000


@dataclass(frozen=True, slots=True)
class RequestedTerms:
    """The terms of a task; None: unchanged, or the default."""

    priority: int | None = None
    every: timedelta | None = None
    popularity: float | None = None
    # when the next visit is due
    at: datetime | None = None
    max_retries: int | None = None
    # which visits use a browser
    render: RenderMode | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and self.priority not in PRIORITIES:
            raise InvalidInput(
                f"the priority must be 0 to 9 (higher runs first), not {self.priority}"
            )
        if self.every is not None:
            checked_interval(self.every)
        if self.popularity is not None and not math.isfinite(self.popularity):
            raise InvalidInput("the popularity must be a finite number")
        if self.max_retries is not None and not 0 <= self.max_retries <= MOST_RETRIES:
            raise InvalidInput(f"retries must be 0 to {MOST_RETRIES}, not {self.max_retries}")

    def or_else(self, other: RequestedTerms) -> RequestedTerms:
        """These terms, with those of `other` where these are None."""
        if other is ANY_TERMS:
            return self
        return RequestedTerms(
            other.priority if self.priority is None else self.priority,
            other.every if self.every is None else self.every,
            other.popularity if self.popularity is None else self.popularity,
            other.at if self.at is None else self.at,
            other.max_retries if self.max_retries is None else self.max_retries,
            other.render if self.render is None else self.render,
        )


ANY_TERMS = RequestedTerms()


@dataclass(frozen=True, slots=True)
class TrackRequest:
    """A URL in a line of a file, or the n-th of a list."""

    line: int
    url: str
    terms: RequestedTerms = ANY_TERMS
    # all columns of a line of a CSV file
    cells: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A rejected line."""

    line: int
    reason: str | Hint
    text: str


@dataclass(frozen=True, slots=True)
class BadRow(BadLine):
    """A rejected line of a CSV file with all its columns."""

    cells: Mapping[str, Any]
