"""Errors and dead letters as people see them, and what they decide."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest

from forager.background import delete_old_history
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.failures.service import ErrorFilter, get_error, group_errors, list_errors
from forager.settings import Settings
from forager.tasks.dead_letters import (
    LetterFilter,
    count_letters,
    drop_letters,
    group_letters,
    list_letters,
    retry_letters,
)
from servers.shop import Shop
from support.databases import (
    Databases,
    administration,
    create_database,
    drop_database,
    with_database,
)
from support.sql import execute
from tasks.working import Tasks, at_work

ALL = LetterFilter()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with Shop().open() as shop:
        yield shop


@pytest.fixture(scope="module")
def failures(
    postgres: str, template: str, shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[int]]]:
    """A database in which three tasks have failed, two gone and one broken; tests get copies."""
    quick = Settings(
        home=tmp_path_factory.mktemp("home"),
        images=False,
        # the page without a price is not rendered first
        browser="none",
        log_level="critical",
        dead_letter_visits=1,
        dead_letter_after=0,
    )
    with administration(postgres) as server:
        name = create_database(server, template)
        yield name, asyncio.run(_fail(with_database(postgres, name), quick, shop))
        drop_database(server, name)


async def _fail(url: str, settings: Settings, shop: Shop) -> list[int]:
    shop.add("c")
    async with Database(url, name="forager test", max_size=8) as database:
        tasks = Tasks(database, settings)
        ids = await tasks.add(
            shop.refuse("a", "404 Not Found"),
            shop.refuse("b", "404 Not Found"),
            shop.break_markup("c"),
            max_retries=0,
        )
        async with at_work(tasks):
            await tasks.all_when(ids, "failed")
    return ids


@pytest.fixture(scope="module")
def databases(postgres: str, failures: tuple[str, list[int]]) -> Iterator[Databases]:
    made = Databases(postgres, failures[0])
    yield made
    made.close()


@pytest.fixture
def failed(failures: tuple[str, list[int]]) -> list[int]:
    return failures[1]


async def test_errors_in_groups_and_one_by_one(tasks: Tasks, shop: Shop, failed: list[int]) -> None:
    groups = (await group_errors(tasks.database, ErrorFilter())).items
    assert [(group.count, group.error_type, group.domain) for group in groups] == [
        (2, "http", shop.host),
        (1, "validation", shop.host),
    ]
    assert groups[0].message == "the server answered 404 Not Found"
    assert groups[0].example_url in {shop.url("a"), shop.url("b")}
    first = await group_errors(tasks.database, ErrorFilter(), limit=1)
    rest = await group_errors(tasks.database, ErrorFilter(), limit=1, cursor=first.next_cursor)
    assert (first.items + rest.items, rest.next_cursor) == (groups, None)

    wanted = ErrorFilter(
        domain=shop.host, error_type="http", since=timedelta(hours=1), message=groups[0].message
    )
    single = (await list_errors(tasks.database, wanted)).items
    assert {row.task_id for row in single} == set(failed[:2])
    assert await get_error(tasks.database, single[0].id) == single[0]
    with pytest.raises(NotFound, match=r"no domain other\.example"):
        await list_errors(tasks.database, ErrorFilter(domain="other.example"))


async def test_invalid_selections_are_rejected(tasks: Tasks) -> None:
    with pytest.raises(InvalidInput, match="no type of error"):
        ErrorFilter(error_type="weather")
    with pytest.raises(InvalidInput, match="no kind of error"):
        LetterFilter(cause="weather")
    with pytest.raises(NotFound):
        await get_error(tasks.database, 2**70)
    with pytest.raises(InvalidInput, match="cursor"):
        await list_letters(tasks.database, ALL, cursor="x")


async def test_a_retried_letter_is_a_new_start(tasks: Tasks, shop: Shop, failed: list[int]) -> None:
    assert await count_letters(tasks.database, ALL) == 3
    groups = await group_letters(tasks.database, LetterFilter(cause="http_client"))
    assert [(group.count, group.error_kind) for group in groups] == [(2, "http_client")]
    for name in "ab":
        shop.add(name)
    assert await retry_letters(tasks.database, LetterFilter(cause="http_client")) == 2
    assert [row.task_id for row in (await list_letters(tasks.database, ALL)).items] == failed[2:]
    waiting = await tasks.get(failed[0])
    assert (waiting.status, waiting.retry_count, waiting.error_kind) == ("pending", 0, None)
    await tasks.schedule()
    async with at_work(tasks):
        await tasks.all_when(failed[:2], "completed")


async def test_a_dropped_letter_leaves_its_task_failed(tasks: Tasks, failed: list[int]) -> None:
    (newest, *_) = (await list_letters(tasks.database, ALL)).items
    assert await drop_letters(tasks.database, LetterFilter(ids=[newest.id])) == 1
    assert await drop_letters(tasks.database, LetterFilter(ids=[newest.id])) == 0
    assert (await tasks.get(newest.task_id)).status == "failed"
    assert await count_letters(tasks.database, ALL) == 2


async def test_only_dead_letters_of_the_selection_are_dropped(
    tasks: Tasks, failed: list[int]
) -> None:
    await execute(tasks.database, "UPDATE domains SET domain_name = 'shop.co.uk'")
    covered = LetterFilter(domain="www.shop.co.uk")
    assert await count_letters(tasks.database, covered) == len(failed)
    for resolve, domain in (
        (drop_letters, "www.shop.co.uk"),
        (drop_letters, "co.uk"),
        (retry_letters, "co.uk"),
    ):
        with pytest.raises(NotFound, match="no domain"):
            await resolve(tasks.database, LetterFilter(domain=domain))
    assert await drop_letters(tasks.database, LetterFilter(domain="shop.co.uk")) == len(failed)


async def test_a_task_that_is_completed_after_all_needs_no_decision(
    tasks: Tasks, shop: Shop, failed: list[int]
) -> None:
    shop.add("a")
    await tasks.sql("UPDATE crawl_tasks SET status = 'queued' WHERE id = %s", failed[0])
    async with at_work(tasks):
        await tasks.when(failed[0], "completed")
    assert await count_letters(tasks.database, ALL) == 2


async def test_history_goes_by_age(tasks: Tasks, failed: list[int]) -> None:
    await drop_letters(tasks.database, LetterFilter(cause="validation"))
    delete = partial(delete_old_history, tasks.database, tasks.settings, chunk=2)
    assert await delete() == 0
    for table, time in (
        ("task_attempts", "finished_at"),
        ("error_logs", "occurred_at"),
        ("extractions", "created_at"),
        ("dead_letters", "died_at"),
    ):
        await tasks.sql(f"UPDATE {table} SET {time} = now() - interval '91 days'")
    await tasks.sql("UPDATE dead_letters SET resolved_at = died_at WHERE resolved_at IS NOT NULL")
    await tasks.sql(
        """
        INSERT INTO parse_rates (domain_id, parser, parser_version, role, day)
        SELECT id, 'generic', '1', 'active', current_date - 93 - age
          FROM domains, generate_series(1, 5) age
        """
    )
    # three downloads and a parse, three errors, one extraction, one letter that was settled
    assert await delete() == 4 + 3 + 1 + 1 + 5
    assert await count_letters(tasks.database, ALL) == 2
