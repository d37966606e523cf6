"""Requests as a host counts them, and whether they kept within its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds between two requests, and how many may be under way at once."""

    delay: float
    concurrency: int


@dataclass(slots=True)
class Served:
    """One request. It came between `after` and `at`: the server looks only so often.

    `ended` is when the answer was handed over; until then it is under way.
    """

    target: str
    agent: str
    after: float
    at: float
    ended: float = float("inf")


def excess(requests: Sequence[Served], budget: Budget) -> float:
    """By how many requests the rate was passed at worst, over every window of time.

    With a request each `delay`, the n-th comes n delays after the first or later. Where one came
    sooner, the difference counted in delays is how many came too many.
    """
    worst, latest = 0.0, float("-inf")
    for number, request in enumerate(sorted(requests, key=lambda request: request.at)):
        latest = max(latest, request.after - number * budget.delay)
        worst = max(worst, latest - (request.at - number * budget.delay))
    return worst / budget.delay


def most_at_once(requests: Sequence[Served]) -> int:
    """How many requests were under way at the same time."""
    turns = [(request.at, 1) for request in requests]
    turns += [(request.ended, -1) for request in requests]
    most = now = 0
    for _, step in sorted(turns):
        now += step
        most = max(most, now)
    return most
