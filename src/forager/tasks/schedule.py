"""The next crawl of a task: by its interval, its domain's or the default, adapted if enabled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from forager.db.database import Connection
from forager.products.store.offers import select_offer_tasks
from forager.settings import Settings
from forager.tasks.store import stages as store

# a visit that a change brings forward does not come sooner than this
SOONEST = timedelta(hours=1)
# other offers of a product that one change brings forward
REVISITED_OFFERS = 20


@dataclass(frozen=True, slots=True)
class DomainSchedule:
    """What a domain says about its tasks; None leaves it to the settings."""

    every: timedelta | None = None
    adaptive: bool | None = None
    shortest: timedelta | None = None
    longest: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A task that a stage has done. `price_changed` None: there was nothing to compare with."""

    task_id: int
    price_changed: bool | None = None


def next_interval(
    *,
    asked: timedelta | None,
    domain: DomainSchedule,
    settings: Settings,
    adapted: timedelta | None,
    price_changed: bool | None,
) -> tuple[timedelta, timedelta | None]:
    """How long until the next visit, and what to remember as adapted (None: nothing)."""
    base = asked or domain.every or timedelta(seconds=settings.recrawl_every)
    adaptive = settings.adaptive_schedule if domain.adaptive is None else domain.adaptive
    if not adaptive:
        soon = settings.revisit_changed and price_changed
        return (max(base / 4, min(base, SOONEST)) if soon else base), None
    shortest, longest = _bounds(domain, settings)
    interval = min(max(_adapt(adapted or base, price_changed), shortest), longest)
    return interval, interval


def _adapt(interval: timedelta, price_changed: bool | None) -> timedelta:
    if price_changed is None:
        return interval
    return interval / 2 if price_changed else interval * 5 / 4


def _bounds(domain: DomainSchedule, settings: Settings) -> tuple[timedelta, timedelta]:
    """The domain's bounds; where it has only one, that one takes precedence over the setting."""
    shortest = domain.shortest or timedelta(seconds=settings.adaptive_min)
    longest = domain.longest or timedelta(seconds=settings.adaptive_max)
    if domain.shortest is None:
        shortest = min(shortest, longest)
    return shortest, max(shortest, longest)


async def intervals_of(
    connection: Connection, ids: Sequence[int], settings: Settings
) -> dict[int, timedelta]:
    """The current interval of tasks, by ID."""
    known = await store.select_intervals(connection, ids)
    return {task.id: _next(task, settings, price_changed=None)[0] for task in known}


def _next(
    task: store.Intervals, settings: Settings, *, price_changed: bool | None
) -> tuple[timedelta, timedelta | None]:
    return next_interval(
        asked=task.crawl_frequency,
        domain=DomainSchedule(
            task.domain_frequency, task.adaptive, task.min_frequency, task.max_frequency
        ),
        settings=settings,
        adapted=task.adapted_frequency,
        price_changed=price_changed,
    )


async def complete_tasks(
    connection: Connection, completions: Sequence[Completion], *, settings: Settings
) -> None:
    """Settle tasks whose rows the caller has locked, and set when each comes again."""
    changed = {done.task_id: done.price_changed for done in completions}
    known = await store.select_intervals(connection, list(changed))
    intervals = [_next(task, settings, price_changed=changed[task.id]) for task in known]
    await store.complete(connection, [task.id for task in known], intervals)


async def revisit_offers(
    connection: Connection, product_ids: Sequence[int], *, settings: Settings
) -> None:
    """Bring visits of other offers of these products forward, because a price has changed."""
    if product_ids and settings.revisit_changed:
        tasks = await select_offer_tasks(connection, product_ids, limit=REVISITED_OFFERS)
        await store.bring_forward(connection, tasks, after=SOONEST)
