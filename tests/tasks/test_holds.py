from __future__ import annotations

from datetime import timedelta

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.scheduler import Scheduler
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks
from forager.tasks.task import Hold
from support.sql import execute, fetch_value
from tasks.tasks_at_hand import in_state, make_domain, make_task, statuses

HOUR = timedelta(hours=1)
STATES = [status.value for status in TaskStatus]


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    return Tasks(database, settings)


@pytest.fixture
def holds(database: Database) -> Holds:
    return Holds(database)


async def one_of_each(database: Database, name: str = "a.example") -> dict[str, int]:
    domain = await make_domain(database, name)
    return {status: await make_task(database, domain, status=status) for status in STATES}


def scopes(of_each: dict[str, int]) -> list[Selection]:
    everything = Selection(ids=tuple(of_each.values()))
    return [Selection(), Selection(domain="www.a.example"), everything]


@pytest.mark.parametrize("scope", range(3))
async def test_pause_lets_work_finish_and_stop_withdraws_it(
    database: Database, holds: Holds, scope: int
) -> None:
    of_each = await one_of_each(database)
    chosen = scopes(of_each)[scope]
    leases = "SELECT array_agg(lease ORDER BY id) FROM crawl_tasks"
    paused = await holds.pause(chosen)
    assert paused.withdrawn == 1
    expected = {task: status for status, task in of_each.items()} | {of_each["queued"]: "pending"}
    assert await statuses(database) == expected
    stopped = await holds.stop(chosen)
    assert stopped.withdrawn == 2
    expected |= {of_each["crawling"]: "pending", of_each["parsing"]: "downloaded"}
    assert await statuses(database) == expected
    assert await fetch_value(database, leases) == [0, 1, 1, 0, 1, 0, 0]
    withdrawn = "SELECT count(*) FROM task_attempts WHERE outcome = 'withdrawn'"
    assert await fetch_value(database, withdrawn) == 2
    resumed = await holds.resume(chosen)
    assert (resumed.all_hold, resumed.held_domains, resumed.held_tasks) == (None, 0, 0)


async def test_a_hold_on_one_thing_leaves_the_others(
    database: Database, holds: Holds, settings: Settings
) -> None:
    a, b = await make_domain(database, "a.example"), await make_domain(database, "b.example")
    in_a, in_b, held = [await make_task(database, domain) for domain in (a, b, b)]
    await holds.pause(Selection(domain="a.example"))
    await holds.stop(Selection(ids=(held,)))
    after = await holds.resume(Selection())
    assert (after.changed, after.held_domains, after.held_tasks) == (0, 1, 1)
    assert (await Scheduler(database, settings).run_once()).queued == 1
    assert await in_state(database, "queued") == [in_b]
    await holds.resume(Selection(domain="a.example"))
    await holds.resume(Selection(url="*/*"))
    await Scheduler(database, settings).run_once()
    assert set(await in_state(database, "queued")) == {in_a, in_b, held}


async def test_a_tick_that_races_a_hold_is_put_right_by_the_next(
    database: Database, holds: Holds, settings: Settings
) -> None:
    task = await make_task(database, await make_domain(database, "a.example"))
    await holds.pause(Selection())
    await execute(database, "UPDATE crawl_tasks SET status = 'queued'")
    assert (await Scheduler(database, settings).run_once()).withdrawn == 1
    assert await in_state(database, "pending") == [task]


