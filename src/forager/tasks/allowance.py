"""How many tasks of a domain its budget can use until the next tick of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor

from forager.fetch.budgets.exchange import PAIR_DELAY
from forager.fetch.budgets.terms import DEFAULT_CONCURRENCY, default_delay

LOOK_AHEAD = 2.0
"""Seconds beyond the next tick, so that a late one leaves no worker without work."""
A_SLOW_ANSWER = 10.0
"""Requests overlap when answers take longer than the delay: up to this many seconds are planned."""
FASTEST = 0.005
"""Seconds per request of a host without a delay."""


@dataclass(frozen=True, slots=True)
class DomainLoad:
    """A domain with pending tasks: its terms, its budget, and its tasks with the workers."""

    id: int
    name: str
    delay: float | None
    concurrency: int | None
    slow_delay: float
    per_proxy_only: bool
    use_proxies: bool | None
    is_active: bool
    is_on_hold: bool
    blocked_for: float
    slot_in: float
    queued: int
    crawling: int
    # of its pending tasks, highest first
    priorities: list[int]
    region: str | None = None


@dataclass(frozen=True, slots=True)
class TickPace:
    """Values of one tick for all domains."""

    window: float
    proxies: int
    task_proxies: bool
    # the number of proxies of each region
    tied: Mapping[str, int] = field(default_factory=dict)

    def proxies_for(self, region: str | None) -> int:
        """The proxies that workers of a domain can use; all, if it has no region."""
        if region is None:
            return self.proxies
        return self.proxies - sum(self.tied.values()) + self.tied.get(region, 0)


def allowance(load: DomainLoad, pace: TickPace, robots_delay: float = 0.0) -> int:
    """The number of further tasks of this domain that may be queued now."""
    if not load.is_active or load.is_on_hold:
        return 0
    lanes = _lanes(load, pace)
    delay = _delay(load, robots_delay, per_pair=lanes > 0) / max(1, lanes)
    starts_in = load.blocked_for if lanes else max(load.blocked_for, load.slot_in)
    free = _most(load, pace, delay) - load.queued - load.crawling
    return max(0, min(free, _slots(pace, delay, starts_in) - load.queued))


def _most(load: DomainLoad, pace: TickPace, delay: float) -> int:
    """The most tasks with the workers: as many as the window has slots, or as responses overlap."""
    concurrency = load.concurrency or DEFAULT_CONCURRENCY
    return max(ceil(pace.window / delay), min(concurrency, ceil(A_SLOW_ANSWER / delay)))


def _slots(pace: TickPace, delay: float, starts_in: float) -> int:
    if starts_in > pace.window:
        return 0
    return floor((pace.window - starts_in) / delay) + 1


def _lanes(load: DomainLoad, pace: TickPace) -> int:
    """The number of proxies with separate budgets; 0 if all requests share one."""
    proxied = pace.task_proxies if load.use_proxies is None else load.use_proxies
    return pace.proxies_for(load.region) if proxied and load.per_proxy_only else 0


def _delay(load: DomainLoad, robots_delay: float, *, per_pair: bool) -> float:
    own = default_delay(load.name) if load.delay is None else load.delay
    delay = max(own, robots_delay) + load.slow_delay
    return max(delay, PAIR_DELAY if per_pair else FASTEST)
