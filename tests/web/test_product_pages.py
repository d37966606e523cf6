"""What the pages of products and tasks show: through HTTP, without a browser."""

from __future__ import annotations

import re

import pytest

from forager.access.caller import Scope
from forager.db.database import Database
from forager.fetch.domains.service import Domains
from forager.products.filters import ProductOrder
from forager.settings import Settings
from forager.tasks.dead_letters import LetterFilter, count_letters
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks
from forager.tasks.task import Hold
from forager.web.routes.products import SORTS
from images.stored_image import store_image
from products.rows import add_product
from support.keys import make_key
from support.sql import execute
from tasks.tasks_at_hand import make_domain, make_task
from web.catalog_rows import HOSTILE, Catalog
from web.visitor import Visitor


async def test_what_shops_say_is_shown_as_text(visitor: Visitor, catalog: Catalog) -> None:
    for path in catalog.pages():
        page = await visitor.get(path)
        assert (path, page.status) == (path, 200)
        assert "<script>alert" not in page.text
        assert "onerror=alert(2)>" not in page.text
        assert " style=" not in page.text


@pytest.mark.parametrize("text", [HOSTILE, "' OR 1=1 --", "\0", "x" * 3000, "1e999"])
async def test_filters_take_whatever_is_typed(
    visitor: Visitor, catalog: Catalog, text: str
) -> None:
    for path, names in {
        "/products": ["q", "min_price", "brand", "category", "domain", "changed_since", "cursor"],
        "/tasks": ["url", "domain", "status", "cursor"],
        "/errors": ["domain", "type", "hours", "cursor"],
        "/errors/list": ["message", "task"],
        "/dead-letters": ["cause", "domain"],
        "/domains": ["active", "region", "cursor"],
        "/proxies": ["cursor"],
        "/parsers": ["domain", "cursor"],
        "/webhooks": ["cursor"],
        "/track": ["url"],
    }.items():
        for name in names:
            page = await visitor.get(path, params={name: text})
            assert (path, name, page.status in (200, 404, 422)) == (path, name, True)
            assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "path",
    ["/products/9", "/products/x", "/tasks/9", "/errors/9", "/domains/no.example", "/proxies/9"],
)
async def test_what_is_not_there_has_a_page(visitor: Visitor, path: str) -> None:
    page = await visitor.get(path)
    assert page.status in (404, 422)
    assert "Go to overview" in page.text


async def test_empty_pages_say_what_to_do(visitor: Visitor) -> None:
    for path, words in {
        "/products": "Track a product",
        "/tasks": "Track products",
        "/errors": "No permanently failed tasks",
        "/domains": "Add a domain",
        "/proxies": "Add proxies",
        "/parsers": "No pages parsed yet",
        "/webhooks": "Add a webhook",
    }.items():
        assert words in (await visitor.get(path)).text


async def test_another_product_at_the_url_is_shown_and_accepted(
    visitor: Visitor, catalog: Catalog, database: Database
) -> None:
    await execute(
        database,
        "INSERT INTO product_replacements (product_id, product_name, url)"
        " VALUES (%s, %s, 'https://shop.example/vase') RETURNING 1",
        catalog.product_id,
        HOSTILE,
    )
    path = f"/products/{catalog.product_id}"
    page = (await visitor.get(path)).text
    assert "the page shows another product: " in page
    assert "Accept the other product" in page
    assert (await visitor.act(f"{path}/accept")).status == 200
    assert "shows another product" not in (await visitor.get(path)).text


async def test_an_image_is_shown_and_nothing_more(visitor: Visitor, catalog: Catalog) -> None:
    where = f"/products/{catalog.product_id}/images"
    async with visitor.session.get(f"{where}/0") as found:
        assert (found.status, found.headers["Content-Type"]) == (200, "image/gif")
        assert "sandbox" in found.headers["Content-Security-Policy"]
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        etag = found.headers["ETag"]
    async with visitor.session.get(f"{where}/0", headers={"If-None-Match": etag}) as same:
        assert same.status == 304
    assert (await visitor.get(f"{where}/1")).status == 404


