"""One product in full, its history, and exported files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from forager.amounts import amount_text
from forager.errors import InvalidInput, NotFound
from forager.extract.product.product import Availability, ProductImage
from forager.products import export
from forager.products.export import (
    ExportContent,
    ProductExport,
    ProductsExportFormat,
    export_products,
    export_size,
)
from forager.products.filters import Filters
from forager.products.items import item
from forager.products.price_history import price_history
from forager.products.service import product_stats, show_product
from products.catalog import CATALOG, product
from products.product_shop import LAMP, Shop, lamp


async def test_a_product_in_full(shop: Shop) -> None:
    image = ProductImage("https://shop.example/lamp.jpg", "A lamp")
    written = await shop.visit("lamp", replace(LAMP, images=(image,)))
    await shop.visit("lamp", lamp("4990"))
    for which in (str(written.product_id), shop.url("lamp"), "HTTPS://SHOP.example/lamp#top"):
        details = await show_product(shop.database, which)
        assert details.product.id == written.product_id
    shown = details.product
    assert (shown.name, shown.domain, shown.price) == (LAMP.name, shop.host, Decimal("49.9"))
    assert shown.evidence["price"]["origin"] == "json-ld:Product"
    assert shown.problems[0]["rule"] == "step"
    assert (shown.task_status, shown.task_id) == ("pending", await shop.task("lamp"))
    assert shown.next_crawl_at is not None
    assert [found.outcome for found in details.extractions] == ["suspect", "ok"]
    assert (details.history.changes, details.history.lowest) == (1, Decimal("49.9"))


async def test_what_is_not_there(shop: Shop) -> None:
    await shop.task("waiting")
    with pytest.raises(NotFound, match="its task is pending"):
        await show_product(shop.database, shop.url("waiting"))
    for which in ("17", "9" * 30, "https://shop.example/other"):
        with pytest.raises(NotFound, match="there is no product"):
            await show_product(shop.database, which)
    for which in ("", "javascript:1", "\0", "what?"):
        with pytest.raises(InvalidInput):
            await show_product(shop.database, which)


async def test_history(shop: Shop) -> None:
    written = await shop.visit("lamp", lamp("40"))
    await shop.visit("lamp", lamp("50"))
    await shop.visit("lamp", lamp("50", availability=Availability.OUT_OF_STOCK))
    await shop.visit("lamp", lamp("45"))
    await shop.visit("lamp", lamp("45", currency="USD"))
    await shop.visit("lamp", lamp("45", currency="USD"))
    page = await price_history(shop.database, str(written.product_id))
    changes = [(entry.price, entry.currency, entry.percent) for entry in page.items]
    assert changes == [
        (Decimal(45), "USD", None),
        (Decimal(45), "EUR", -10.0),
        (Decimal(50), "EUR", 0.0),
        (Decimal(50), "EUR", 25.0),
        (Decimal(40), "EUR", None),
    ]
    first = await price_history(shop.database, shop.url("lamp"), limit=3)
    rest = await price_history(shop.database, shop.url("lamp"), limit=3, cursor=first.next_cursor)
    assert [*first.items, *rest.items] == page.items
    assert rest.next_cursor is None
    later = page.items[0].recorded_at
    assert len((await price_history(shop.database, shop.url("lamp"), since=later)).items) == 1
    with pytest.raises(NotFound):
        await price_history(shop.database, "99")


async def test_stats(shop: Shop) -> None:
    await shop.stock(CATALOG)
    await shop.visit("sofa", replace(CATALOG["sofa"], price=Decimal(9001)))
    stats = await product_stats(shop.database)
    assert (stats.counts.products, stats.counts.priced, stats.counts.with_problems) == (5, 4, 1)
    assert stats.availability == [("in_stock", 4), ("out_of_stock", 1)]
    assert stats.problems == [("price", "step", 1)]
    assert stats.largest_domains == [(shop.host, 5)]


ODD = product('=HYPERLINK("x"), "quoted"\nnext line; ü', "1234.5", brand="a,b")


async def exported(shop: Shop, format_: ProductsExportFormat, **more: Any) -> bytes:
    file = io.BytesIO()
    count = await export_products(shop.database, ProductExport(format_, **more), file)
    assert count == more.get("expected", count)
    return file.getvalue()


@pytest.mark.parametrize("chunk", [2, 1000])
async def test_files_are_read_back(shop: Shop, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CHUNK", chunk)
    for name, made in (CATALOG | {"odd": ODD}).items():
        await shop.visit(name, made)
    odd = '=HYPERLINK("x"), "quoted" next line; ü'
    lines = (await exported(shop, ProductsExportFormat.JSONL)).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["name"] for row in rows] == ["Chair", "Bar stool", "Sofa", "Lamp", "Rug", odd]
    assert (rows[5]["price"], rows[3]["price"], rows[0]["price"]) == ("1234.50", None, "120")

    text = (await exported(shop, ProductsExportFormat.CSV)).decode()
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["name"] for row in table] == [row["name"] for row in rows]
    assert (table[5]["price"], table[3]["price"], table[5]["brand"]) == ("1234.50", "", "a,b")

    binary = await exported(shop, ProductsExportFormat.PARQUET)
    parquet = pyarrow.parquet.read_table(io.BytesIO(binary)).to_pylist()
    assert [row["name"] for row in parquet] == [row["name"] for row in rows]
    assert (parquet[5]["price"], parquet[3]["price"]) == (Decimal("1234.5"), None)
    assert parquet[0]["created_at"].isoformat().replace("+00:00", "Z") == rows[0]["created_at"]


async def test_files_of_histories_and_of_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "SMALL_CHUNK", 1)
    for format_ in ProductsExportFormat:
        assert isinstance(await exported(shop, format_), bytes)
    await shop.stock(CATALOG)
    await shop.visit("sofa", replace(CATALOG["sofa"], price=Decimal(450)))
    filters = Filters(brand="Pine")
    rows = [
        json.loads(line)
        for line in (
            await exported(
                shop, ProductsExportFormat.JSONL, content=ExportContent.HISTORY, filters=filters
            )
        ).splitlines()
    ]
    assert [(row["price"], row["percent"]) for row in rows] == [("900", None), ("450", -50.0)]
    text = (await exported(shop, ProductsExportFormat.CSV, content=ExportContent.HISTORY)).decode()
    assert len(list(csv.DictReader(io.StringIO(text, newline="")))) == 6
    since = datetime.now(UTC) + timedelta(days=1)
    later = await exported(
        shop, ProductsExportFormat.JSONL, content=ExportContent.HISTORY, since=since
    )
    assert later == b""
    binary = await exported(shop, ProductsExportFormat.PARQUET, content=ExportContent.HISTORY)
    assert pyarrow.parquet.read_table(io.BytesIO(binary)).num_rows == 6
    assert await export_size(shop.database, ProductExport(ProductsExportFormat.CSV, filters)) == 1


async def test_files_of_movers_items_and_the_price_index(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "SMALL_CHUNK", 2)
    monkeypatch.setattr(item, "PORTION", 2)
    await shop.stock(CATALOG)
    await shop.visit("sofa", replace(CATALOG["sofa"], price=Decimal(450)))

    async def rows(content: ExportContent, **more: Any) -> list[dict[str, Any]]:
        table = (await exported(shop, ProductsExportFormat.CSV, content=content, **more)).decode()
        binary = await exported(shop, ProductsExportFormat.PARQUET, content=content, **more)
        found = list(csv.DictReader(io.StringIO(table, newline="")))
        assert pyarrow.parquet.read_table(io.BytesIO(binary)).num_rows == len(found)
        return found

    [moved] = await rows(ExportContent.CHANGES)
    assert (moved["name"], moved["old_price"], moved["price"], moved["percent"]) == (
        "Sofa", "900", "450", "-50.0",
    )  # fmt: skip
    assert await rows(ExportContent.CHANGES, filters=Filters(brand="nobody")) == []
    assert await rows(ExportContent.CHANGES, since=datetime.now(UTC) + timedelta(days=1)) == []
    items = await rows(ExportContent.ITEMS)
    assert len(items) == len({each["item"] for each in items}) == len(CATALOG)
    assert "450" in [each["best_price"] for each in items]
    [sofa] = await rows(ExportContent.ITEMS, filters=Filters(brand="Pine"))
    assert sofa["shops"] == "1"
    today = datetime.now(UTC).date().isoformat()
    assert {each["day"] for each in await rows(ExportContent.INDEX)} == {today}


@pytest.mark.parametrize(
    ("value", "text"),
    [("49.9000", "49.90"), ("5.0000", "5"), ("0.0050", "0.005"), ("1E+2", "100"), ("7", "7")],
)
def test_amounts_are_short_and_exact(value: str, text: str) -> None:
    assert amount_text(Decimal(value)) == text