async def test_large_selections_are_held_in_batches(database: Database, holds: Holds) -> None:
    domain = await make_domain(database, "a.example")
    await execute(
        database,
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash)
        SELECT %s, 'https://a.example/' || n, sha256(n::text::bytea)
          FROM generate_series(1, 5000) AS n
        """,
        domain,
    )
    assert (await holds.pause(Selection(url="*a.ex*/1*"))).changed == 1111
    assert (await holds.resume(Selection(on_hold=True))).changed == 1111


# --- recrawl ----------------------------------------------------------------------------------


async def test_recrawl_is_first_in_its_line(
    database: Database, tasks: Tasks, settings: Settings
) -> None:
    domain = await make_domain(database, "a.example", crawl_delay_seconds=60)
    await make_task(database, domain, scheduled_in=-86400, popularity=9)
    wanted = await make_task(database, domain, status="completed", next_crawl_in=86400)
    done = await tasks.recrawl(Selection(ids=(wanted,)))
    assert (done.found, done.due, done.on_hold, done.under_way) == (1, 1, 0, 0)
    await Scheduler(database, settings).run_once()
    assert await in_state(database, "queued") == [wanted]


async def test_recrawl_of_every_state(database: Database, tasks: Tasks, holds: Holds) -> None:
    of_each = await one_of_each(database)
    await execute(database, "UPDATE crawl_tasks SET retry_count = 2")
    await execute(
        database,
        """
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts)
        SELECT id, domain_id, url, 'download', 'network', 'network', 'x', 'x', 4
          FROM crawl_tasks WHERE status = 'failed'
        """,
    )
    await holds.pause(Selection(ids=(of_each["completed"],)))
    done = await tasks.recrawl(Selection())
    assert (done.found, done.due, done.on_hold, done.under_way) == (7, 3, 1, 4)
    moved = [of_each[status] for status in ("pending", "completed", "failed")]
    assert await in_state(database, "pending") == sorted(moved)
    retries = "SELECT sum(retry_count) FROM crawl_tasks WHERE status = 'pending'"
    assert await fetch_value(database, retries) == 0
    assert await fetch_value(database, "SELECT resolution FROM dead_letters") == "retried"


# --- looking ----------------------------------------------------------------------------------


async def test_lists_by_pages_and_filters(database: Database, tasks: Tasks) -> None:
    of_each = await one_of_each(database)
    other = await one_of_each(database, "b.example")
    await execute(database, "UPDATE crawl_tasks SET hold = 'paused' WHERE id = %s", other["failed"])
    page = await tasks.list_tasks(limit=10)
    rest = await tasks.list_tasks(limit=10, cursor=page.next_cursor)
    assert [task.id for task in page.items + rest.items] == sorted(
        [*of_each.values(), *other.values()], reverse=True
    )
    assert rest.next_cursor is None
    (held,) = (await tasks.list_tasks(Selection(on_hold=True))).items
    assert (held.id, held.hold, held.status) == (other["failed"], Hold.PAUSED, TaskStatus.FAILED)
    due = (await tasks.list_tasks(Selection(domain="a.example", due=True))).items
    assert [task.id for task in due] == [of_each["pending"]]
    both = Selection(statuses=(TaskStatus.QUEUED, TaskStatus.PARSING), domain="b.example")
    assert [task.id for task in (await tasks.list_tasks(both)).items] == [
        other["parsing"],
        other["queued"],
    ]
    part = str(held.url[-12:])
    for url, found in (
        (held.url, [held.id]),
        (f"*{part}", [held.id]),
        (part, []),
        (f"{part}*", []),
    ):
        assert [one.id for one in (await tasks.list_tasks(Selection(url=url))).items] == found
    assert (await tasks.list_tasks(Selection(url="100%"))).items == []


@pytest.mark.parametrize("cursor", ["x", "-1", "9" * 30, "", "٣"])
async def test_a_cursor_that_no_list_gave(tasks: Tasks, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await tasks.list_tasks(cursor=cursor)


async def why(tasks: Tasks, task: int) -> str:
    return str((await tasks.report(str(task))).why)


async def test_why_a_task_does_not_run(database: Database, tasks: Tasks, holds: Holds) -> None:
    of_each = await one_of_each(database)
    pending = of_each["pending"]
    assert "no scheduler runs" in await why(tasks, pending)
    await execute(database, "UPDATE task_control SET ticked_at = now()")
    assert "budget" in await why(tasks, pending)
    assert "being downloaded" in await why(tasks, of_each["crawling"])
    assert "being parsed" in await why(tasks, of_each["parsing"])
    assert (await why(tasks, of_each["completed"])).endswith("next visit")
    await execute(
        database,
        "UPDATE crawl_tasks SET completed_at = now(), next_crawl_at = now() + interval '6 hours'"
        " WHERE status = 'completed'",
    )
    assert "sooner: its price changed" in await why(tasks, of_each["completed"])
    assert "recrawl" in await why(tasks, of_each["failed"])
    assert "workers" in await why(tasks, of_each["queued"])
    await execute(database, "UPDATE domains SET blocked_until = now() + interval '1 hour'")
    assert "left alone" in await why(tasks, pending)
    await execute(database, "UPDATE domains SET is_active = false")
    assert "disabled" in await why(tasks, pending)
    for chosen, words in zip(
        (Selection(ids=(pending,)), Selection(domain="a.example"), Selection()),
        ("it is paused", "its domain is paused", "all tasks are paused"),
        strict=True,
    ):
        await holds.pause(chosen)
        assert words in await why(tasks, pending)


async def test_a_report_shows_attempts_and_the_next_time(database: Database, tasks: Tasks) -> None:
    domain = await make_domain(database, "a.example", crawl_frequency=6 * HOUR)
    task = await make_task(database, domain, scheduled_in=600, retry_count=1)
    await execute(
        database,
        """
        INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, http_status)
        VALUES (%s, %s, 'download', 1, 1, 'retry', 503)
        """,
        task,
        domain,
    )
    report = await tasks.report(str(task))
    assert report.every == 6 * HOUR
    assert report.next_at == report.task.scheduled_at
    assert report.why == "waits before retry 1 of 3"
    assert [attempt.http_status for attempt in report.attempts] == [503]
    assert (await tasks.report(report.task.url)).task == report.task


async def test_terms_and_removal(database: Database, tasks: Tasks) -> None:
    domain = await make_domain(database, "a.example", crawl_frequency=6 * HOUR)
    task = await make_task(database, domain, status="completed", completed_in=0, next_crawl_in=9)
    chosen = Selection(ids=(task,))
    following = "SELECT next_crawl_at - completed_at FROM crawl_tasks"
    assert await tasks.set_terms(chosen, every=HOUR) == 1
    assert await fetch_value(database, following) == HOUR
    assert await tasks.set_terms(chosen, priority=9) == 1
    assert await fetch_value(database, following) == HOUR
    assert await tasks.set_terms(chosen, default_every=True) == 1
    assert await fetch_value(database, following) == 6 * HOUR
    assert await fetch_value(database, "SELECT crawl_frequency FROM crawl_tasks") is None
    assert await fetch_value(database, "SELECT priority FROM crawl_tasks") == 1
    assert await tasks.remove(chosen) == 1
    for missing in (str(task), "https://nowhere.example/", "0", "x"):
        with pytest.raises(NotFound):
            await tasks.get(missing)
    with pytest.raises(NotFound):
        await tasks.remove(chosen)
    with pytest.raises(NotFound):
        await tasks.list_tasks(Selection(domain="nowhere.example"))


async def test_stats(database: Database, tasks: Tasks) -> None:
    await one_of_each(database)
    stats = await tasks.stats()
    assert set(stats.counts.values()) == {1}
    (backlog,) = stats.backlog
    assert (backlog.domain, backlog.due, backlog.under_way) == ("a.example", 1, 4)
    assert stats.oldest_due == backlog.oldest_due


# --- which domains a host means --------------------------------------------------------------


@pytest.mark.parametrize("name", ["com", "co.uk", "github.io"])
async def test_a_public_suffix_does_not_mean_everything_below_it(
    database: Database, tasks: Tasks, holds: Holds, name: str
) -> None:
    await make_task(database, await make_domain(database, f"shop.{name}"))
    everything = Selection(domain=name)
    for act in (tasks.list_tasks, tasks.remove, tasks.recrawl, holds.stop, holds.pause):
        with pytest.raises(NotFound, match=f"no domain {name}"):
            await act(everything)
    await make_domain(database, name)
    assert len((await tasks.list_tasks(everything)).items) == 1


async def test_a_private_name_covers_its_subdomains(database: Database, tasks: Tasks) -> None:
    await make_task(database, await make_domain(database, "shop.intern"))
    assert len((await tasks.list_tasks(Selection(domain="intern"))).items) == 1


async def test_only_what_is_named_is_removed(database: Database, tasks: Tasks) -> None:
    for name in ("shop.example", "m.shop.example", "other.example"):
        await make_task(database, await make_domain(database, name))
    assert len((await tasks.list_tasks(Selection(domain="www.shop.example"))).items) == 1
    with pytest.raises(NotFound, match=r"no domain www\.shop\.example"):
        await tasks.remove(Selection(domain="www.shop.example"))
    assert await tasks.remove(Selection(domain="shop.example")) == 2
