"""A crawl that looks for products turns their pages into tasks, in the commits that settle them."""

from __future__ import annotations

from typing import Any

from crawl.crawling import Crawls
from forager.db.database import Database
from servers.shop import Item, Markup, Shop
from servers.site import html
from support.sql import execute


def fill(shop: Shop) -> set[str]:
    """A shop front with a list, an article and products in every kind of markup."""
    names = [f"{markup.value}-{n}" for markup in Markup for n in range(3)]
    for number, name in enumerate(names):
        markup = list(Markup)[number // 3]
        shop.add(name, Item(f"Thing {name}", f"{number + 5}.50", sku=name, markup=markup))
    links = [f"/p/{name}" for name in names]
    shop.site.pages["/"] = html("Welcome", ["/all", "/about"])
    prices = "".join(f'<li><a href="{link}">{link}</a> EUR 5.50</li>' for link in links)
    shop.site.pages["/all"] = html("All things", [], body=f"<ul>{prices}</ul>")
    shop.site.pages["/about"] = html("About us", [])
    return {shop.url(name) for name in names}


async def tracked(database: Database) -> list[tuple[Any, ...]]:
    return await execute(database, "SELECT url, status, found_by FROM crawl_tasks")


async def test_product_pages_become_tasks(crawls: Crawls, shop: Shop, database: Database) -> None:
    products = fill(shop)
    crawled = await crawls.run(f"http://{shop.host}/", products=True)
    tasks = await tracked(database)
    assert {task[0] for task in tasks} == products
    assert {task[1:] for task in tasks} == {("pending", f"job {crawled.job.id}")}
    assert crawled.ledger["remarks"]["products_found"] == len(products)
    # a second crawl finds them again, and changes nothing
    await crawls.run(f"http://{shop.host}/", products=True)
    assert await tracked(database) == tasks


async def test_other_crawls_track_nothing(crawls: Crawls, shop: Shop, database: Database) -> None:
    fill(shop)
    await crawls.run(f"http://{shop.host}/")
    assert await tracked(database) == []


async def test_a_product_that_cannot_be_tracked_fails_alone(
    crawls: Crawls, shop: Shop, database: Database
) -> None:
    products = fill(shop)
    refused = min(products)
    await crawls.sql(f"ALTER TABLE crawl_tasks ADD CHECK (url <> '{refused}')")
    crawled = await crawls.run(f"http://{shop.host}/", products=True)
    assert crawled.job.status == "completed"
    assert {task[0] for task in await tracked(database)} == products - {refused}
    assert crawled.visited[refused].reason == "validation"
    assert crawled.ledger["failed_by_reason"] == {"validation": 1}
