"""A wish: one URL that somebody wants tracked, as it was written, or why it cannot be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from forager.errors import InvalidInput
from forager.hints import Hint
from forager.tasks.task import PRIORITIES, checked


@dataclass(frozen=True, slots=True)
class Terms:
    """How a task is to be kept; None: as it is, or by default."""

    priority: int | None = None
    every: timedelta | None = None
    popularity: float | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and self.priority not in PRIORITIES:
            raise InvalidInput(f"the priority must be 1 (highest) to 10, not {self.priority}")
        if self.every is not None:
            checked(self.every)
        if self.popularity is not None and not math.isfinite(self.popularity):
            raise InvalidInput("the popularity must be a finite number")

    def or_else(self, other: Terms) -> Terms:
        """These terms, and the other's where these say nothing."""
        if other is ANY_TERMS:
            return self
        return Terms(
            other.priority if self.priority is None else self.priority,
            other.every if self.every is None else self.every,
            other.popularity if self.popularity is None else self.popularity,
        )


ANY_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Wish:
    """A URL as it was written in a line of a file, or as the n-th of a list."""

    line: int
    url: str
    terms: Terms = ANY_TERMS


@dataclass(frozen=True, slots=True)
class BadLine:
    """What cannot be tracked, and why."""

    line: int
    reason: str | Hint
    text: str
