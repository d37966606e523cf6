"""`forager products`, from the command to the tables."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
from psycopg import connect

from forager.cli.model_flags import moment
from forager.cli.products.product_views import HEIGHT, WIDTH, chart
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.extract.product.product import Product, ProductImage
from forager.products.price_history import PriceEntry
from forager.settings import Settings
from products.product_shop import LAMP, Shop, lamp
from support import cli

pytestmark = pytest.mark.usefixtures("command_line")

forager = partial(cli.forager, "products")


HOSTILE = replace(LAMP, name="Lamp \x1b[31mred\x07\nsecond", brand="[bold]x[/bold]")


@pytest.fixture
def visit(database_url: str, settings: Settings) -> Visits:
    return Visits(database_url, settings)


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits a shop without an event loop around: commands start their own."""

    url: str
    settings: Settings

    def __call__(self, *visits: tuple[str, Product]) -> None:
        asyncio.run(self._visit(visits))

    def execute(self, *statements: str) -> None:
        with connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    async def _visit(self, visits: Sequence[tuple[str, Product]]) -> None:
        async with Database(self.url) as database:
            shop = await Shop(database, self.settings).open()
            for name, product in visits:
                await shop.visit(name, product)


def test_lists_filters_and_pages(visit: Visits) -> None:
    assert "There are no such products" in forager("list").err
    visit(("a", lamp(name="Lamp A")), ("b", lamp("9.5", name="Lamp B")), ("c", HOSTILE))
    listed = forager("list", "--json").json
    assert [item["name"] for item in listed["items"]][1:] == ["Lamp B", "Lamp A"]
    assert (listed["items"][1]["price"], listed["next_cursor"]) == ("9.50", None)
    cheap = forager("list", "--max-price", "10", "--availability", "in_stock", "--json").json
    assert [item["name"] for item in cheap["items"]] == ["Lamp B"]
    first = forager("list", "--order", "cheapest", "--limit", "2", "--json").json
    rest = forager("list", "--order", "cheapest", "--cursor", first["next_cursor"], "--json").json
    assert len(first["items"]) + len(rest["items"]) == 3
    people = forager("list", "--limit", "2")
    assert "EUR 9.50" in people.out
    assert "\x1b[31m" not in people.out
    assert "[bold]x[/bold]" in people.out
    assert "--cursor" in people.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--min-price", "cheap"),
        ("list", "--availability", "soon"),
        ("list", "--changed-since", "lately"),
        ("list", "--cursor", "nonsense"),
        ("list", "--domain", "nowhere.example"),
        ("show", "17"),
        ("history", "nothing at all"),
        ("export", "--since", "1d"),
        ("export", "--content", "items", "--since", "1d"),
        ("export", "--history", "--content", "items"),
    ],
)
def test_invalid_arguments_are_reported(arguments: tuple[str, ...]) -> None:
    answer = forager(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err


def test_a_product_in_full(visit: Visits) -> None:
    image = ProductImage("https://shop.example/lamp.jpg", "A lamp")
    visit(("lamp", replace(LAMP, images=(image,))), ("lamp", lamp("4990", images=(image,))))
    [item] = forager("list", "--problems", "--json").json["items"]
    shown = forager("show", str(item["id"]))
    for part in ("Brass Desk Lamp", "EUR 49.90", "json-ld:Product", "90%", "the price was 49.9",
                 "lamp.jpg", "suspect", "Home > Lighting", "next visit"):  # fmt: skip
        assert part in shown.out, part
    full = forager("show", item["url"], "--json").json
    assert full["price"] == "49.90"
    assert full["problems"][0]["field"] == "price"
    assert [found["outcome"] for found in full["extractions"]] == ["suspect", "ok"]


def test_history_with_a_chart(visit: Visits) -> None:
    visit(*[("lamp", lamp(price)) for price in ("50", "40", "44")])
    answered = forager("history", "https://shop.example/lamp")
    assert "-20.0 %" in answered.out
    assert "+10.0 %" in answered.out
    assert "█" in answered.out
    entries = forager("history", "https://shop.example/lamp", "--json").json["items"]
    assert [(entry["price"], entry["percent"]) for entry in entries] == [
        ("44", 10.0), ("40", -20.0), ("50", None)
    ]  # fmt: skip
    assert forager("history", "https://shop.example/lamp", "--since", "2999-01-01").out == ""


def test_search(visit: Visits) -> None:
    visit(("a", lamp(name="Brass lamp")), ("b", lamp(name="Steel lamp", description=None)))
    found = forager("search", "brass", "lamps", "--json").json
    assert [item["name"] for item in found["items"]] == ["Brass lamp"]
    assert "Steel lamp" in forager("search", "--min-price", "10", "--", "lamp", "-brass").out
    assert "Nothing matches" in forager("search", "teapot").err


def test_files(visit: Visits, tmp_path: Path) -> None:
    visit(("a", lamp(name="A")), ("b", lamp("9.5", name='B, "b"')), ("a", lamp("44", name="A")))
    table = list(csv.DictReader(io.StringIO(forager("export", "--format", "csv").out, newline="")))
    assert [(row["name"], row["price"]) for row in table] == [("A", "44"), ('B, "b"', "9.50")]
    target = tmp_path / "products.parquet"
    written = forager("export", "-f", "parquet", "-o", str(target), "--max-price", "10")
    assert "1 row written" in written.err
    assert pyarrow.parquet.read_table(target)["price"].to_pylist() == [Decimal("9.5")]
    assert forager("export", "-f", "parquet", "-o", str(target)).code == 4
    assert forager("export", "-f", "parquet", "-o", str(target), "--force").code == 0
    lines = forager("export", "--history", "--since", "1d").out.splitlines()
    assert [json.loads(line)["price"] for line in lines] == ["49.90", "44", "9.50"]
    [moved] = forager("export", "--content", "changes", "--since", "1d").out.splitlines()
    assert json.loads(moved)["percent"] == -11.82
    assert "1 row written" in forager("export", "--content", "items").err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [target.name]


def test_unseen_products_are_exported_and_deleted(visit: Visits, tmp_path: Path) -> None:
    visit(("a", lamp(name="A")), ("b", lamp(name="B")))
    before_visit = "UPDATE products SET last_seen_at = now() - interval '181 days'"
    visit.execute(f"{before_visit} WHERE product_name = 'A'", "DELETE FROM crawl_tasks")
    target = str(tmp_path / "gone.jsonl")
    unseen = ("export", "--delete", "--yes", "--not-seen-for", "180d")
    for wrong in (
        unseen,
        (*unseen, "-o", "/dev/null"),
        (*unseen, "-o", target, "--history"),
        (*unseen, "-o", target, "--columns", "url"),
        ("export", "--delete", "--yes", "-o", target),
    ):
        assert forager(*wrong).code == 2
    assert "1 product deleted" in forager(*unseen, "-o", target).err
    assert [item["name"] for item in forager("list", "--json").json["items"]] == ["B"]
    row = json.loads(Path(target).read_text())
    assert (row["name"], json.loads(row["price_history"])[0]["price"]) == ("A", 49.9)
    # the file brings the page back
    assert "1 task added" in forager("track", "--from", target).out


def test_numbers(visit: Visits) -> None:
    assert "adds the first" in forager("stats").err
    visit(("a", lamp()), ("b", lamp("1")))
    assert "price: placeholder" in forager("stats").out
    assert forager("stats", "--json").json["counts"]["priced"] == 1


# --- the chart and the times ---------------------------------------------------------------------

START = datetime(2026, 1, 1, tzinfo=UTC)


def entry(price: str | None, day: float, currency: str = "EUR") -> PriceEntry:
    amount = None if price is None else Decimal(price)
    return PriceEntry(1, 1, amount, None, currency, None, START + timedelta(days=day), None)


def test_a_chart_is_as_high_as_its_prices() -> None:
    entries = [entry("10", 0), entry(None, 2), entry("20", 5), entry("15", 7.5)]
    lines = chart(entries, now=START + timedelta(days=10))
    assert len(lines) == HEIGHT + 1
    top, *_, bottom, axis = lines
    assert top.startswith("20 ")
    assert bottom.startswith("10 ")
    assert len(bottom) == 3 + WIDTH
    assert bottom[3:].count("▁") == WIDTH // 2
    assert "2026-01-01" in axis


def test_no_chart_without_a_change() -> None:
    assert chart([]) == []
    assert chart([entry("10", 0), entry(None, 1), entry("10", 2)]) == []
    assert chart([entry("10", 0, "USD"), entry("12", 1)]) == []


def test_moments() -> None:
    assert moment("2026-01-31T12:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    ago = moment("2d")
    assert ago is not None
    assert timedelta(days=2) <= datetime.now(UTC) - ago < timedelta(days=3)
    assert moment(None) is None
    with pytest.raises(InvalidInput):
        moment("yesterday")
