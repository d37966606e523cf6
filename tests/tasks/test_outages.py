"""Outages: what ends tracking and what does not, and results that a domain's alarm holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from forager.db.ids import new_id
from forager.errors import ErrorKind, InvalidInput, NotFound
from forager.extract.product.record import Product
from forager.parsers.pattern import GENERIC_VERSION
from forager.products.service import list_products
from forager.settings import Settings
from forager.tasks.alarms import Decision, ReadName, decide_alarm, hold_same_pages, list_alarms
from forager.tasks.causes import Cause
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks as TaskService
from forager.tasks.stages.attempt import Attempt, HeldTask, Outcome, Stage, StageOfWorker
from forager.tasks.stages.settle import settle
from products.product_shop import Shop, lamp
from tasks.working import Tasks

PARSER = StageOfWorker(new_id(), Stage.PARSE)
WORKER = StageOfWorker(new_id(), Stage.DOWNLOAD)


class Market:
    """Known products of one shop, and visits of them that end as a test says."""

    def __init__(self, tasks: Tasks) -> None:
        quick = {
            "dead_letter_visits": 3, "dead_letter_after": 86400.0,
            "gone_visits": 2, "gone_after": 3600.0,
        }  # fmt: skip
        self.tasks = tasks
        self.settings = Settings(**(tasks.settings.model_dump() | quick))
        self.shop = Shop(tasks.database, self.settings)

    async def open(self, count: int) -> list[int]:
        await self.shop.open()
        await self.shop.stock({f"p{n}": lamp(str(10 + n)) for n in range(count)})
        ids = [await self.shop.task(f"p{n}") for n in range(count)]
        version = f"generic {GENERIC_VERSION}"
        await self.tasks.sql("UPDATE crawl_tasks SET parser_version = %s", version)
        return ids

    async def visit(
        self,
        ids: Sequence[int],
        status: int | None = 404,
        kind: ErrorKind = ErrorKind.HTTP_CLIENT,
        *,
        outcome: Outcome = Outcome.FAILED,
        permanent: bool = False,
    ) -> list[Outcome]:
        """Visits without retries that ended like this, in one commit."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET status = 'crawling', worker_id = %s WHERE id = ANY(%s)",
            WORKER.worker_id,
            list(ids),
        )
        ok = status == 200
        attempts = [
            Attempt(
                task=await self.held(id_),
                outcome=Outcome.OK if ok
                else Outcome.HELD if kind is ErrorKind.BLOCKED else outcome,
                cause=None if ok else Cause(kind, f"answered {status}", permanent),
                http_status=status,
            )
            for id_ in ids
        ]  # fmt: skip
        async with self.tasks.database.transaction() as connection:
            settled = await settle(connection, WORKER, attempts, self.settings)
        return [attempt.outcome for attempt in settled]

    async def read(self, names: Sequence[ReadName]) -> list[Outcome]:
        """Visits that found these names, in one commit; returns how the doubted ones ended."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET status = 'parsing', worker_id = %s WHERE id = ANY(%s)",
            PARSER.worker_id,
            [each.task.id for each in names],
        )
        async with self.tasks.database.transaction() as connection:
            doubts = await hold_same_pages(connection, names)
            attempts = [
                Attempt(
                    task=each.task, outcome=doubts[each.task.id][0], cause=doubts[each.task.id][1]
                )
                for each in names
                if each.task.id in doubts
            ]
            settled = await settle(connection, PARSER, attempts, self.settings)
        return [attempt.outcome for attempt in settled]

    async def held(self, task_id: int) -> HeldTask:
        rows = await self.tasks.sql(
            "SELECT lease, domain_id, url, url_hash, parser_version FROM crawl_tasks WHERE id = %s",
            task_id,
        )
        lease, domain_id, url, url_hash, version = rows[0]
        return HeldTask(
            id=task_id, lease=lease, domain_id=domain_id, url=url, url_hash=url_hash,
            retry_count=0, max_retries=0, etag=None, last_modified=None, parser_version=version,
            segment=None, segment_offset=None, segment_length=None, domain_name=self.shop.host,
            use_proxies=None, allow_private=True,
        )  # fmt: skip

    async def later(self, hours: float) -> None:
        """As if time had passed since everything that happened."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET failing_since = failing_since - %s * interval '1 hour'", hours
        )
        await self.tasks.sql(
            "UPDATE task_attempts SET finished_at = finished_at - %s * interval '1 hour'", hours
        )

    async def state(self, task_id: int) -> tuple[object, ...]:
        rows = await self.tasks.sql(
            "SELECT status, failed_visits, error_kind, scheduled_at > now() + interval '20 hours'"
            " FROM crawl_tasks WHERE id = %s",
            task_id,
        )
        return tuple(rows[0])

    async def availability(self, task_id: int) -> str:
        return str((await self.tasks.product(task_id))[3])

    async def events(self) -> list[str]:
        rows = await self.tasks.sql("SELECT kind FROM catalog_events ORDER BY id")
        return [row[0] for row in rows if not row[0].startswith("product.added")]


