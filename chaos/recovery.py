"""The recovery time after each fault, and the number of pages fetched again."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chaos.monkey import Done
from chaos.site import FLAKY_TIMES, Site
from chaos.truth import Kind, PageTruth
from chaos.user import RETRIES

Commit = tuple[int, datetime, UUID | None, str]


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds from the end of a fault to the next commit of the affected jobs, or None."""

    kind: str
    seconds: float | None


def recoveries(done: Sequence[Done], commits: Sequence[Commit]) -> list[Recovery]:
    """Commits are ordered by time. A paused or finished job has nothing to recover."""
    times: dict[UUID | None, list[datetime]] = {None: [commit[1] for commit in commits]}
    for _, at, job_id, _ in commits:
        if job_id is not None:
            times.setdefault(job_id, []).append(at)
    return [Recovery(each.kind, _seconds(each, times)) for each in done]


def _seconds(done: Done, times: dict[UUID | None, list[datetime]]) -> float | None:
    """The time until all affected jobs committed; if any job may be affected, until one did."""
    waits = []
    for job_id in done.jobs or (None,):
        known = times.get(job_id, [])
        place = bisect_right(known, done.over_at)
        if place < len(known):
            waits.append((known[place] - done.over_at).total_seconds())
    return max(waits, default=None)


def refetched(site: Site) -> Counter[str]:
    """Requests for document pages in excess of an undisturbed crawl, by the agent of the crawl."""
    excess: Counter[str] = Counter()
    for host in site.docs:
        # following a redirect requests its target
        hops = Counter(page.moved_to for page in host.pages.values() if page.moved_to)
        for (agent, target), times in list(host.asked.items()):
            excess[agent] += max(0, times - _needed(host.pages[target]) - hops[target])
    return excess


def _needed(page: PageTruth) -> int:
    if page.kind is Kind.FLAKY:
        return FLAKY_TIMES + 1
    return RETRIES + 1 if page.kind in (Kind.BROKEN, Kind.UNAVAILABLE) else 1


def median(values: Iterable[float]) -> float | None:
    known = sorted(values)
    return known[len(known) // 2] if known else None
