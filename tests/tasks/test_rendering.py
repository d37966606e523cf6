"""Product pages that show their price only in a browser, and the workers that have one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forager.archive.options import archive_options
from forager.archive.reader import read_records
from forager.archive.segment import ArchiveRef
from forager.db.ids import new_id
from forager.extract.product.product import Product
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.workers import Registration
from forager.operations.operation import Context
from forager.parsers.reading import Parsed
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from forager.tasks.operations.domains import show_domain
from forager.tasks.rendering import RenderDecisions
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks as TaskService
from forager.tasks.stages.attempt import LeasedTask
from forager.tasks.store.claims import claim_queued
from forager.tasks.task import Task
from render.conftest import require_browser
from servers.shop import Item, Shop
from servers.site import Page, tagged, text
from tasks.working import Tasks, at_work


def scripted(shop: Shop, name: str, *, data: str | None = None) -> str:
    """Sell something whose name is in the page, and whose price is fetched by a script."""
    document = f"""<!DOCTYPE html><html><head><title>The {name}</title>
        <script type="application/ld+json">
        {{"@context": "https://schema.org", "@type": "Product", "name": "The {name}", "sku": "1"}}
        </script></head><body><main><h1>The {name}</h1><p id="price"></p></main><script>
        fetch("/data/{name}").then((r) => r.text()).then((t) => {{
          const data = document.createElement("script"); data.type = "application/ld+json";
          data.textContent = t; document.head.append(data) }})</script></body></html>"""
    page = tagged(Page(document.encode(), headers={"Content-Type": "text/html"}))
    shop.site.pages[f"/data/{name}"] = text(offer(name, "19.90") if data is None else data)
    return shop.behave(name, page)


def offer(name: str, price: str) -> str:
    return (
        f'{{"@context": "https://schema.org", "@type": "Product", "name": "The {name}", "sku": "1",'
        f' "offers": {{"@type": "Offer", "price": "{price}", "priceCurrency": "EUR"}}}}'
    )


@pytest.fixture
def rendering(tasks: Tasks) -> Tasks:
    """Tasks of workers that have a browser."""
    given = {"browser": require_browser(), "render_pages": 2, "poll_interval": 0.1}
    return Tasks(tasks.database, Settings(**(tasks.settings.model_dump() | given)))


async def visited(tasks: Tasks, *ids: int) -> None:
    """Schedule until these are done: a task that needs a browser is queued a second time."""
    for task_id in ids:
        while (await tasks.when(task_id, "pending", "completed", "failed")).status == "pending":
            await tasks.schedule()
            await tasks.when(task_id, "completed", "failed", "crawling", "downloaded", "parsing")


async def row(tasks: Tasks, task_id: int) -> Any:
    return (await tasks.sql("SELECT * FROM crawl_tasks WHERE id = %s", task_id))[0]


async def test_a_page_without_a_price_is_rendered_and_others_like_it_at_once(
    rendering: Tasks, shop: Shop
) -> None:
    tasks = rendering
    plain = shop.add("plain", Item("Plain", "5.00"))
    (first, static) = await tasks.add(scripted(shop, "lamp"), plain)
    async with at_work(tasks):
        await visited(tasks, first, static)
        assert await tasks.attempts(first) == [
            ("download", "ok"),
            ("parse", "rested"),
            ("download", "ok"),
            ("parse", "ok"),
        ]
        assert await tasks.prices(first) == ["19.90"]
        assert await tasks.attempts(static) == [("download", "ok"), ("parse", "ok")]
        # another one of this shape needs no attempt without a browser
        (second,) = await tasks.add(scripted(shop, "chair"))
        await visited(tasks, second)
        assert await tasks.attempts(second) == [("download", "ok"), ("parse", "ok")]
        # the static response is the same, the price is not
        shop.site.pages["/data/lamp"] = text(offer("lamp", "21.00"))
        await tasks.again(first)
        await tasks.when(first, "crawling", "downloaded", "parsing")
        await tasks.when(first, "completed")
        assert await tasks.prices(first) == ["19.90", "21.00"]
        assert shop.site.not_modified["/p/lamp"] == 1
    needs = await tasks.sql("SELECT id, needs_browser FROM crawl_tasks")
    assert dict(needs) == {first: True, second: True, static: False}
    [(place)] = await tasks.sql(
        "SELECT segment, segment_offset, segment_length FROM crawl_tasks WHERE id = %s", first
    )
    records = await read_records(archive_options(tasks.settings).open(), ArchiveRef(*place))
    assert [record.kind for record in records] == ["response", "metadata", "conversion"]
    assert b"21.00" in records[-1].block
    assert b"21.00" not in records[0].block


async def test_a_price_that_its_parser_cannot_read_is_not_looked_for_in_a_browser(
    rendering: Tasks,
) -> None:
    decisions = RenderDecisions(rendering.database, rendering.settings)
    task = LeasedTask(
        id=1, lease=1, domain_id=1, url="https://shop.example/1", url_hash=b"", retry_count=0,
        max_retries=3, etag=None, last_modified=None, parser_version=None, segment=None,
        segment_offset=None, segment_length=None, domain_name="shop.example", use_proxies=None,
        allow_private=False,
    )  # fmt: skip
    parsed = Parsed("corner", "1", Product(name="Lamp"), None)
    renderer = Registration(
        rendering.database, new_id(), capacity=1, role="tasks", renders=True, returns=False
    )
    await renderer.renew()
    assert await decisions.needs_rendering(task, parsed)
    assert not await decisions.needs_rendering(task, replace(parsed, withheld=("price",)))


async def test_a_shape_without_gain_is_not_rendered_again(rendering: Tasks, shop: Shop) -> None:
    tasks = rendering
    async with at_work(tasks):
        for number in range(3):
            (task_id,) = await tasks.add(scripted(shop, f"none-{number}", data="{}"))
            await visited(tasks, task_id)
    [(streak,)] = await tasks.sql("SELECT streak FROM domain_render_lessons")
    assert streak == -2
    assert await tasks.attempts(task_id) == [("download", "ok"), ("parse", "ok")]


async def test_without_a_worker_that_renders_everything_is_as_before(
    tasks: Tasks, shop: Shop
) -> None:
    (task_id,) = await tasks.add(scripted(shop, "lamp"))
    async with at_work(tasks):
        await tasks.when(task_id, "completed")
    assert await tasks.attempts(task_id) == [("download", "ok"), ("parse", "ok")]


async def test_tasks_wait_visibly_for_a_worker_that_renders(tasks: Tasks, shop: Shop) -> None:
    urls = [shop.add(name, Item(name)) for name in ("a", "b", "c")]
    always, pattern, never = await tasks.add(*urls, status="pending")
    service = TaskService(tasks.database, tasks.settings)
    await Domains(tasks.database).set(shop.host, DomainChanges(render_urls=["/p/b"]))
    await service.set_terms(Selection(ids=(always,)), render=RenderMode.ALWAYS)
    await service.set_terms(Selection(ids=(never,)), render=RenderMode.NEVER)
    async with at_work(tasks):
        await tasks.schedule()
        await tasks.when(never, "completed")
        # left to others without a request, because its URL matches
        await tasks.when(pattern, "pending")
        await tasks.schedule()
    for task_id in (always, pattern):
        report = await service.report(str(task_id))
        assert report.task.status == "pending"
        assert str(report.why) == (
            "waits for a worker that renders, and none runs: `forager worker --render`"
        )
    assert shop.site.hits["/p/b"] == 0
    renderer = Registration(
        tasks.database, new_id(), capacity=1, role="tasks", renders=True, returns=False
    )
    await renderer.renew()
    await tasks.schedule()
    assert {(await tasks.get(task_id)).status for task_id in (always, pattern)} == {"queued"}
    worker = new_id()
    await Registration(tasks.database, worker, capacity=1, role="tasks").renew()

    async def claimed(room: int) -> set[int]:
        async with tasks.database.transaction() as connection:
            found = await claim_queued(
                connection, worker, limit=9, busy={}, throttled=[], concurrency=5, render_room=room
            )
        return {task.id for task in found}

    assert await claimed(0) == set()
    assert len(await claimed(1)) == 1


def _length_of_decision(task: Task) -> timedelta:
    assert task.browser_since is not None
    assert task.browser_until is not None
    return task.browser_until - task.browser_since


async def test_a_decision_to_render_is_shown_and_expires(rendering: Tasks, shop: Shop) -> None:
    tasks = rendering
    service = TaskService(tasks.database, tasks.settings)
    (task_id,) = await tasks.add(scripted(shop, "lamp"))

    async def visit_when_expired() -> list[tuple[str, str]]:
        await tasks.sql(
            """
            UPDATE crawl_tasks SET browser_since = browser_since - interval '3 hours',
                                   browser_until = browser_until - interval '3 hours'
            """
        )
        before = len(await tasks.attempts(task_id))
        await tasks.again(task_id)
        await tasks.when(task_id, "crawling", "downloaded", "parsing")
        await visited(tasks, task_id)
        return (await tasks.attempts(task_id))[before:]

    async with at_work(tasks):
        await visited(tasks, task_id)
        first = (await service.report(str(task_id))).task
        assert _length_of_decision(first) == timedelta(hours=1)
        domain = await show_domain(Context(tasks.database, tasks.settings), shop.host)
        assert [(each.rendered, each.pages) for each in domain.render_decisions] == [(True, 1)]
        # the next visit is made without a browser; the decision is made again, for longer
        assert await visit_when_expired() == [
            ("download", "ok"), ("parse", "rested"), ("download", "ok"), ("parse", "ok"),
        ]  # fmt: skip
        report = await service.report(str(task_id))
        assert "deferred" in [attempt.outcome for attempt in report.attempts]
        again = report.task
        assert _length_of_decision(again) == timedelta(hours=2)
        # a page that has a price again needs none any more
        shop.site.pages["/p/lamp"] = tagged(
            Page(
                f'<h1>The lamp</h1><script type="application/ld+json">{offer("lamp", "19.90")}'
                "</script>".encode(),
                headers={"Content-Type": "text/html"},
            )
        )
        assert await visit_when_expired() == [("download", "ok"), ("parse", "ok")]
    last = (await service.report(str(task_id))).task
    assert (last.needs_browser, last.browser_since, last.browser_until) == (False, None, None)