@pytest.fixture
def market(tasks: Tasks) -> Market:
    return Market(tasks)


async def test_an_outage_returns_a_task_to_its_interval(market: Market) -> None:
    [task] = await market.open(1)
    assert await market.visit([task], None, ErrorKind.TIMEOUT) == [Outcome.MISSED]
    assert await market.state(task) == ("pending", 1, "timeout", True)
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [Outcome.MISSED]
    # often enough, but not for long enough
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [Outcome.MISSED]
    await market.later(hours=25)
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [Outcome.FAILED]
    assert await market.state(task) == ("failed", 4, "http_server", True)
    assert await market.availability(task) == "in_stock"


async def test_a_page_that_never_existed_is_a_dead_letter_at_once(market: Market) -> None:
    [task] = await market.open(1)
    await market.tasks.sql("UPDATE crawl_tasks SET parser_version = NULL")
    await market.tasks.sql("UPDATE products SET crawl_task_id = NULL")
    assert await market.visit([task]) == [Outcome.FAILED]


async def test_discontinued_needs_several_visits_over_time(market: Market) -> None:
    [task] = await market.open(1)
    assert await market.visit([task]) == [Outcome.MISSED]
    [listed] = (await list_products(market.tasks.database)).items
    assert listed.failing_since is not None, "it is shown, before it is discontinued"
    await market.later(hours=2)
    # something else in between starts the count again
    await market.visit([task], 500, ErrorKind.HTTP_SERVER)
    await market.visit([task])
    assert await market.availability(task) == "in_stock"
    await market.later(hours=2)
    await market.visit([task], 410)
    assert await market.availability(task) == "discontinued"
    assert await market.events() == ["product.availability_changed"]
    # and the same page makes it available again
    await market.shop.visit("p0", lamp("10"))
    assert await market.availability(task) == "in_stock"


async def test_a_domain_whose_pages_are_all_gone_holds_its_results(market: Market) -> None:
    ids = await market.open(14)
    assert set(await market.visit(ids[:9])) == {Outcome.MISSED}
    assert await list_alarms(market.tasks.database) == []
    # the batch that raises the alarm is held as well
    assert set(await market.visit(ids[9:])) == {Outcome.HELD}
    [alarm] = await list_alarms(market.tasks.database)
    assert (alarm.domain, alarm.reason) == (market.shop.host, "gone")
    assert await market.events() == ["domain.alarm"]
    slowed = await market.tasks.sql("SELECT blocked_until > now() FROM domains")
    assert slowed == [(True,)]
    await market.later(hours=2)
    await market.visit(ids[9:])
    assert {await market.availability(id_) for id_ in ids} == {"in_stock"}
    # the domain recovers by itself
    await market.visit(ids, 200)
    assert await list_alarms(market.tasks.database) == []
    assert await market.events() == ["domain.alarm", "domain.recovered"]


async def test_an_alarm_does_not_end_with_visits_without_a_response(market: Market) -> None:
    ids = await market.open(12)
    await market.visit(ids)
    for _ in range(2):
        await market.visit(ids, None, ErrorKind.TIMEOUT)
    assert [alarm.reason for alarm in await list_alarms(market.tasks.database)] == ["gone"]


async def test_first_attempts_raise_the_alarm_and_its_decision_applies_to_all_missing_pages(
    market: Market,
) -> None:
    ids = await market.open(14)
    assert set(await market.visit(ids[:9], outcome=Outcome.RETRY)) == {Outcome.RETRY}
    assert await list_alarms(market.tasks.database) == []
    assert set(await market.visit(ids[9:12], outcome=Outcome.RETRY)) == {Outcome.HELD}
    await market.tasks.sql("UPDATE crawl_tasks SET scheduled_at = now() - interval '1 minute'")
    await market.tasks.sql("UPDATE task_control SET ticked_at = now()")
    report = await TaskService(market.tasks.database, market.settings).report(str(ids[0]))
    assert report.task.domain_alarm == "gone"
    assert "Forager has paused its domain (alarm: gone)" in str(report.why)
    assert await decide_alarm(market.tasks.database, market.shop.host, Decision.ACCEPT) == 12
    found = [await market.availability(id_) for id_ in ids]
    assert found == ["discontinued"] * 12 + ["in_stock"] * 2
    assert await market.tasks.sql("SELECT blocked_until FROM domains") == [(None,)]


