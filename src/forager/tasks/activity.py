"""Activity of tasks in the last minutes and their backlog, for the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from forager.db.database import Database
from forager.tasks.store import activity as store
from forager.tasks.store.activity import WaitingCount
from forager.tasks.task import TasksNow

__all__ = ["TasksNow"]

# attempts that are read per minute
SAMPLE = 200
# rows that are counted at most: tasks of each state, and errors
MOST_WAITING = 50_000
MOST_ERRORS = 20_000
STATES: Final = ("due", "queued", "downloaded")
LATER = "later"


@dataclass(frozen=True, slots=True)
class WaitingTasks:
    """Tasks in one state; `is_cut`: the count is a lower bound."""

    state: str
    count: int
    oldest: datetime | None
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskActivity:
    """One number per minute, the oldest first."""

    attempts: list[float]
    failed: list[float]
    is_estimated: bool
    waiting: list[WaitingTasks]
    errors: list[tuple[str, int]]
    errors_are_cut: bool

    @property
    def total_waiting(self) -> int:
        return sum(each.count for each in self.waiting)

    @property
    def is_cut(self) -> bool:
        return any(each.is_cut for each in self.waiting)

    @property
    def oldest(self) -> datetime | None:
        return min((each.oldest for each in self.waiting if each.oldest), default=None)


async def tasks_now(database: Database) -> TasksNow:
    return await database.run(store.select_now)


async def task_activity(database: Database, *, minutes: int = 60) -> TaskActivity:
    """Activity from a bounded part of the tables; larger numbers are estimated or cut."""
    async with database.transaction() as connection:
        attempts = await store.sample_attempts(connection, minutes=minutes, sample=SAMPLE)
        found = await store.count_waiting(connection, most=MOST_WAITING)
        errors = await store.count_error_kinds(connection, minutes=minutes, most=MOST_ERRORS)
    return TaskActivity(
        attempts=_by_minute([(each.ago, each.ended) for each in attempts], minutes),
        failed=_by_minute([(each.ago, each.failed) for each in attempts], minutes),
        is_estimated=any(each.is_estimated for each in attempts),
        waiting=[_in_state(state, found) for state in STATES],
        errors=errors,
        errors_are_cut=sum(count for _, count in errors) >= MOST_ERRORS,
    )


def _counts(pairs: Sequence[tuple[int, float]]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for ago, count in pairs:
        sums[ago] = sums.get(ago, 0.0) + count
    return sums


def _by_minute(pairs: Sequence[tuple[int, float]], minutes: int) -> list[float]:
    sums = _counts(pairs)
    return [round(sums.get(ago, 0.0)) for ago in reversed(range(minutes))]


def _in_state(state: str, waiting: Sequence[WaitingCount]) -> WaitingTasks:
    found = [each for each in waiting if each.state == state]
    # the limit includes pending tasks that are not due yet
    looked_at = found + [each for each in waiting if state == "due" and each.state == LATER]
    return WaitingTasks(
        state,
        sum(each.count for each in found),
        min((each.oldest for each in found), default=None),
        is_cut=sum(each.count for each in looked_at) >= MOST_WAITING,
    )
