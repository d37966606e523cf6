"""Outages: what ends tracking and what does not, and results that a domain's alarm holds."""

from __future__ import annotations

import pytest

from forager.errors import ErrorKind, InvalidInput, NotFound
from forager.extract.product.product import Product
from forager.products.service import list_products
from forager.products.validation.identity import Identity
from forager.tasks.alarms import Decision, ReadName, decide_alarm, hold_same_pages, list_alarms
from forager.tasks.service import Tasks as TaskService
from forager.tasks.stages.attempt import TaskOutcome
from products.product_shop import lamp
from tasks.visited_shop import VisitedShop


async def test_an_outage_returns_a_task_to_its_interval(market: VisitedShop) -> None:
    [task] = await market.open(1)
    assert await market.visit([task], None, ErrorKind.TIMEOUT) == [TaskOutcome.MISSED]
    assert await market.state(task) == ("pending", 1, "timeout", True)
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [TaskOutcome.MISSED]
    # often enough, but not for long enough
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [TaskOutcome.MISSED]
    await market.later(hours=25)
    assert await market.visit([task], 500, ErrorKind.HTTP_SERVER) == [TaskOutcome.FAILED]
    assert await market.state(task) == ("failed", 4, "http_server", True)
    assert await market.availability(task) == "in_stock"


async def test_a_page_that_never_existed_is_a_dead_letter_at_once(market: VisitedShop) -> None:
    [task] = await market.open(1)
    await market.tasks.sql("UPDATE crawl_tasks SET parser_version = NULL")
    await market.tasks.sql("UPDATE products SET crawl_task_id = NULL")
    assert await market.visit([task]) == [TaskOutcome.FAILED]


async def test_discontinued_needs_several_visits_over_time(market: VisitedShop) -> None:
    [task] = await market.open(1)
    assert await market.visit([task]) == [TaskOutcome.MISSED]
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


async def test_a_domain_whose_pages_are_all_gone_holds_its_results(market: VisitedShop) -> None:
    ids = await market.open(14)
    assert set(await market.visit(ids[:9])) == {TaskOutcome.MISSED}
    assert await list_alarms(market.tasks.database) == []
    # the batch that raises the alarm is held as well
    assert set(await market.visit(ids[9:])) == {TaskOutcome.WITHHELD}
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


async def test_an_alarm_does_not_end_with_visits_without_a_response(market: VisitedShop) -> None:
    ids = await market.open(12)
    await market.visit(ids)
    for _ in range(2):
        await market.visit(ids, None, ErrorKind.TIMEOUT)
    assert [alarm.reason for alarm in await list_alarms(market.tasks.database)] == ["gone"]


async def test_first_attempts_raise_the_alarm_and_its_decision_applies_to_all_missing_pages(
    market: VisitedShop,
) -> None:
    ids = await market.open(14)
    assert set(await market.visit(ids[:9], outcome=TaskOutcome.RETRY)) == {TaskOutcome.RETRY}
    assert await list_alarms(market.tasks.database) == []
    assert set(await market.visit(ids[9:12], outcome=TaskOutcome.RETRY)) == {TaskOutcome.WITHHELD}
    await market.tasks.sql("UPDATE crawl_tasks SET scheduled_at = now() - interval '1 minute'")
    await market.tasks.sql("UPDATE task_control SET ticked_at = now()")
    report = await TaskService(market.tasks.database, market.settings).report(str(ids[0]))
    assert report.task.domain_alarm == "gone"
    assert "Forager has paused its domain (alarm: gone)" in str(report.why)
    assert await decide_alarm(market.tasks.database, market.shop.host, Decision.ACCEPT) == 12
    found = [await market.availability(id_) for id_ in ids]
    assert found == ["discontinued"] * 12 + ["in_stock"] * 2
    assert await market.tasks.sql("SELECT blocked_until FROM domains") == [(None,)]


async def test_a_decision_does_not_shorten_what_the_host_asked_for(market: VisitedShop) -> None:
    await market.visit(await market.open(12))
    await market.tasks.sql("UPDATE domains SET blocked_until = now() + interval '1 day'")
    await decide_alarm(market.tasks.database, market.shop.host, Decision.DISCARD)
    blocked = await market.tasks.sql("SELECT blocked_until > now() FROM domains")
    assert blocked == [(True,)]