async def test_a_decision_does_not_shorten_what_the_host_asked_for(market: Market) -> None:
    await market.visit(await market.open(12))
    await market.tasks.sql("UPDATE domains SET blocked_until = now() + interval '1 day'")
    await decide_alarm(market.tasks.database, market.shop.host, Decision.DISCARD)
    blocked = await market.tasks.sql("SELECT blocked_until > now() FROM domains")
    assert blocked == [(True,)]


async def test_alarms_are_found_by_the_hosts_that_their_domains_cover(market: Market) -> None:
    await market.visit(await market.open(12))
    database = market.tasks.database
    for name, asked in (("shop.example", "www.shop.example"), ("www.shop.example", "shop.example")):
        await market.tasks.sql("UPDATE domains SET domain_name = %s", name)
        await market.tasks.sql("UPDATE domain_health SET alarm = 'gone', alarm_at = now()")
        await decide_alarm(database, asked, Decision.DISCARD)
        assert await list_alarms(database) == []


async def test_a_decision_is_about_one_alarm(market: Market) -> None:
    await market.visit(await market.open(12))
    await market.tasks.sql("UPDATE domains SET domain_name = 'a.shop.example'")
    await market.tasks.sql(
        """
        WITH added AS (
            INSERT INTO domains (domain_name, base_url)
            VALUES ('b.shop.example', 'https://b.shop.example/') RETURNING id
        )
        INSERT INTO domain_health (domain_id, alarm, alarm_at) SELECT id, 'gone', now() FROM added
        """
    )
    with pytest.raises(InvalidInput, match=r"a\.shop\.example"):
        await decide_alarm(market.tasks.database, "shop.example", Decision.ACCEPT)
    assert len(await list_alarms(market.tasks.database)) == 2
    await decide_alarm(market.tasks.database, "b.shop.example", Decision.ACCEPT)
    [left] = await list_alarms(market.tasks.database)
    assert left.domain == "a.shop.example"


@pytest.mark.parametrize("decision", Decision)
async def test_held_results_are_accepted_or_discarded(market: Market, decision: Decision) -> None:
    ids = await market.open(12)
    await market.visit(ids)
    assert await decide_alarm(market.tasks.database, market.shop.host, decision) == 12
    found = {await market.availability(id_) for id_ in ids}
    due = await market.tasks.sql("SELECT count(*) FROM crawl_tasks WHERE scheduled_at <= now()")
    if decision is Decision.ACCEPT:
        assert found == {"discontinued"}
        # accepted: the same answers raise no second alarm, also one by one
        for id_ in ids:
            await market.visit([id_])
        assert await list_alarms(market.tasks.database) == []
    else:
        assert (found, due) == ({"in_stock"}, [(12,)])
    with pytest.raises(NotFound):
        await decide_alarm(market.tasks.database, market.shop.host, decision)


async def test_attempts_without_a_response_do_not_wait_for_their_domain(market: Market) -> None:
    """Those of dead workers are settled in no order of domains, and could wait in a circle."""
    [known, dead] = await market.open(2)
    await market.visit([known])
    async with market.tasks.database.transaction() as connection:
        await connection.execute("SELECT FROM domain_health FOR UPDATE")
        assert await market.visit([dead], None, ErrorKind.INTERNAL) == [Outcome.MISSED]


async def test_challenges_pause_the_domain_and_spend_nothing(market: Market) -> None:
    ids = await market.open(3)
    for at, id_ in enumerate(ids):
        assert await market.visit([id_], 403, ErrorKind.BLOCKED) == [Outcome.HELD]
        assert len(await list_alarms(market.tasks.database)) == (at == 2)
    # answers that were under way together are one reason to pause, and later ones another
    for age, pause in ((0, "1 min"), (10, "10 min"), (10_000, "6 hours")):
        await market.tasks.sql(
            "UPDATE domain_health SET alarm_at = now() - %s * interval '1 min'", age
        )
        await market.visit(ids, 403, ErrorKind.BLOCKED)
        [(blocked,)] = await market.tasks.sql(
            "SELECT blocked_until BETWEEN now() + %s::interval * 0.9 AND now() + %s::interval * 1.1"
            "  FROM domains",
            pause, pause,
        )  # fmt: skip
        assert blocked, pause
    assert (await market.state(ids[0]))[:3] == ("pending", 0, "blocked")
    await market.visit(ids[:1], 200)
    assert await market.events() == ["domain.alarm", "domain.recovered"]


