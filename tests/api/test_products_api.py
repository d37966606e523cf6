"""Products over HTTP: what is asked for, nothing else, and files that are only files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from api.client import Api
from forager.access.caller import Scope
from forager.api.services import AUDITS
from forager.api.streams import DOWNLOADS
from forager.db.database import Database
from forager.settings import Settings
from images.stored_image import PIXEL, store_image
from products.product_shop import HOST, Shop, lamp

NASTY = "'; DROP TABLE products; -- <img src=x onerror=alert(1)> {{7*7}} \x1b[31m \u202e %s"

Keyed = Callable[..., Awaitable[Api]]


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()


@pytest.fixture
async def stocked(shop: Shop) -> Shop:
    """Twenty-five lamps, of 10.50 to 34.50."""
    lamps = {
        f"lamp-{n:02}": lamp(f"{10 + n}.50", name=f"Lamp number{n}", sku=f"L-{n}")
        for n in range(25)
    }
    await shop.stock(lamps)
    return shop


async def names(api: Api, query: str = "", **parameters: Any) -> list[str]:
    answer = await api.get(f"/api/v1/products{query}", params=parameters or None)
    assert answer.status == 200, answer.body
    return [item["name"] for item in answer.json["items"]]


# --- lists -------------------------------------------------------------------------------------


async def test_twenty_to_a_page_and_each_product_once(api: Api, stocked: Shop) -> None:
    first = (await api.get("/api/v1/products")).json
    assert len(first["items"]) == 20
    rest = (await api.get(f"/api/v1/products?cursor={first['next_cursor']}")).json
    assert (len(rest["items"]), rest["next_cursor"]) == (5, None)
    ids = [item["id"] for item in first["items"] + rest["items"]]
    assert ids == sorted(ids, reverse=True)
    other = await api.get(f"/api/v1/products?order=name&cursor={first['next_cursor']}")
    assert (other.status, other.is_problem) == (422, True)


async def test_all_filters(api: Api, stocked: Shop) -> None:
    await stocked.visit("odd", lamp("99.00", name="Odd one", brand="Oddly", currency="USD",
                                    availability="out_of_stock", rating=Decimal(2),
                                    category=("Garden", "Lamps")))  # fmt: skip
    for query, count in (
        ("?min_price=34&max_price=40&currency=eur", 1),
        ("?availability=out_of_stock&availability=limited", 1),
        ("?min_rating=4&limit=100", 25),
        ("?brand=oddly", 1),
        ("?category=Garden > Lamps", 1),
        (f"?domain={HOST}&limit=100", 26),
        ("?changed_since=2099-01-01", 0),
        ("?changed_since=2001-01-31T12:00:00%2B02:00&limit=100", 26),
        ("?has_problems=true", 0),
        ("?sku=L-7", 1),
        ("?gtin=4006381333931&limit=100", 26),
    ):
        assert len(await names(api, query)) == count, query
    assert await names(api, "?order=dearest&limit=1") == ["Odd one"]
    for query in ("?min_price=-1", "?min_price=9&max_price=1", "?availability=often", "?limit=0",
                  "?changed_since=yesterday", "?gtin=12", "?cursor=AAAA"):  # fmt: skip
        assert (await api.get(f"/api/v1/products{query}")).status == 422, query
    assert (await api.get("/api/v1/products?domain=nowhere.example")).status == 404


async def test_search(api: Api, stocked: Shop) -> None:
    assert await names(api, q="number7") == ["Lamp number7"]
    first = (await api.get("/api/v1/products?q=lamp&limit=10")).json
    following = (
        await api.get(f"/api/v1/products?q=lamp&limit=10&cursor={first['next_cursor']}")
    ).json
    seen = {item["id"] for item in first["items"] + following["items"]}
    assert len(seen) == 20
    assert await names(api, q=NASTY, brand=NASTY, category=NASTY, sku=NASTY) == []
    assert (await api.get("/api/v1/products?q=lamp&order=name")).status == 422
    nothing = (await api.get("/api/v1/products", params={"q": "-"})).json
    assert nothing["note"] is not None


# --- one ---------------------------------------------------------------------------------------


async def test_a_product_in_full(api: Api, shop: Shop) -> None:
    written = await shop.visit("lamp", lamp("49.90", name=NASTY.replace("\x1b", "")))
    await shop.visit("lamp", lamp("44.90", name=NASTY.replace("\x1b", "")))
    answer = await api.get(f"/api/v1/products/{written.product_id}")
    found = answer.json
    assert (found["price"], found["currency"], found["rating"]) == ("44.90", "EUR", "4.50")
    assert found["evidence"]["price"] == {
        "confidence": 0.9,
        "origin": "json-ld:Product",
        "place": None,
    }
    assert "<img" in found["name"]
    assert answer.headers["Content-Type"] == "application/json"
    assert found["history"]["lowest"] == "44.90"
    assert found["extractions"][0]["outcome"] == "ok"
    by_url = await api.get("/api/v1/products/by-url", params={"url": shop.url("lamp")})
    assert by_url.json == found
    history = (await api.get(f"/api/v1/products/{found['id']}/history?limit=1")).json
    assert [change["price"] for change in history["items"]] == ["44.90"]
    assert history["items"][0]["percent"] == -10.02
    older = await api.get(
        f"/api/v1/products/{found['id']}/history?cursor={history['next_cursor']}&limit=1"
    )
    assert [change["price"] for change in older.json["items"]] == ["49.90"]
    for path in ("999", "999/history", "999/images/0", "by-url?url=https://a.example/"):
        assert (await api.get(f"/api/v1/products/{path}")).status == 404, path
    for path in ("x", "0", "99999999999999999999", "by-url?url=7"):
        assert (await api.get(f"/api/v1/products/{path}")).status == 422, path


async def test_a_doubtful_field_says_why(api: Api, shop: Shop) -> None:
    await shop.visit("lamp", lamp("49.90"))
    written = await shop.visit("lamp", lamp("4990.00"))
    found = (await api.get(f"/api/v1/products/{written.product_id}")).json
    assert [(p["field"], p["severity"]) for p in found["problems"]] == [("price", "doubt")]
    assert found["price"] == "49.90"
    assert [item["problems"] for item in (await api.get("/api/v1/products")).json["items"]] == [1]


async def test_images_are_shown_and_nothing_more(
    api: Api, shop: Shop, database: Database, settings: Settings
) -> None:
    written = await shop.visit("lamp", lamp())
    assert written.product_id is not None
    await store_image(database, settings, written.product_id)
    images = (await api.get(f"/api/v1/products/{written.product_id}")).json["images"]
    assert [image["status"] for image in images] == ["stored", "pending"]
    assert images[1]["file"] is None
    assert "path" not in images[0]
    shown = await api.get(images[0]["file"])
    assert (shown.status, shown.body) == (200, PIXEL)
    assert shown.headers["Content-Type"] == "image/gif"
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    known = {"If-None-Match": shown.headers["ETag"]}
    assert (await api.get(images[0]["file"], headers=known)).status == 304
    base = f"/api/v1/products/{written.product_id}/images"
    for path in (f"{base}/1", f"{base}/2"):
        assert (await api.get(path)).status == 404
    for path in (f"{base}/..%2f..%2fsecret.key", f"{base}/-1"):
        assert (await api.get(path)).status in (404, 422)


async def test_only_pixels_are_shown(
    api: Api, shop: Shop, database: Database, settings: Settings
) -> None:
    written = await shop.visit("lamp", lamp())
    assert written.product_id is not None
    await store_image(database, settings, written.product_id)
    await shop.rows("UPDATE image_files SET media_type = 'text/html' RETURNING 1")
    assert (await api.get(f"/api/v1/products/{written.product_id}/images/0")).status == 404


# --- files -------------------------------------------------------------------------------------


async def test_exports(api: Api, stocked: Shop) -> None:
    table = await api.get("/api/v1/products/export?format=csv&min_price=30")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert table.headers["Content-Disposition"] == 'attachment; filename="products.csv"'
    assert table.headers["X-Content-Type-Options"] == "nosniff"
    rows = list(csv.DictReader(io.StringIO(table.body.decode())))
    assert sorted(row["price"] for row in rows) == ["30.50", "31.50", "32.50", "33.50", "34.50"]
    lines = (await api.get("/api/v1/products/export")).body.decode().splitlines()
    assert len([json.loads(line) for line in lines]) == 25
    histories = await api.get("/api/v1/products/export?content=history&since=2001-01-01")
    assert len(histories.body.splitlines()) == 25
    items = await api.get("/api/v1/products/export?content=items")
    assert len(items.body.splitlines()) == 1
    nothing = await api.get("/api/v1/products/export?brand=none")
    assert (nothing.status, nothing.body) == (200, b"")


async def test_a_parquet_file(api: Api, stocked: Shop) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    answer = await api.get("/api/v1/products/export?format=parquet")
    table = parquet.read_table(io.BytesIO(answer.body))
    assert (table.num_rows, str(min(table.column("price").to_pylist()))) == (25, "10.5000")


async def test_an_export_that_cannot_be_made_is_an_error_and_no_file(api: Api, shop: Shop) -> None:
    for query, status in (
        ("?domain=nowhere.example", 404),
        ("?since=2001-01-01", 422),
        ("?format=../../etc/passwd", 422),
        ("?min_price=2&max_price=1", 422),
    ):
        answer = await api.get(f"/api/v1/products/export{query}")
        assert (answer.status, answer.is_problem) == (status, True), query
    with DOWNLOADS.taken(), DOWNLOADS.taken(), DOWNLOADS.taken(), DOWNLOADS.taken():
        busy = await api.get("/api/v1/products/export")
        assert (busy.status, busy.is_problem) == (429, True)
    assert (await api.get("/api/v1/products/export?output=/tmp/x")).status == 422
    assert (await api.get("/api/v1/products/export")).status == 200


# --- all ---------------------------------------------------------------------------------------


async def test_numbers(api: Api, stocked: Shop) -> None:
    found = (await api.get("/api/v1/products/stats")).json
    assert (found["counts"]["products"], found["counts"]["priced"]) == (25, 25)
    assert found["currencies"] == [{"value": "EUR", "products": 25}]


async def test_audits(api: Api, stocked: Shop) -> None:
    assert (await api.get("/api/v1/products/audit")).status == 404
    await stocked.rows("UPDATE products SET price = 1 WHERE sku = 'L-1' RETURNING 1")
    made = (await api.post("/api/v1/products/audit")).json
    assert ("prices_differ", 1) in [(f["check"], f["count"]) for f in made["findings"]]
    last = (await api.get("/api/v1/products/audit")).json
    assert last["findings"] == made["findings"]
    with AUDITS.taken():
        assert (await api.post("/api/v1/products/audit")).status == 429


async def test_readers_read_and_others_do_not(keyed: Keyed, address: str, shop: Shop) -> None:
    reader = await keyed(Scope.READ)
    async with Api(address) as stranger:
        for path in ("", "/export", "/stats", "/1", "/1/images/0"):
            assert (await stranger.get(f"/api/v1/products{path}")).status == 401
    assert (await reader.get("/api/v1/products")).status == 200
    assert (await reader.post("/api/v1/products/audit")).status == 403
