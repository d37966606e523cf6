"""A page that shows another product: withheld, accepted, or a dead letter."""

from __future__ import annotations

from dataclasses import replace

from forager.products.replacements import list_replacements
from forager.products.validation.identity import Identity
from forager.tasks.alarms import ReadName, accept_replacement, list_alarms
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks as TaskService
from forager.tasks.stages.attempt import TaskOutcome
from products.product_shop import lamp
from tasks.visited_shop import VisitedShop


async def test_another_product_at_a_url_is_withheld_until_a_user_accepts_it(
    market: VisitedShop,
) -> None:
    ids = await market.open(2)
    other = ReadName(await market.held(ids[0]), Identity("A vase", "V-1"))
    renamed = replace(other, identity=Identity("A better lamp", lamp().sku))
    assert await market.read([renamed]) == []
    for visits in (1, 2, 3, 4):
        assert await market.read([other]) == [TaskOutcome.WITHHELD]
        [listed] = (await list_replacements(market.tasks.database)).items
        assert (listed.name, listed.product_name, listed.visits) == ("A vase", lamp().name, visits)
    rows = await market.tasks.sql("SELECT DISTINCT error_message FROM error_logs")
    assert rows == [("the page shows another product than before: A vase",)]
    assert await market.events() == ["product.replaced"]
    accepted = await accept_replacement(market.tasks.database, str(listed.product_id))
    assert (accepted.name, accepted.visits) == ("A vase", 4)
    # the former product keeps its history, and the page is free for the other one
    assert await market.read([other]) == []
    [(url, task, stock)] = await market.tasks.sql(
        "SELECT url, crawl_task_id, availability FROM products WHERE id = %s", listed.product_id
    )
    assert (url, task) == (f"{listed.product_url}#product-{listed.product_id}", None)
    assert stock == "discontinued"
    assert await list_alarms(market.tasks.database) == []


async def test_a_rule_accepts_another_product_after_enough_visits(market: VisitedShop) -> None:
    [task] = await market.open(1)
    market.settings = market.settings.model_copy(update={"replacement_accepted": True})
    other = ReadName(await market.held(task), Identity("A vase", "V-1"))
    assert [await market.read([other]) for _ in range(4)] == [
        [TaskOutcome.WITHHELD], [TaskOutcome.WITHHELD], [], [],
    ]  # fmt: skip
    assert await market.tasks.sql("SELECT crawl_task_id FROM products") == [(None,)]


async def test_a_product_that_is_seen_again_is_not_replaced(market: VisitedShop) -> None:
    [task] = await market.open(1)
    other = ReadName(await market.held(task), Identity("All products"))
    assert await market.read([other]) == [TaskOutcome.WITHHELD]
    same = replace(other, identity=Identity(lamp().name or "", lamp().sku))
    assert await market.read([same]) == []
    assert (await list_replacements(market.tasks.database)).items == []


async def test_a_url_with_another_product_at_every_visit_becomes_a_dead_letter(
    market: VisitedShop,
) -> None:
    [task] = await market.open(1)
    outcomes = []
    for number in range(4):
        read = ReadName(await market.held(task), Identity(f"Deal {number}", f"D-{number}"))
        outcomes += await market.read([read])
        await market.later(hours=12)
    # the first doubt is checked soon, the others by the interval of the task
    assert outcomes == [
        TaskOutcome.WITHHELD,
        TaskOutcome.MISSED,
        TaskOutcome.MISSED,
        TaskOutcome.FAILED,
    ]
    assert (await market.state(task))[:3] == ("failed", 3, "validation")
    [(name,)] = await market.tasks.sql("SELECT product_name FROM products")
    assert name == lamp().name
    # once the page is stable, its product may be accepted
    await TaskService(market.tasks.database, market.settings).recrawl(Selection(ids=(task,)))
    last = ReadName(await market.held(task), Identity("Deal 3", "D-3"))
    assert await market.read([last]) == [TaskOutcome.WITHHELD]
