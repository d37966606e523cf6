"""Pages that are forbidden, gone, refused or unreadable: retries and dead letters."""

from __future__ import annotations

from decimal import Decimal

from forager.settings import Settings
from servers.shop import Item, Shop
from support.waiting import eventually
from tasks.working import Tasks, at_work


async def test_what_is_forbidden_fails_at_once(tasks: Tasks, shop: Shop) -> None:
    (forbidden,) = await tasks.add(shop.add("secret", Item("Secret")))
    shop.forbid("/p/secret")
    async with at_work(tasks):
        await tasks.when(forbidden, "failed")
    assert shop.hits("secret") == 0
    letters = await tasks.sql("SELECT task_id, error_type, error_kind, attempts FROM dead_letters")
    assert letters == [(forbidden, "other", "robots", 1)]


async def test_a_product_whose_page_is_gone_is_no_longer_sold(tasks: Tasks, shop: Shop) -> None:
    (gone,) = await tasks.add(shop.add("gone"), max_retries=1)
    async with at_work(tasks):
        await tasks.when(gone, "completed")
        shop.refuse("gone", "410 Gone")
        await tasks.again(gone)
        # once more before it is believed
        await tasks.when(gone, "pending")
        await tasks.sql("UPDATE crawl_tasks SET status = 'queued' WHERE id = %s", gone)
        failed = await tasks.when(gone, "failed")
    assert (failed.error_kind, shop.hits("gone")) == ("http_client", 3)
    product = await tasks.product(gone)
    assert (product[1], product[3]) == (Decimal(10), "discontinued")
    rows = await tasks.sql("SELECT availability FROM price_history ORDER BY id")
    assert rows == [("in_stock",), ("discontinued",)]
    events = await tasks.sql("SELECT payload->>'new' FROM catalog_events ORDER BY id DESC LIMIT 1")
    assert events == [("discontinued",)]
    # and when it comes back, that is a change too
    shop.behave_again("gone")
    await tasks.sql("UPDATE crawl_tasks SET status = 'queued' WHERE id = %s", gone)
    async with at_work(tasks):
        await tasks.when(gone, "completed")
    assert (await tasks.product(gone))[3] == "in_stock"


async def test_retries_back_off_and_then_it_is_a_dead_letter(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.refuse("a", "500 Oops"))
    async with at_work(tasks):
        for tries in range(1, 4):
            waiting = await tasks.when(task_id, "pending")
            assert (waiting.retry_count, shop.hits("a")) == (tries, tries)
            await queue_when_due(tasks)
        failed = await tasks.when(task_id, "failed")
    assert shop.hits("a") == 4
    assert (failed.retry_count, failed.error_kind) == (3, "http_server")
    assert await tasks.attempts(task_id) == [("download", "retry")] * 3 + [("download", "failed")]
    (count,) = await tasks.sql("SELECT count(*), count(DISTINCT message_key) FROM error_logs")
    assert count == (4, 1)
    assert await tasks.sql("SELECT attempts FROM dead_letters") == [(4,)]


async def queue_when_due(tasks: Tasks) -> None:
    """What the scheduler does, as soon as the backoff is over."""

    async def queued() -> bool:
        await tasks.schedule()
        rows = await tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status = 'pending'")
        return bool(rows[0][0] == 0)

    await eventually(queued)


