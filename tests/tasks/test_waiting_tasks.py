"""Tasks that must wait: held ones, inactive domains, slow hosts, stopped workers."""

from __future__ import annotations

import pytest

from forager.fetch import sender
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.secrets import Vault
from forager.settings import Settings
from servers.proxies import Socks5Proxy
from servers.shop import Shop
from support.waiting import eventually
from tasks.working import Tasks, at_work


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


async def test_tasks_that_only_the_table_assigns_to_this_worker_are_returned(
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
