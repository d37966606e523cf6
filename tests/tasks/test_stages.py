"""The life of a task through both stages."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.parsers.pattern import GENERIC_VERSION
from forager.products.unseen import archive_unseen
from forager.settings.values import DAY
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
        assert await tasks.product(task_id) == (f"The {each}", Decimal("19.90"), "EUR", "in_stock")
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
        assert await archive_unseen(tasks.database, tasks.settings, 180 * DAY) == 1
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


async def test_a_permanent_redirect_is_followed_once_and_remembered(
    tasks: Tasks, shop: Shop
) -> None:
    """Until its end is no longer the page of the product: then the URL is asked again."""
    target = shop.add("new", Item("Moved", sku="1"))
    shop.add("b", Item("Elsewhere", sku="2"))
    permanent, temporary = await tasks.add(
        shop.redirect("old", "/p/new"), shop.redirect("a", "/p/b", "302 Found")
    )
    async with at_work(tasks):
        await tasks.all_when([permanent, temporary], "completed")
        for _ in range(2):
            await again(tasks, permanent)
            await again(tasks, temporary)
        assert (shop.hits("old"), shop.hits("new")) == (1, 3)
        assert (shop.hits("a"), shop.hits("b")) == (3, 3)
        assert await moved_to(tasks, permanent) == target
        assert await moved_to(tasks, temporary) is None
        # the page moved again, and only the URL that is tracked leads there
        shop.refuse("new", "404 Not Found")
        shop.redirect("old", "/p/newer")
        newer = shop.add("newer", Item("Moved", sku="1"))
        await tasks.again(permanent)
        await tasks.when(permanent, "pending")
        assert await moved_to(tasks, permanent) is None
        await tasks.sql("UPDATE crawl_tasks SET status = 'completed' WHERE status = 'pending'")
        await again(tasks, permanent)
    assert (shop.hits("old"), shop.hits("new"), shop.hits("newer")) == (2, 4, 1)
    assert await tasks.sql("SELECT url FROM products WHERE sku = '1'") == [(newer,)]


async def moved_to(tasks: Tasks, task_id: int) -> object:
    [(url,)] = await tasks.sql("SELECT moved_to FROM crawl_tasks WHERE id = %s", task_id)
    return url


async def test_a_hop_to_another_private_host_is_refused(tasks: Tasks, shop: Shop) -> None:
    """That a domain may be private says nothing of where it points to."""
    with Shop().open() as other:
        other.add("inside", Item("Secret"))
        (task_id,) = await tasks.add(shop.redirect("a", other.url("inside"), "302 Found"))
        async with at_work(tasks):
            failed = await tasks.when(task_id, "failed")
        assert failed.error_kind == "not_allowed"
        assert other.hits("inside") == 0


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
