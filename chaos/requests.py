"""Requests as a host counts them, and whether they stay within its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds between two requests, and the maximum of concurrent requests."""

    delay: float
    concurrency: int


@dataclass(slots=True)
class Served:
    """One request. It arrived between `after` and `at`, because the server polls.

    `ended` is when the answer was sent; until then the request is in flight.
    """

    target: str
    agent: str
    after: float
    at: float
    ended: float = float("inf")


def excess(requests: Sequence[Served], budget: Budget) -> float:
    """The maximum number of requests above the rate, over all time windows.

    With one request per `delay`, the n-th arrives at least n delays after the first. If it arrives
    earlier, the difference in delays is the number of excess requests.
    """
    worst, latest = 0.0, float("-inf")
    for number, request in enumerate(sorted(requests, key=lambda request: request.at)):
        latest = max(latest, request.after - number * budget.delay)
        worst = max(worst, latest - (request.at - number * budget.delay))
    return worst / budget.delay


def most_at_once(requests: Sequence[Served]) -> int:
    """The maximum number of concurrent requests."""
    turns = [(request.at, 1) for request in requests]
    turns += [(request.ended, -1) for request in requests]
    most = now = 0
    for _, step in sorted(turns):
        now += step
        most = max(most, now)
    return most
