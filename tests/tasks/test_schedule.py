from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.settings import Settings
from forager.tasks.schedule import Completion, complete_tasks, next_interval
from forager.tasks.task import TaskSchedule, parse_every
from support.sql import fetch_value
from tasks.tasks_at_hand import make_domain, make_task

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SETTINGS = Settings()
ADAPTIVE = Settings(adaptive_schedule=True)
TASK = TaskSchedule(1)
lengths = st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=400))


def interval(
    task: TaskSchedule = TASK, settings: Settings = SETTINGS, price_changed: bool | None = None
) -> timedelta:
    return next_interval(task, settings, price_changed=price_changed)[0]


def test_the_nearest_interval_counts() -> None:
    assert interval() == DAY
    assert interval(TaskSchedule(1, domain_frequency=6 * HOUR)) == 6 * HOUR
    assert interval(TaskSchedule(1, HOUR, domain_frequency=6 * HOUR)) == HOUR


def test_adaptive_arithmetic() -> None:
    assert interval(settings=ADAPTIVE, price_changed=True) == DAY / 2
    assert interval(settings=ADAPTIVE, price_changed=False) == DAY * 5 / 4
    assert interval(settings=ADAPTIVE, price_changed=None) == DAY
    adapted = TaskSchedule(1, adapted_frequency=8 * HOUR)
    assert interval(adapted, ADAPTIVE, price_changed=True) == 4 * HOUR
    shortest = TaskSchedule(1, adapted_frequency=HOUR)
    assert interval(shortest, ADAPTIVE, price_changed=True) == HOUR


def test_a_domain_decides_whether_it_adapts() -> None:
    off, on = TaskSchedule(1, adaptive=False), TaskSchedule(1, adaptive=True)
    assert interval(off, ADAPTIVE, price_changed=True) == DAY / 4
    assert interval(on, price_changed=True) == DAY / 2
    adapted = replace(off, adapted_frequency=HOUR)
    assert next_interval(adapted, ADAPTIVE, price_changed=True) == (DAY / 4, None)


def test_a_changed_price_brings_the_next_visit_forward() -> None:
    assert interval(price_changed=True) == DAY / 4
    assert interval(TaskSchedule(1, 2 * HOUR), price_changed=True) == HOUR
    assert interval(TaskSchedule(1, HOUR / 2), price_changed=True) == HOUR / 2
    assert interval(settings=Settings(revisit_changed=False), price_changed=True) == DAY


@given(
    base=lengths,
    bounds=st.tuples(lengths, lengths).map(sorted),
    visits=st.lists(st.sampled_from([True, False, None]), max_size=60),
)
def test_adapted_intervals_stay_within_their_bounds(
    base: timedelta, bounds: list[timedelta], visits: list[bool | None]
) -> None:
    shortest, longest = bounds
    adapted: timedelta | None = None
    for price_changed in visits:
        before = adapted or base
        task = TaskSchedule(1, base, adapted, None, True, shortest, longest)
        now, adapted = next_interval(task, SETTINGS, price_changed=price_changed)
        assert now == adapted
        assert shortest <= now <= longest
        if shortest <= before <= longest:
            assert now <= before if price_changed else now >= before


@given(shortest=st.none() | lengths, longest=st.none() | lengths, changed=st.booleans())
def test_one_bound_of_a_domain_is_kept_whatever_the_settings_say(
    shortest: timedelta | None, longest: timedelta | None, changed: bool
) -> None:
    if shortest is not None and longest is not None:
        longest = None
    task = TaskSchedule(1, adaptive=True, min_frequency=shortest, max_frequency=longest)
    found = interval(task, price_changed=changed)
    assert shortest is None or found >= shortest
    assert longest is None or found <= longest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("30min", 1800),
        ("6h", 21600),
        ("1d", 86400),
        (" 1 W ", 604800),
        ("1.5h", 5400),
    ],
)
def test_intervals_in_words(text: str, seconds: float) -> None:
    assert parse_every(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "6", "h", "-1h", "0s", "99999d", "6 hours", "1e9d", "٣h"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_every(text)


async def test_completed_tasks_come_again(database: Database, settings: Settings) -> None:
    plain = await make_domain(database, "a.example", crawl_frequency=6 * HOUR)
    moving = await make_domain(database, "b.example", adaptive=True)
    own = await make_task(database, plain, status="parsing", crawl_frequency=HOUR, retry_count=2)
    domains = await make_task(database, plain, status="crawling", error_kind="network")
    changed = await make_task(database, moving, status="parsing")
    other = await make_task(database, plain, status="parsing")
    done = [Completion(own), Completion(domains, False), Completion(changed, True)]
    async with database.transaction() as connection:
        await complete_tasks(connection, done, settings=settings)
    for task, expected in ((own, HOUR), (domains, 6 * HOUR), (changed, DAY / 2)):
        found = await fetch_value(
            database,
            """
            SELECT next_crawl_at - completed_at FROM crawl_tasks
             WHERE id = %s AND status = 'completed' AND retry_count = 0 AND error_kind IS NULL
            """,
            task,
        )
        assert found == expected
    query = "SELECT adapted_frequency FROM crawl_tasks WHERE id = %s"
    assert await fetch_value(database, query, changed) == DAY / 2
    assert await fetch_value(database, query, own) is None
    assert (
        await fetch_value(database, "SELECT status FROM crawl_tasks WHERE id = %s", other)
        == "parsing"
    )
