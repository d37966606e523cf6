"""The next visit of a task: by its own interval, that of its domain or the default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from forager.db.database import Connection
from forager.products.offers import select_offer_tasks
from forager.settings import Settings
from forager.tasks.store import stages as store
from forager.tasks.task import TaskSchedule

# the shortest interval of a visit that a changed price brings forward
SOONEST = timedelta(hours=1)
REVISITED_OFFERS = 20


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed task. `price_changed` None: there was no earlier price."""

    task_id: int
    price_changed: bool | None = None


def next_interval(
    task: TaskSchedule, settings: Settings, *, price_changed: bool | None
) -> tuple[timedelta, timedelta | None]:
    """The time until the next visit, and the adapted interval to store (None: not adaptive)."""
    default = timedelta(seconds=settings.recrawl_every)
    base = task.crawl_frequency or task.domain_frequency or default
    adaptive = settings.adaptive_schedule if task.adaptive is None else task.adaptive
    if not adaptive:
        soon = settings.revisit_changed and price_changed
        return (interval_after_change(base) if soon else base), None
    shortest, longest = _bounds(task, settings)
    adapted = _adapt(task.adapted_frequency or base, price_changed)
    interval = min(max(adapted, shortest), longest)
    return interval, interval


def interval_after_change(base: timedelta) -> timedelta:
    """The interval of a page whose price has just changed."""
    return max(base / 4, min(base, SOONEST))


def _adapt(interval: timedelta, price_changed: bool | None) -> timedelta:
    if price_changed is None:
        return interval
    return interval / 2 if price_changed else interval * 5 / 4


def _bounds(task: TaskSchedule, settings: Settings) -> tuple[timedelta, timedelta]:
    """The bounds of the domain; a single one takes precedence over the other of the settings."""
    shortest = task.min_frequency or timedelta(seconds=settings.adaptive_min)
    longest = task.max_frequency or timedelta(seconds=settings.adaptive_max)
    if task.min_frequency is None:
        shortest = min(shortest, longest)
    return shortest, max(shortest, longest)


async def intervals_of(
    connection: Connection, ids: Sequence[int], settings: Settings
) -> dict[int, timedelta]:
    """The intervals of tasks, without a visit."""
    known = await store.select_intervals(connection, ids)
    return {task.id: next_interval(task, settings, price_changed=None)[0] for task in known}


async def complete_tasks(
    connection: Connection, completions: Sequence[Completion], *, settings: Settings
) -> None:
    """Complete tasks whose rows the caller has locked, and schedule their next visits."""
    changed = {done.task_id: done.price_changed for done in completions}
    known = await store.select_intervals(connection, list(changed))
    intervals = [next_interval(task, settings, price_changed=changed[task.id]) for task in known]
    await store.complete(connection, [task.id for task in known], intervals)


async def revisit_offers(
    connection: Connection, product_ids: Sequence[int], *, settings: Settings
) -> None:
    """Bring visits of other offers of these products forward after a price change."""
    if product_ids and settings.revisit_changed:
        tasks = await select_offer_tasks(connection, product_ids, limit=REVISITED_OFFERS)
        await store.bring_forward(connection, tasks, after=SOONEST)