async def test_products_are_downloaded_as_they_are_filtered(
    visitor: Visitor, catalog: Catalog
) -> None:
    found = await visitor.get("/products/export", params={"domain": "shop.example"})
    assert found.status == 200
    assert "attachment" in found.headers["Content-Disposition"]
    assert found.text.count("https://shop.example/p/1") == 1


async def test_scopes_hold_for_the_catalog(
    visitor: Visitor, database: Database, catalog: Catalog
) -> None:
    reader = (await make_key(database, "reader", scope=Scope.READ)).text
    await visitor.sign_in(reader)
    for path in ("/products", "/tasks", "/errors", "/parsers", f"/products/{catalog.product_id}"):
        page = await visitor.get(path)
        assert page.status == 200
        assert "hx-confirm" not in page.text
    for path in ("/domains", "/proxies", "/webhooks", "/track"):
        assert (await visitor.get(path)).status == 403
    for path in ("/track", "/tasks/move", "/dead-letters/resolve"):
        assert (await visitor.act(path, {"move": "stop", "which": "all"})).status == 403
    operator = (await make_key(database, "operator", scope=Scope.OPERATE)).text
    await visitor.sign_in(operator)
    assert (await visitor.get("/proxies")).status == 200
    refused = [
        await visitor.act("/proxies", {"url": "http://proxy.example:1"}),
        await visitor.act(f"/proxies/{catalog.proxy_id}/move", {"move": "remove"}),
        await visitor.act("/domains/shop.example/set", {"delay": "1"}),
        await visitor.act("/webhooks", {"url": "https://a.example/"}),
        await visitor.act("/parsers/generic/rollout", {"version": "2"}),
        await visitor.act("/track", {"urls": "http://10.0.0.1/", "allow_private": "yes"}),
    ]
    assert [answer.status for answer in refused] == [403] * len(refused)


async def test_nothing_ticked_moves_nothing(
    visitor: Visitor, database: Database, catalog: Catalog, web_settings: Settings
) -> None:
    for which in ("ticked", "fitting", "domain", ""):
        moved = await visitor.act("/tasks/move", {"move": "stop", "which": which})
        assert moved.status == 422
        resolved = await visitor.act("/dead-letters/resolve", {"move": "drop", "which": which})
        assert resolved.status == 422
    assert (await visitor.act("/tasks/move", {"move": "remove", "which": "all"})).status == 422
    assert await count_letters(database, LetterFilter()) == 1


async def test_tasks_are_held_all_by_domain_and_one_by_one(
    visitor: Visitor, database: Database, catalog: Catalog
) -> None:
    await visitor.act("/tasks/move", {"move": "stop", "which": "all"})
    assert "All tasks are stopped" in (await visitor.get("/tasks")).text
    await visitor.act("/tasks/move", {"move": "resume", "which": "all"})
    fields = {"move": "pause", "which": "fitting", "domain": "shop.example"}
    await visitor.act("/tasks/move", fields)
    assert (await Domains(database).get("shop.example")).task_hold == Hold.PAUSED
    await visitor.act("/domains/shop.example/traffic", {"traffic": "resume"})
    assert (await Domains(database).get("shop.example")).task_hold is None
    done = await visitor.act(f"/tasks/{catalog.task_id}/move", {"move": "pause"})
    assert "s-paused" in done.text


