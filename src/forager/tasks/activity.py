"""What tasks did in the last minutes, and what waits: the overview's numbers of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from forager.db.database import Database
from forager.tasks.store import activity as store
from forager.tasks.store.activity import Waited, Waiting

# of each minute: attempts that are read, and tasks that are looked up
SAMPLE = 200
SAMPLED_TASKS = 10
# of each state, and of errors: what is counted at most
MOST_WAITING = 50_000
MOST_ERRORS = 20_000
# the scheduler ticks every second
SILENT_AFTER = timedelta(minutes=1)
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
class TasksNow:
    """How tasks stand at this moment; cheap to read, however many there are."""

    any_tasks: bool
    # what holds all tasks, if something does
    hold: str | None
    no_scheduler: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskActivity:
    """One number for each minute, the oldest first and the present one last."""

    attempts: list[float]
    failed: list[float]
    backlog: list[float]
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
    control = await database.run(store.select_control)
    no_scheduler = is_silent(control.ticked_at, control.now)
    return TasksNow(any_tasks=control.any_tasks, hold=control.hold, no_scheduler=no_scheduler)


async def task_activity(database: Database, *, minutes: int = 60) -> TaskActivity:
    """Read a bounded part of the tables; what is larger is estimated, or said to be cut."""
    async with database.transaction() as connection:
        attempts = await store.sample_attempts(connection, minutes=minutes, sample=SAMPLE)
        waits = await store.sample_waits(connection, minutes=minutes, sample=SAMPLED_TASKS)
        found = await store.count_waiting(connection, minutes=minutes, most=MOST_WAITING)
        errors = await store.count_error_kinds(connection, minutes=minutes, most=MOST_ERRORS)
    return TaskActivity(
        attempts=_by_minute([(each.ago, each.ended) for each in attempts], minutes),
        failed=_by_minute([(each.ago, each.failed) for each in attempts], minutes),
        backlog=backlog_over_time(
            {each.ago: each.settled for each in attempts},
            waits,
            [each for each in found if each.state != LATER],
            minutes,
        ),
        is_estimated=any(each.is_estimated for each in attempts),
        waiting=[_in_state(state, found) for state in STATES],
        errors=errors,
        errors_are_cut=sum(count for _, count in errors) >= MOST_ERRORS,
    )


def backlog_over_time(
    settled: Mapping[int, float],
    waits: Sequence[Waited],
    waiting: Sequence[Waiting],
    minutes: int,
) -> list[float]:
    """How many tasks waited at the end of each minute, the oldest first.

    It is not stored; it follows from what waits now, what was settled in each minute, and
    since when each of both had been due.
    """
    came = _counts(
        [
            *((each.due_ago, each.share * settled.get(each.ago, 0.0)) for each in waits),
            *((each.due_ago, float(each.count)) for each in waiting),
        ]
    )
    levels, level = [], float(sum(each.count for each in waiting))
    for ago in range(minutes):
        levels.append(max(0.0, round(level)))
        # before this minute, what came in it was not there yet, and what it settled still was
        level += settled.get(ago, 0.0) - came.get(ago, 0.0)
    return levels[::-1]


def _counts(pairs: Sequence[tuple[int, float]]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for ago, count in pairs:
        sums[ago] = sums.get(ago, 0.0) + count
    return sums


def _by_minute(pairs: Sequence[tuple[int, float]], minutes: int) -> list[float]:
    sums = _counts(pairs)
    return [round(sums.get(ago, 0.0)) for ago in reversed(range(minutes))]


def _in_state(state: str, waiting: Sequence[Waiting]) -> WaitingTasks:
    found = [each for each in waiting if each.state == state]
    # pending ones that are not due yet were looked at as well
    looked_at = found + [each for each in waiting if state == "due" and each.state == LATER]
    return WaitingTasks(
        state,
        sum(each.count for each in found),
        min((each.oldest for each in found), default=None),
        is_cut=sum(each.count for each in looked_at) >= MOST_WAITING,
    )


def is_silent(ticked_at: datetime | None, now: datetime) -> bool:
    """Whether no scheduler runs, by its last tick."""
    return ticked_at is None or now - ticked_at > SILENT_AFTER
