"""The life of a task through both stages, and everything that can happen to it on the way."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.fetch import sender
from forager.fetch.proxies.record import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.parsers.pattern import GENERIC_VERSION
from forager.products.archiving import ProductArchiver
from forager.secrets import Vault
from forager.settings import Settings
from servers.proxies import Socks5Proxy
from servers.shop import Item, Markup, Shop
from servers.site import Page
from support.waiting import eventually
from tasks.working import Tasks, at_work


async def test_a_task_from_pending_to_its_next_visit(tasks: Tasks, shop: Shop) -> None:
    urls = [shop.add(each, Item(f"The {each}", "19.90", markup=each, sku="1")) for each in Markup]
    ids = await tasks.add(*urls, status="pending")
    await tasks.schedule()
    async with at_work(tasks):
        await tasks.all_when(ids, "completed")
    for task_id, each in zip(ids, Markup, strict=True):
        assert await tasks.product(task_id) == (
            f"The {each}",
            Decimal("19.90"),
            "EUR",
            "in_stock",
        )
        assert await tasks.attempts(task_id) == [("download", "ok"), ("parse", "ok")]
    rows = await tasks.sql(
        "SELECT DISTINCT next_crawl_at - completed_at = '1 day', retry_count FROM crawl_tasks"
    )
    assert rows == [(True, 0)]
    (place,) = await tasks.sql(
        "SELECT segment, segment_offset, segment_length FROM crawl_tasks WHERE id = %s", ids[0]
    )
    storage = archive_options(tasks.settings).open()
    archived = await read_response(storage, ArchiveRef(*place))
    assert archived.url == urls[0]
    assert b"19.90" in archived.body
    # a graceful end leaves nothing behind: no worker, no segment that may still grow
    assert await tasks.sql("SELECT id FROM workers") == []
    (closed,) = await tasks.sql("SELECT closed_at IS NOT NULL, records FROM archive_segments")
    assert closed == (True, 3)


async def test_a_price_that_must_be_confirmed_is_downloaded_again(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a", Item("A", "10.00", has_etag=True)))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
        [(etag,)] = await tasks.sql("SELECT etag FROM crawl_tasks")
        assert etag is not None
        shop.change("a", price="4990.00")
        await again(tasks, task_id)
    assert await tasks.prices(task_id) == ["10.00"]
    assert await tasks.sql("SELECT etag, last_modified FROM crawl_tasks") == [(None, None)]


async def test_changes_make_history_and_unchanged_pages_none(tasks: Tasks, shop: Shop) -> None:
    url = shop.add("a", Item("A", "10.00", has_etag=True))
    (task_id,) = await tasks.add(url)
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
        assert (await tasks.get(task_id)).parser_version == f"generic {GENERIC_VERSION}"
        await again(tasks, task_id)
        assert shop.site.not_modified["/p/a"] == 1
        shop.change("a", price="12.50")
        await again(tasks, task_id)
        shop.change("a", in_stock=False)
        await again(tasks, task_id)
    assert await tasks.prices(task_id) == ["10.00", "12.50", "12.50"]
    assert await tasks.attempts(task_id) == [
        ("download", "ok"),
        ("parse", "ok"),
        ("download", "unchanged"),
        ("download", "ok"),
        ("parse", "ok"),
        ("download", "ok"),
        ("parse", "ok"),
    ]
    assert (await tasks.product(task_id))[3] == "out_of_stock"


async def again(tasks: Tasks, task_id: int) -> None:
    """One more round, to its end."""
    (before,) = await tasks.sql("SELECT completed_at FROM crawl_tasks WHERE id = %s", task_id)
    await tasks.again(task_id)

    async def done() -> bool:
        rows = await tasks.sql(
            "SELECT status = 'completed' AND completed_at > %s FROM crawl_tasks WHERE id = %s",
            before[0],
            task_id,
        )
        return bool(rows[0][0])

    await eventually(done)


async def test_validators_count_only_for_the_parser_that_would_read_it_now(
    tasks: Tasks, shop: Shop
) -> None:
    (task_id,) = await tasks.add(shop.add("a", Item("A", has_etag=True)))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
        await tasks.sql("UPDATE crawl_tasks SET parser_version = 'generic 0'")
        await again(tasks, task_id)
    assert shop.site.conditional["/p/a"] == 0
    assert (await tasks.get(task_id)).parser_version == f"generic {GENERIC_VERSION}"


async def test_an_archived_product_comes_back_with_the_next_visit(tasks: Tasks, shop: Shop) -> None:
    """Its page has not changed since, but nothing is left of what was read on it."""
    (task_id,) = await tasks.add(shop.add("a", Item("A", has_etag=True)))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
        await tasks.sql(
            "UPDATE products SET last_seen_at = now() - interval '181 days';"
            "UPDATE crawl_tasks SET status = 'failed'"
        )
        assert await ProductArchiver(tasks.database, tasks.settings).run_once() == 1
        await tasks.sql("UPDATE crawl_tasks SET status = 'completed'")
        await again(tasks, task_id)
        assert await tasks.product(task_id) is not None
        assert shop.site.conditional["/p/a"] == 0
        # and then nothing is fetched twice again
        await again(tasks, task_id)
    assert shop.site.not_modified["/p/a"] == 1


async def test_a_redirect_leads_to_the_product_of_its_page(tasks: Tasks, shop: Shop) -> None:
    target = shop.add("new", Item("Moved"))
    (task_id,) = await tasks.add(shop.redirect("old", "/p/new"))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    (row,) = await tasks.sql(
        "SELECT p.url, a.url FROM products p JOIN product_aliases a ON a.product_id = p.id"
    )
    assert row == (target, shop.url("old"))
    rows = await tasks.sql("SELECT final_url FROM task_attempts ORDER BY id")
    assert rows == [(target,), (target,)]


async def test_a_hop_to_another_private_host_is_refused(tasks: Tasks, shop: Shop) -> None:
    """That a domain may be private says nothing of where it points to."""
    with Shop().open() as other:
        other.add("inside", Item("Secret"))
        (task_id,) = await tasks.add(shop.redirect("a", other.url("inside"), "302 Found"))
        async with at_work(tasks):
            failed = await tasks.when(task_id, "failed")
        assert failed.error_kind == "not_allowed"
        assert other.hits("inside") == 0


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


async def test_a_page_that_says_nothing_is_fetched_again_and_then_given_up(
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


async def test_held_tasks_are_not_claimed(tasks: Tasks, shop: Shop) -> None:
    ids = await tasks.add(shop.add("a"), shop.add("b"))
    await tasks.sql("UPDATE crawl_tasks SET hold = 'paused' WHERE id = %s", ids[0])
    async with at_work(tasks):
        await tasks.when(ids[1], "completed")
        assert (await tasks.get(ids[0])).status == "queued"
        await tasks.sql("UPDATE domains SET task_hold = 'paused'")
        await tasks.sql("UPDATE crawl_tasks SET hold = NULL")
        await others_go_on(tasks)
        assert (await tasks.get(ids[0])).status == "queued"
        await tasks.sql("UPDATE domains SET task_hold = NULL")
        await tasks.when(ids[0], "completed")


async def others_go_on(tasks: Tasks) -> None:
    """Claims go on: whatever comes first in the queue would have been taken by now."""
    with Shop().open() as other:
        (task_id,) = await tasks.add(other.add("other"))
        await tasks.sql("NOTIFY forager_tasks")
        await tasks.when(task_id, "completed")


async def test_a_stop_withdraws_what_is_under_way(tasks: Tasks, shop: Shop) -> None:
    shop.add("slow")
    (task_id,) = await tasks.add(shop.hang("slow"))
    async with at_work(tasks):
        await eventually(lambda: hanging(shop))
        before = await tasks.get(task_id)
        await tasks.sql("UPDATE task_control SET hold = 'stopped'")
        after = await tasks.when(task_id, "pending")
        assert (after.lease, after.retry_count) == (before.lease + 1, 0)
        shop.site.release()
        await tasks.sql("UPDATE task_control SET hold = NULL")
        (other,) = await tasks.add(shop.add("other"))
        await tasks.when(other, "completed")
    assert await tasks.attempts(task_id) == [("download", "withdrawn")]
    assert (await tasks.get(task_id)).status == "pending"


async def hanging(shop: Shop) -> bool:
    return shop.site.hanging == 1


async def test_tasks_that_are_ours_by_the_table_alone_are_given_back(
    tasks: Tasks, shop: Shop
) -> None:
    """The answer to a claim may be lost with the line."""
    (task_id,) = await tasks.add(shop.add("a"), status="pending")
    async with at_work(tasks):

        async def claimed_unheard() -> bool:
            rows = await tasks.sql(
                """
                UPDATE crawl_tasks t
                   SET status = 'crawling', worker_id = w.id, lease = lease + 1
                  FROM workers w
                RETURNING t.id
                """
            )
            return bool(rows)

        await eventually(claimed_unheard)
        await tasks.when(task_id, "completed")
    assert await tasks.attempts(task_id) == [
        ("download", "withdrawn"), ("download", "ok"), ("parse", "ok"),
    ]  # fmt: skip


async def test_an_inactive_domain_waits(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    await tasks.sql("UPDATE domains SET is_active = false")
    async with at_work(tasks):
        await others_go_on(tasks)
        assert (await tasks.get(task_id)).status == "queued"
        await tasks.sql("UPDATE domains SET is_active = true")
        await tasks.when(task_id, "completed")


async def test_a_slow_host_leaves_room_for_others(tasks: Tasks, shop: Shop) -> None:
    slow = [f"slow{n}" for n in range(40)]
    for name in slow:
        shop.add(name)
    waiting = await tasks.add(*(shop.hang(name) for name in slow))
    with Shop().open() as other:
        (quick,) = await tasks.add(other.add("quick"))
        async with at_work(tasks):
            await tasks.when(quick, "completed")
            assert shop.site.hanging <= 5
            shop.site.release()
            await tasks.all_when(waiting, "completed")


async def test_waiting_for_a_host_costs_no_concurrency(
    tasks: Tasks, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.settings = Settings(**(tasks.settings.model_dump() | {"task_concurrency": 1}))
    (waiting,) = await tasks.add(shop.add("a"))
    # its page waits behind robots.txt for longer than this test can take
    monkeypatch.setattr(sender, "PAGE_WAIT", 900.0)
    await tasks.sql("UPDATE domains SET crawl_delay_seconds = 600")
    await tasks.sql("UPDATE crawl_tasks SET priority = 1")
    with Shop().open() as other:
        quick = await tasks.add(*(other.add(f"quick{n}") for n in range(3)))
        async with at_work(tasks):
            await tasks.when(waiting, "crawling")
            await tasks.all_when(quick, "completed")
            assert (await tasks.get(waiting)).status == "crawling"
    assert shop.site.hits["/p/a"] == 0


async def test_attempts_know_their_proxy_and_a_dying_one_is_left(tasks: Tasks, shop: Shop) -> None:
    proxies = Proxies(tasks.database, Vault(tasks.settings))
    async with Socks5Proxy() as dying:
        dead = await proxies.add(address(dying), allow_private=True)
    async with Socks5Proxy() as living:
        alive = await proxies.add(address(living), allow_private=True)
        ids = await tasks.add(*(shop.add(f"n{n}") for n in range(3)))
        await tasks.sql("UPDATE domains SET use_proxies = true")
        async with at_work(tasks):
            await tasks.all_when(ids, "completed")
    rows = await tasks.sql(
        "SELECT DISTINCT proxy_id FROM task_attempts WHERE stage = 'download' AND outcome = 'ok'"
    )
    assert rows == [(alive.id,)]
    assert dead.id != alive.id
    # robots.txt and three pages, none of them asked for directly
    assert len(shop.site.log) == 4
    assert set(living.targets) == {shop.host}


def address(proxy: Socks5Proxy) -> ProxySpec:
    return ProxySpec.parse(f"socks5://127.0.0.1:{proxy.port}")


async def test_a_page_that_was_deleted_before_it_was_read_is_fetched_again(
    tasks: Tasks, shop: Shop
) -> None:
    (task_id,) = await tasks.add(shop.add("a"))
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded', updated_at = '2020-01-01'")
    async with at_work(tasks):
        waiting = await tasks.when(task_id, "pending")
    assert waiting.retry_count == 0
    assert await tasks.attempts(task_id) == [("parse", "rested")]


async def test_a_page_of_another_worker_is_read_from_the_archive(tasks: Tasks, shop: Shop) -> None:
    (task_id,) = await tasks.add(shop.add("a", Item("From the archive")))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    await tasks.sql("DELETE FROM products")
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded', updated_at = '2020-01-01'")
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    assert shop.hits("a") == 1
    assert (await tasks.product(task_id))[0] == "From the archive"


@pytest.mark.parametrize("header", ['"\udcff"', "x" * 5000])
async def test_hostile_validators_are_not_kept(tasks: Tasks, shop: Shop, header: str) -> None:
    page = Page(shop_page(shop), headers={"Last-Modified": header, "Content-Type": "text/html"})
    (task_id,) = await tasks.add(shop.behave("a", page))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    assert await tasks.sql("SELECT etag, last_modified FROM crawl_tasks") == [(None, None)]


def shop_page(shop: Shop) -> bytes:
    shop.add("a")
    return shop.page("a").body