async def test_a_part_of_a_url_moves_no_tasks(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    shop = await make_domain(database, "filter.example")
    for number in (1, 10, 11):
        await make_task(database, shop, url=f"https://filter.example/p/{number}")
    for url, held in (
        ("/p/1", 0),
        ("https://filter.example/p/1", 1),
        ("https://filter.example/p/1*", 3),
    ):
        question = f"Pause {held} matching task{'s' if held > 1 else ''}?"
        assert (question in (await visitor.get(f"/tasks?url={url}")).text) == (held > 0)
        await visitor.act("/tasks/move", {"move": "pause", "which": "fitting", "url": url})
        found = await Tasks(database, web_settings).list_tasks(Selection(on_hold=True))
        assert len(found.items) == held


async def test_dead_letters_are_tried_again_by_cause(
    visitor: Visitor, database: Database, catalog: Catalog
) -> None:
    fields = {"move": "retry", "which": "cause", "cause": "parse", "domain": "shop.example"}
    await visitor.act("/dead-letters/resolve", fields)
    assert await count_letters(database, LetterFilter()) == 0
    page = await visitor.get(f"/tasks/{catalog.task_id}")
    assert f"s-{TaskStatus.PENDING}" in page.text


async def test_addresses_are_tracked_and_the_bad_ones_named(
    visitor: Visitor, database: Database
) -> None:
    lines = "https://a.example/p/1\nnonsense\nhttps://a.example/p/2\n"
    done = await visitor.act("/track", {"urls": lines, "every": "6h", "priority": "2"})
    assert "Tracking 2 new pages" in done.text
    assert "1 line rejected; first: nonsense" in done.text
    none = await visitor.act("/track", {"urls": "http://10.0.0.1/p"})
    assert none.status == 422
    assert (await visitor.act("/track", {"urls": "https://b.example/", "every": "x"})).status == 422


async def test_products_have_thumbnails_and_trends_and_are_sorted(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    first, second = [await add_product(database, number) for number in (1, 2)]
    await store_image(database, web_settings, first)
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO price_history (product_id, price, currency, recorded_at)"
            " SELECT %s, price * 2, currency, now() - interval '1 day' FROM products WHERE id = %s",
            (first, first),
        )
        await connection.execute("UPDATE products SET price_change = -50 WHERE id = %s", (first,))
        await connection.execute("UPDATE products SET price = 1 WHERE id = %s", (second,))
    page = (await visitor.get("/products?sort=price")).text
    assert page.index(f'id="p-{second}"') < page.index(f'id="p-{first}"')
    assert 'aria-sort="ascending"' in page
    assert f'<img src="/products/{first}/images/0"' in page
    assert "-50 %" in page
    assert "Last prices of" in page


async def test_products_are_sorted_by_change_and_those_without_a_price_come_last(
    visitor: Visitor, database: Database
) -> None:
    bare, same, drop, rise = [await add_product(database, number) for number in range(4)]
    await execute(database, "UPDATE products SET price = NULL WHERE id = %s", bare)
    for product, change in ((drop, -20), (rise, 5)):
        statement = "UPDATE products SET price_change = %s WHERE id = %s"
        await execute(database, statement, change, product)
    for sort, expected in (
        ("change", [drop, same, rise, bare]),
        ("-change", [rise, same, drop, bare]),
    ):
        page = (await visitor.get(f"/products?sort={sort}")).text
        assert [int(each) for each in re.findall(r'id="p-(\d+)"', page)] == expected
        assert 'aria-sort="' in page


def test_each_order_of_products_has_a_heading() -> None:
    assert set(SORTS.values()) == set(ProductOrder) - {ProductOrder.NEWEST}


async def test_prices_in_different_currencies_are_not_sorted_as_numbers(
    visitor: Visitor, database: Database
) -> None:
    ids = [await add_product(database, number) for number in (1, 2, 3)]
    await execute(database, "UPDATE products SET currency = 'JPY' WHERE id = %s", ids[0])
    page = (await visitor.get("/products?sort=price")).text
    assert f'id="p-{ids[0]}"' not in page
    assert f'id="p-{ids[1]}"' in page
    assert "currency=JPY" in page
    of_yen = (await visitor.get("/products?sort=price&currency=JPY")).text
    assert f'id="p-{ids[0]}"' in of_yen
    assert "Products in other currencies" not in of_yen
