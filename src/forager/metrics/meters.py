"""Meters: counters and histograms of one process, cheap enough for the hot path.

What they hold is what has not been added to the database yet. Recording is a few dictionary
operations on the event loop's thread; nothing waits, nothing fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

Labels = tuple[str, ...]
# a metric's name, its label values, and the bucket or sum that is meant
Key = tuple[str, Labels, str]

SUM = "sum"
INFINITY = "+Inf"


class MeterKind(StrEnum):
    """A kind of metric, as in Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """Name, description and labels of a metric."""

    name: str
    kind: MeterKind
    help: str
    labels: Labels = ()
    # upper bounds of a histogram's buckets; the last one, without bound, goes without saying
    bounds: tuple[float, ...] = ()


class Counter:
    """A counter by labels."""

    __slots__ = ("_values", "family")

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:
        self.family = Family(name, MeterKind.COUNTER, help, labels)
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Add to the counter of these labels; without I/O."""
        values = self._values
        values[labels] = values.get(labels, 0) + amount

    def take(self) -> dict[Key, float]:
        """What was added since the last call."""
        taken, self._values = self._values, {}
        return {(self.family.name, labels, ""): value for labels, value in taken.items()}


class Histogram:
    """A histogram of seconds by labels."""

    __slots__ = ("_buckets", "_sums", "_values", "family")

    def __init__(
        self, name: str, help: str, labels: Labels = (), *, bounds: tuple[float, ...]
    ) -> None:
        self.family = Family(name, MeterKind.HISTOGRAM, help, labels, bounds)
        self._buckets = len(bounds) + 1
        self._values: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        """Count a duration; without I/O."""
        counts = self._values.get(labels)
        if counts is None:
            counts = self._values[labels] = [0] * self._buckets
            self._sums[labels] = 0.0
        counts[bisect_left(self.family.bounds, seconds)] += 1
        self._sums[labels] += seconds

    def take(self) -> dict[Key, float]:
        """What was observed since the last call."""
        values, self._values = self._values, {}
        sums, self._sums = self._sums, {}
        name, parts = self.family.name, bucket_names(self.family)
        taken: dict[Key, float] = {(name, labels, SUM): total for labels, total in sums.items()}
        for labels, counts in values.items():
            for part, count in zip(parts, counts, strict=True):
                if count:
                    taken[name, labels, part] = count
        return taken


Meter = Counter | Histogram


def bucket_names(family: Family) -> list[str]:
    return [*(f"{bound:g}" for bound in family.bounds), INFINITY]


def take_all(meters: Sequence[Meter]) -> dict[Key, float]:
    """Return and reset the values of all meters."""
    taken: dict[Key, float] = {}
    for meter in meters:
        taken |= meter.take()
    return taken