async def test_products_that_get_the_same_name_are_held(market: Market) -> None:
    ids = await market.open(6)
    held_by_visit = []
    for id_ in ids[:5]:
        read = ReadName(await market.held(id_), "Welcome to our shop")
        async with market.tasks.database.transaction() as connection:
            held_by_visit.append(bool(await hold_same_pages(connection, [read])))
    assert held_by_visit == [False, True, True, True, True]
    [alarm] = await list_alarms(market.tasks.database)
    assert alarm.reason == "same_page"
    product: Product = lamp("15")
    async with market.tasks.database.transaction() as connection:
        fine = ReadName(await market.held(ids[5]), product.name or "")
        assert await hold_same_pages(connection, [fine]) == {}
    assert await list_alarms(market.tasks.database) == []


async def test_another_product_at_a_url_is_believed_when_it_is_seen_again(market: Market) -> None:
    ids = await market.open(2)
    other = ReadName(await market.held(ids[0]), "A vase", "V-1")
    renamed = replace(other, name="A better lamp", sku=lamp().sku)
    assert await market.read([renamed]) == []
    assert await market.read([other]) == [Outcome.HELD]
    [(message,)] = await market.tasks.sql("SELECT error_message FROM error_logs")
    assert message == "the page shows another product than before: A vase"
    assert await market.read([other]) == []
    assert await list_alarms(market.tasks.database) == []


async def test_a_url_with_another_product_at_every_visit_becomes_a_dead_letter(
    market: Market,
) -> None:
    [task] = await market.open(1)
    outcomes = []
    for number in range(4):
        read = ReadName(await market.held(task), f"Deal {number}", f"D-{number}")
        outcomes += await market.read([read])
        await market.later(hours=12)
    # the first doubt is checked soon, the others by the interval of the task
    assert outcomes == [Outcome.HELD, Outcome.MISSED, Outcome.MISSED, Outcome.FAILED]
    assert (await market.state(task))[:3] == ("failed", 3, "validation")
    [(name,)] = await market.tasks.sql("SELECT product_name FROM products")
    assert name == lamp().name
    # once the page is stable, its product is accepted
    await TaskService(market.tasks.database, market.settings).recrawl(Selection(ids=(task,)))
    last = ReadName(await market.held(task), "Deal 3", "D-3")
    assert await market.read([last]) == []


async def test_discarded_results_are_not_confirmed_by_the_next_visit(market: Market) -> None:
    ids = await market.open(4)
    reads = [ReadName(await market.held(id_), "Welcome to our shop") for id_ in ids]
    # the first one may be a new name
    assert await market.read(reads) == [Outcome.HELD] * 3
    # one of them is downloaded again, and will be parsed
    assert await market.visit([ids[1]], 200) == [Outcome.OK]
    await decide_alarm(market.tasks.database, market.shop.host, Decision.DISCARD)
    assert await market.read(reads[1:]) == [Outcome.HELD] * 3
    [alarm] = await list_alarms(market.tasks.database)
    assert alarm.reason == "same_page"


@pytest.mark.parametrize("kind", [ErrorKind.TLS, ErrorKind.ROBOTS, ErrorKind.NOT_ALLOWED])
async def test_a_permanent_failure_ends_only_the_tracking_of_unknown_pages(
    market: Market, kind: ErrorKind
) -> None:
    """A certificate that expired for an hour must not end the tracking of a shop."""
    [task] = await market.open(1)
    assert await market.visit([task], None, kind, permanent=True) == [Outcome.MISSED]
    # downloaded since, but the result was withheld, or will be rendered
    await market.tasks.sql("UPDATE crawl_tasks SET parser_version = NULL, failed_visits = 0")
    assert await market.visit([task], None, kind, permanent=True) == [Outcome.MISSED]
    await market.tasks.sql("UPDATE crawl_tasks SET failed_visits = 0")
    await market.tasks.sql("UPDATE products SET crawl_task_id = NULL")
    assert await market.visit([task], None, kind, permanent=True) == [Outcome.FAILED]