async def test_alarms_are_found_by_the_hosts_that_their_domains_cover(market: VisitedShop) -> None:
    await market.visit(await market.open(12))
    database = market.tasks.database
    for name, asked in (("shop.example", "www.shop.example"), ("www.shop.example", "shop.example")):
        await market.tasks.sql("UPDATE domains SET domain_name = %s", name)
        await market.tasks.sql("UPDATE domain_health SET alarm = 'gone', alarm_at = now()")
        await decide_alarm(database, asked, Decision.DISCARD)
        assert await list_alarms(database) == []


async def test_a_decision_is_about_one_alarm(market: VisitedShop) -> None:
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
async def test_held_results_are_accepted_or_discarded(
    market: VisitedShop, decision: Decision
) -> None:
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


async def test_attempts_without_a_response_do_not_wait_for_their_domain(
    market: VisitedShop,
) -> None:
    """Those of dead workers are settled in no order of domains, and could wait in a circle."""
    [known, dead] = await market.open(2)
    await market.visit([known])
    async with market.tasks.database.transaction() as connection:
        await connection.execute("SELECT FROM domain_health FOR UPDATE")
        assert await market.visit([dead], None, ErrorKind.INTERNAL) == [TaskOutcome.MISSED]


async def test_challenges_pause_the_domain_and_spend_nothing(market: VisitedShop) -> None:
    ids = await market.open(3)
    for at, id_ in enumerate(ids):
        assert await market.visit([id_], 403, ErrorKind.BLOCKED) == [TaskOutcome.WITHHELD]
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


async def test_products_that_get_the_same_name_are_held(market: VisitedShop) -> None:
    ids = await market.open(6)
    held_by_visit = []
    for id_ in ids[:5]:
        read = ReadName(await market.held(id_), Identity("Welcome to our shop"))
        async with market.tasks.database.transaction() as connection:
            held_by_visit.append(bool(await hold_same_pages(connection, [read], market.settings)))
    # already the first one shows neither the SKU nor the name of its product
    assert held_by_visit == [True, True, True, True, True]
    [alarm] = await list_alarms(market.tasks.database)
    assert alarm.reason == "same_page"
    product: Product = lamp("15")
    async with market.tasks.database.transaction() as connection:
        fine = ReadName(await market.held(ids[5]), Identity(product.name or ""))
        assert await hold_same_pages(connection, [fine], market.settings) == {}
    assert await list_alarms(market.tasks.database) == []


async def test_discarded_results_are_not_confirmed_by_the_next_visit(market: VisitedShop) -> None:
    ids = await market.open(4)
    reads = [ReadName(await market.held(id_), Identity("Welcome to our shop")) for id_ in ids]
    assert await market.read(reads) == [TaskOutcome.WITHHELD] * 4
    # one of them is downloaded again, and will be parsed
    assert await market.visit([ids[1]], 200) == [TaskOutcome.OK]
    await decide_alarm(market.tasks.database, market.shop.host, Decision.DISCARD)
    assert await market.read(reads[1:]) == [TaskOutcome.WITHHELD] * 3
    [alarm] = await list_alarms(market.tasks.database)
    assert alarm.reason == "same_page"


@pytest.mark.parametrize("kind", [ErrorKind.TLS, ErrorKind.ROBOTS, ErrorKind.NOT_ALLOWED])
async def test_a_permanent_failure_ends_only_the_tracking_of_unknown_pages(
    market: VisitedShop, kind: ErrorKind
) -> None:
    """A certificate that expired for an hour must not end the tracking of a shop."""
    [task] = await market.open(1)
    assert await market.visit([task], None, kind, permanent=True) == [TaskOutcome.MISSED]
    # downloaded since, but the result was withheld, or will be rendered
    await market.tasks.sql("UPDATE crawl_tasks SET parser_version = NULL, failed_visits = 0")
    assert await market.visit([task], None, kind, permanent=True) == [TaskOutcome.MISSED]
    await market.tasks.sql("UPDATE crawl_tasks SET failed_visits = 0")
    await market.tasks.sql("UPDATE products SET crawl_task_id = NULL")
    assert await market.visit([task], None, kind, permanent=True) == [TaskOutcome.FAILED]
