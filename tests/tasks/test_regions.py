"""Tasks, images and proxies that are tied to a region, and the workers that get them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from forager.db.database import Database
from forager.db.ids import new_id
from forager.extract.hosts import host_of
from forager.fetch.domains.service import DomainChanges, Domains
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies, ProxyChanges
from forager.images import fetcher as due_images
from forager.images.fetcher import DueImages
from forager.images.store import images
from forager.images.store.images import claim_images
from forager.jobs.workers import Registration
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.allowance import DomainLoad, TickPace, allowance
from forager.tasks.service import Tasks as TaskService
from forager.tasks.store.claims import claim_downloaded, claim_queued
from forager.tasks.store.hints import select_queued
from forager.tasks.store.scheduling import count_proxies
from products.rows import add_product
from servers.proxies import Socks5Proxy
from servers.shop import Item, Shop
from support.sql import execute
from tasks.working import Tasks, at_work


def of_region(tasks: Tasks, region: str) -> Tasks:
    return Tasks(tasks.database, Settings(**(tasks.settings.model_dump() | {"region": region})))


async def tie(tasks: Tasks, url: str, region: str | None) -> None:
    await Domains(tasks.database).set(host_of(url), DomainChanges(region=region))


async def test_only_workers_of_its_region_get_the_tasks_of_a_domain(tasks: Tasks) -> None:
    with Shop().open() as european, Shop().open() as anywhere, Shop().open() as overseas:
        shops = {"eu": european, None: anywhere, "us": overseas}
        ids: dict[str | None, list[int]] = {}
        for region, shop in shops.items():
            urls = [shop.add(f"{n}", Item(f"Thing {n}", "1.00")) for n in range(5)]
            ids[region] = await tasks.add(*urls)
            await tie(tasks, urls[0], region)
        async with at_work(tasks), at_work(of_region(tasks, "eu")):
            await tasks.all_when([*ids["eu"], *ids[None]], "completed")
            # the workers are asked while they are there to be asked
            rows = await tasks.sql(
                """
                SELECT DISTINCT d.region, w.region
                  FROM task_attempts a
                  JOIN domains d ON d.id = a.domain_id
                  JOIN workers w ON w.id = a.worker_id
                """
            )
        taken = {(domain, worker) for domain, worker in rows}
        assert taken <= {("eu", "eu"), (None, None), (None, "eu")}
        assert ("eu", "eu") in taken
        assert not overseas.site.hits
        for task_id in ids["us"]:
            assert (await tasks.get(task_id)).status == "queued"
            assert await tasks.attempts(task_id) == []


async def test_a_page_is_read_by_its_region_too(tasks: Tasks) -> None:
    url = "http://shop.example/1"
    (tied,) = await tasks.add(url, status="downloaded")
    (free,) = await tasks.add("http://free.example/1", status="downloaded")
    await tie(tasks, url, "eu")
    worker = new_id()
    await Registration(tasks.database, worker, capacity=1, role="tasks").renew()

    async def claimed(region: str | None) -> set[int]:
        async with tasks.database.transaction() as connection:
            found = await claim_downloaded(connection, worker, limit=9, region=region)
            await connection.execute(
                "UPDATE crawl_tasks SET status = 'downloaded', worker_id = NULL"
            )
        return {task.id for task in found}

    assert await claimed(None) == {free}
    assert await claimed("us") == {free}
    assert await claimed("eu") == {free, tied}


async def test_a_task_says_that_it_waits_for_its_region(tasks: Tasks) -> None:
    url = "http://shop.example/1"
    (task_id,) = await tasks.add(url)
    await tie(tasks, url, "eu")
    service = TaskService(tasks.database, tasks.settings)
    plain = Registration(tasks.database, new_id(), capacity=1, role="tasks")
    await plain.renew()
    said = str((await service.report(str(task_id))).why)
    assert "waits for a worker of region eu" in said
    assert "forager worker --region eu" in said
    await Registration(tasks.database, new_id(), capacity=1, role="tasks", region="eu").renew()
    assert "handed to the workers" in str((await service.report(str(task_id))).why)


async def test_tasks_go_through_the_proxies_of_their_worker_alone(tasks: Tasks) -> None:
    with Shop().open() as shop:
        url = shop.add("a", Item("A", "1.00"))
        (task_id,) = await tasks.add(url)
        await tasks.sql("UPDATE domains SET use_proxies = true")
        proxies = Proxies(tasks.database, Vault(tasks.settings))
        async with Socks5Proxy() as european, Socks5Proxy() as overseas:
            for server, region in ((european, "eu"), (overseas, "us")):
                spec = ProxySpec.parse(f"socks5://127.0.0.1:{server.port}")
                added = await proxies.add(spec, allow_private=True)
                await proxies.set(added.id, ProxyChanges(region=region))
            async with at_work(of_region(tasks, "us")):
                await tasks.when(task_id, "completed")
        assert overseas.targets
        assert not european.targets


async def proxy_of(tasks: Tasks, region: str | None) -> int:
    proxies = Proxies(tasks.database, Vault(tasks.settings))
    spec = ProxySpec.parse(f"socks5://proxy-{region}.example:1080")
    added = await proxies.add(spec)
    return (await proxies.set(added.id, ProxyChanges(region=region))).id


async def test_a_worker_without_a_proxy_leaves_the_tasks_to_those_that_have_one(
    tasks: Tasks,
) -> None:
    (pooled,) = await tasks.add("http://pooled.example/1")
    (direct,) = await tasks.add("http://direct.example/1")
    await Domains(tasks.database).set("pooled.example", DomainChanges(proxies=True))
    await Domains(tasks.database).set("direct.example", DomainChanges(proxies=False))
    worker = new_id()
    await Registration(tasks.database, worker, capacity=1, role="tasks").renew()

    async def claimed(region: str | None, *, task_proxies: bool = False) -> set[int]:
        async with tasks.database.transaction() as connection:
            kept = await select_queued(
                connection, [pooled, direct], region=region, task_proxies=task_proxies
            )
            found = await claim_queued(
                connection,
                worker,
                limit=9,
                busy={},
                throttled=[],
                concurrency=1,
                region=region,
                task_proxies=task_proxies,
            )
            await connection.execute("UPDATE crawl_tasks SET status = 'queued', worker_id = NULL")
        assert kept == {task.id for task in found}  # a hint of others is not kept
        return kept

    # no worker has one: the tasks fail with a reason
    assert await claimed(None) == {pooled, direct}
    european = await proxy_of(tasks, "eu")
    assert await claimed(None) == {direct}
    assert await claimed("us") == {direct}
    assert await claimed("eu") == {pooled, direct}
    await Domains(tasks.database).set("pooled.example", DomainChanges(proxies=None))
    assert await claimed("us", task_proxies=True) == {direct}
    assert await claimed("us") == {pooled, direct}
    await proxy_of(tasks, None)
    assert await claimed("us", task_proxies=True) == {pooled, direct}
    await Proxies(tasks.database, Vault(tasks.settings)).disable(european)
    assert await claimed("us", task_proxies=True) == {pooled, direct}


async def test_a_task_says_that_it_waits_for_a_worker_with_a_proxy(tasks: Tasks) -> None:
    (task_id,) = await tasks.add("http://pooled.example/1")
    await Domains(tasks.database).set("pooled.example", DomainChanges(proxies=True))
    service = TaskService(tasks.database, tasks.settings)

    async def said() -> str:
        return str((await service.report(str(task_id))).why)

    await Registration(tasks.database, new_id(), capacity=1, role="tasks", region="us").renew()
    assert "handed to the workers" in await said()
    await proxy_of(tasks, "eu")
    assert "all belong to eu" in await said()
    assert "forager worker --region eu" in await said()
    await Domains(tasks.database).set("pooled.example", DomainChanges(region="us"))
    assert "waits for a proxy of region us" in await said()
    await Domains(tasks.database).set("pooled.example", DomainChanges(region=None))
    await Registration(tasks.database, new_id(), capacity=1, role="tasks", region="eu").renew()
    assert "handed to the workers" in await said()


async def test_proxies_that_no_worker_can_go_through_do_not_count(tasks: Tasks) -> None:
    for region in ("eu", "us", None):
        await proxy_of(tasks, region)
    await Registration(tasks.database, new_id(), capacity=1, role="tasks", region="eu").renew()
    async with tasks.database.connection() as connection:
        assert await count_proxies(connection, stale_after=600.0) == {"eu": 1, None: 1}


async def test_images_of_a_tied_domain_are_for_its_region(database: Database) -> None:
    products = [await add_product(database, n, domain=f"{n}.shop.example") for n in (1, 2)]
    await execute(
        database,
        """
            INSERT INTO images (product_id, image_url, url_hash, position)
            SELECT id, 'https://images.example/a.gif', '\\x01', 0 FROM products
            """,
    )
    assert len(products) == 2
    await Domains(database).set("1.shop.example", DomainChanges(region="eu"))

    async def claimed(region: str | None) -> list[str]:
        async with database.transaction() as connection:
            found = await claim_images(connection, limit=10, lease_seconds=60.0, region=region)
            await connection.execute("UPDATE images SET next_attempt_at = now()")
        return sorted(image.domain for image in found)

    assert await claimed(None) == ["2.shop.example"]
    assert await claimed("us") == ["2.shop.example"]
    assert await claimed("eu") == ["1.shop.example", "2.shop.example"]


async def test_images_of_others_are_passed_over_step_by_step(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign, own = [await add_product(database, n, domain=f"{n}.shop.example") for n in (1, 2)]
    await Domains(database).set("1.shop.example", DomainChanges(region="eu"))

    async def add(product: int, first: int, last: int) -> None:
        await execute(
            database,
            """
                INSERT INTO images (product_id, image_url, url_hash, position, next_attempt_at)
                SELECT %s, 'https://images.example/' || n, int4send(n), n,
                       now() - interval '1 hour' + n * interval '1 second'
                  FROM generate_series(%s::int, %s::int) AS n
                """,
            product,
            first,
            last,
        )

    due = DueImages(settings, lease=600.0, step=10)

    async def claimed() -> list[str]:
        async with database.connection() as connection:
            found = await due.claim(connection, 3)
        return sorted(image.url.removeprefix("https://images.example/") for image in found)

    looked = Counter[str]()
    real = images.claim_images

    async def counted(*arguments: Any, **options: Any) -> list[images.PendingImage]:
        looked["steps"] += 1
        return await real(*arguments, **options)

    monkeypatch.setattr(images, "claim_images", counted)
    await add(foreign, 100, 159)
    await add(own, 160, 164)
    assert await claimed() == ["160", "161", "162"]
    assert looked["steps"] == 7
    assert await claimed() == ["163", "164"]
    assert await claimed() == []
    # what comes later is found without passing over all of them again
    await add(own, 170, 170)
    assert await claimed() == ["170"]
    assert looked["steps"] == 10
    # and what was passed over is looked at again when it is time
    await Domains(database).set("1.shop.example", DomainChanges(region=None))
    assert await claimed() != ["100", "101", "102"]
    monkeypatch.setattr(due_images, "AGAIN_AFTER", -1.0)
    assert await claimed() == ["100", "101", "102"]


async def test_images_too_are_left_to_workers_with_a_proxy(tasks: Tasks) -> None:
    database = tasks.database
    product = await add_product(database, 1, domain="pooled.example")
    await tasks.sql(
        """
        INSERT INTO images (product_id, image_url, url_hash, position)
        VALUES (%s, 'https://images.example/a.gif', '\\x01', 0)
        """,
        product,
    )
    await Domains(database).set("pooled.example", DomainChanges(proxies=True))
    await proxy_of(tasks, "eu")
    async with database.connection() as connection:
        for region, number in (("us", 0), (None, 0), ("eu", 1)):
            found = await claim_images(connection, limit=9, lease_seconds=60.0, region=region)
            assert len(found) == number


def test_a_tied_domain_is_given_as_many_tasks_as_its_proxies_can_take() -> None:
    pace = TickPace(window=3.0, proxies=6, task_proxies=True, tied={"eu": 2, "us": 3})

    def allowed(region: str | None) -> int:
        load = DomainLoad(
            id=1,
            name="shop.example",
            delay=None,
            concurrency=100,
            slow_delay=0.0,
            per_proxy_only=True,
            use_proxies=None,
            is_active=True,
            is_on_hold=False,
            blocked_for=0.0,
            slot_in=0.0,
            queued=0,
            crawling=0,
            priorities=[5],
            region=region,
        )
        return allowance(load, pace)

    assert [pace.proxies_for(region) for region in (None, "eu", "us", "asia")] == [6, 3, 4, 1]
    assert allowed("asia") < allowed("eu") < allowed("us") < allowed(None)