async def test_a_host_that_sends_retry_after_is_left_alone(tasks: Tasks, shop: Shop) -> None:
    shop.add("a")
    shop.add("b")
    shop.add("c")
    elsewhere = shop.url("c").replace("127.0.0.1", "localhost")
    first, second, third = await tasks.add(
        shop.refuse("a", "429 Too Many", Retry_After="3600"), shop.url("b"), elsewhere
    )
    later = "UPDATE crawl_tasks SET status = %s WHERE id = ANY(%s)"
    await tasks.sql(later, "pending", [second, third])
    async with at_work(tasks):
        slowed = await tasks.when(first, "pending")
        await tasks.sql(later, "queued", [second, third])
        # the worker continues with other hosts
        await tasks.when(third, "completed")
    assert slowed.retry_count == 1
    waiting = await tasks.get(second)
    assert (waiting.status, waiting.retry_count) == ("queued", 0)
    assert await tasks.attempts(second) == []
    assert shop.hits("b") == 0
    rows = await tasks.sql(
        "SELECT bool_or(blocked_until > now() + interval '50 minutes') FROM domains"
    )
    assert rows == [(True,)]


async def test_a_page_without_product_data_is_retried_and_then_given_up(
    tasks: Tasks, shop: Shop
) -> None:
    shop.add("a")
    (task_id,) = await tasks.add(shop.break_markup("a"), max_retries=1)
    async with at_work(tasks):
        waiting = await tasks.when(task_id, "pending")
        assert waiting.error_kind == "validation"
        await queue_when_due(tasks)
        failed = await tasks.when(task_id, "failed")
    assert shop.hits("a") == 2
    assert failed.error_kind == "validation"
    assert await tasks.attempts(task_id) == [
        ("download", "ok"), ("parse", "retry"), ("download", "ok"), ("parse", "failed"),
    ]  # fmt: skip
    assert await tasks.sql("SELECT stage, error_type FROM dead_letters") == [
        ("parse", "validation")
    ]
    (kept,) = await tasks.sql("SELECT count(*), min(outcome) FROM extractions")
    assert kept == (2, "incomplete")


async def test_one_page_that_cannot_be_written_spoils_no_other(tasks: Tasks, shop: Shop) -> None:
    await tasks.sql(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'no such price' USING ERRCODE = 'check_violation'; END $$
        """
    )
    await tasks.sql(
        """
        CREATE TRIGGER refuse BEFORE INSERT ON products FOR EACH ROW
        WHEN (NEW.product_name = 'Poison') EXECUTE FUNCTION refuse()
        """
    )
    names = [f"n{n}" for n in range(9)]
    ids = await tasks.add(*(shop.add(name) for name in names))
    (poison,) = await tasks.add(
        shop.redirect("moved", shop.add("poison", Item("Poison"))), max_retries=0
    )
    async with at_work(tasks):
        failed = await tasks.when(poison, "failed")
        await tasks.all_when(ids, "completed")
    assert failed.error_kind == "validation"
    assert "no such price" in (failed.error_message or "")
    assert await tasks.sql(
        "SELECT final_url, duration_ms IS NOT NULL FROM task_attempts"
        " WHERE task_id = %s AND stage = 'parse'",
        poison,
    ) == [(shop.url("poison"), True)]
    assert (await tasks.sql("SELECT count(*) FROM products"))[0] == (9,)
    # what was undone with the refused batch was undone whole
    assert (await tasks.sql("SELECT count(*) FROM extractions"))[0] == (9,)


async def test_a_missing_page_whose_product_cannot_be_withdrawn_fails_alone(
    tasks: Tasks, shop: Shop
) -> None:
    await tasks.sql(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'it stays' USING ERRCODE = 'check_violation'; END $$
        """
    )
    await tasks.sql(
        """
        CREATE TRIGGER refuse BEFORE UPDATE ON products FOR EACH ROW
        WHEN (NEW.availability = 'discontinued') EXECUTE FUNCTION refuse()
        """
    )
    quick = {"gone_visits": 1, "gone_after": 0.0}
    tasks.settings = Settings(**(tasks.settings.model_dump() | quick))
    (task_id,) = await tasks.add(shop.add("a"), max_retries=0)
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
        shop.refuse("a", "404 Not Found")
        await tasks.again(task_id)
        missed = await tasks.when(task_id, "pending", "failed")
    assert missed.error_kind == "validation"
    assert "it stays" in (missed.error_message or "")
