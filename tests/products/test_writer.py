"""The writer of products: what a visit changes in every table, and what it leaves alone."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forager.db.database import Database
from forager.extract.product.page import open_page
from forager.extract.product.record import (
    Availability,
    Evidence,
    Product,
    ProductImage,
    Variant,
)
from forager.parsers.registry import parse_product
from forager.products.content import ProductContent
from forager.products.service import show_product
from forager.products.writer import ReadPage, touch_unchanged, write_pages
from forager.settings import Settings
from products.product_shop import LAMP, Shop, lamp

HISTORY = """
    SELECT price, list_price, currency, availability FROM price_history ORDER BY recorded_at, id
"""
EVENTS = "SELECT kind, payload FROM catalog_events ORDER BY id"
MOMENTS = (
    "SELECT created_at, updated_at, last_seen_at, price_changed_at, content_hash FROM products"
)


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()


async def test_a_first_visit_makes_a_product(shop: Shop) -> None:
    written = await shop.visit("lamp", LAMP, final_url="https://shop.example/lamps/1")
    assert (written.outcome, written.is_new, written.content_changed) == ("ok", True, False)
    row = await shop.row(
        """
        SELECT product_name, price, list_price, currency, availability, rating, brand, category,
               sku, gtin, evidence, problems, metadata, parser, price_changed_at,
               created_at = updated_at
          FROM products WHERE id = %s
        """,
        written.product_id,
    )
    assert row == (
        "Brass Desk Lamp", Decimal("49.9"), Decimal("59.9"), "EUR", "in_stock", Decimal("4.5"),
        "Lumen & Sons", "Home > Lighting > Desk lamps", "BL-100", "4006381333931",
        {"name": {"confidence": 0.8, "origin": "dom:h1"},
         "price": {"confidence": 0.9, "origin": "json-ld:Product"}},
        [], {}, "generic", None, True,
    )  # fmt: skip
    assert await shop.rows(HISTORY) == [(Decimal("49.9"), Decimal("59.9"), "EUR", "in_stock")]
    [(kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.added"
    assert (payload["name"], payload["price"], payload["currency"]) == (
        "Brass Desk Lamp",
        "49.90",
        "EUR",
    )
    extraction = await shop.row(
        "SELECT product_id, outcome, confidence, fields, segment, role FROM extractions"
    )
    assert extraction[:3] == (written.product_id, "ok", 0.9)
    assert (extraction[3]["price"], extraction[3]["category"][0]) == ("49.90", "Home")
    assert extraction[4:] == ("segment", "active")
    assert await shop.row("SELECT pages, good FROM parse_rates") == (1, 1)


async def test_a_visit_without_changes_moves_last_seen_alone(shop: Shop) -> None:
    await shop.visit("lamp", LAMP)
    before = await shop.row(MOMENTS)
    written = await shop.visit("lamp", replace(LAMP, price=Decimal("49.9")))
    after = await shop.row(MOMENTS)
    assert (written.is_new, written.content_changed, written.price_changed) == (False,) * 3
    assert (after[0], after[1], after[3], after[4]) == (before[0], before[1], before[3], before[4])
    assert after[2] > before[2]
    assert len(await shop.rows(HISTORY)) == len(await shop.rows(EVENTS)) == 1


async def test_a_changed_price_is_told_everywhere(shop: Shop) -> None:
    await shop.visit("lamp", lamp("49.90"))
    before = await shop.row(MOMENTS)
    written = await shop.visit("lamp", lamp("39.92"))
    assert (written.content_changed, written.price_changed, written.availability_changed) == (
        True, True, False
    )  # fmt: skip
    after = await shop.row(MOMENTS)
    assert after[1] > before[1]
    assert after[3] == after[1]
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal("49.9"), Decimal("39.92")]
    [_, (kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.price_changed"
    assert {key: payload[key] for key in ("old", "new", "currency", "percent")} == {
        "old": "49.90", "new": "39.92", "currency": "EUR", "percent": -20.0
    }  # fmt: skip


def page_with(price: str, *, shown: str = "") -> Product:
    """What is read of a page whose data say this price; `shown` is what people see."""
    data = orjson.dumps(
        {
            "@context": "https://schema.org",
            "@type": "Product",
            "name": "Brass Desk Lamp",
            "sku": "BL-100",
            "offers": {"@type": "Offer", "price": price, "priceCurrency": "EUR"},
        }
    ).decode()
    body = f"<script type='application/ld+json'>{data}</script><h1>Brass Desk Lamp</h1>{shown}"
    page = open_page(body.encode(), "https://shop.example/lamp", "text/html")
    return parse_product(page).product


@pytest.mark.parametrize("price", ["10000000000", "99999999999.99", "1e20", "1" * 25])
async def test_an_amount_that_no_column_holds_is_kept_and_marked(shop: Shop, price: str) -> None:
    await shop.visit("lamp", page_with("49.90"))
    written = await shop.visit("lamp", page_with(price))
    assert (written.outcome, written.price_changed) == ("suspect", False)
    [said] = await shop.rows("SELECT fields->>'price' FROM extractions ORDER BY id DESC LIMIT 1")
    assert Decimal(said[0]) == Decimal(price)
    assert written.product_id is not None
    shown = (await show_product(shop.database, str(written.product_id))).product
    [problem] = shown.problems
    assert (problem["field"], problem["rule"]) == ("price", "size")
    # the one that was known stays, in the history as well
    assert shown.price == Decimal("49.9")
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal("49.9")]
    back = await shop.visit("lamp", page_with("45"))
    assert (back.outcome, back.price_changed) == ("ok", True)


async def test_a_first_price_that_no_column_holds_is_marked(shop: Shop) -> None:
    written = await shop.visit("lamp", page_with("99999999999.99"))
    assert (written.outcome, [p.rule for p in written.problems]) == ("suspect", ["size"])
    assert [row[0] for row in await shop.rows(HISTORY)] == [None]
    assert [kind for kind, _ in await shop.rows(EVENTS)] == ["product.added"]


async def test_what_people_see_counts_before_an_amount_that_cannot_be(shop: Shop) -> None:
    seen = "<p class='price'>€ 49.90</p><button>Add to cart</button>"
    written = await shop.visit("lamp", page_with("4006381333931", shown=seen))
    assert (written.outcome, written.problems) == ("ok", ())
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal("49.9")]


async def test_prices_of_variants_that_cannot_be_are_marked(shop: Shop) -> None:
    costly = Variant(name="large", price=Decimal("1e12"), currency="EUR")
    written = await shop.visit("lamp", replace(LAMP, variants=(costly,)))
    [problem] = written.problems
    assert (problem.field, problem.rule, problem.severity) == ("variants", "size", "warning")
    assert "1000000000000" in problem.message.replace("E+12", "000000000000")


async def test_every_part_of_the_offer_has_its_history(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    changed = await shop.visit("lamp", lamp(list_price=Decimal(60)))
    assert (changed.content_changed, changed.price_changed) == (True, False)
    sold_out = await shop.visit(
        "lamp", lamp(list_price=Decimal(60), availability=Availability.OUT_OF_STOCK)
    )
    assert (sold_out.availability_changed, sold_out.price_changed) == (True, False)
    assert await shop.rows(HISTORY) == [
        (Decimal("49.9"), None, "EUR", "in_stock"),
        (Decimal("49.9"), Decimal(60), "EUR", "in_stock"),
        (Decimal("49.9"), Decimal(60), "EUR", "out_of_stock"),
    ]
    [_, (kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.availability_changed"
    assert (payload["old"], payload["new"]) == ("in_stock", "out_of_stock")
    assert (await shop.row(MOMENTS))[3] is None


@pytest.mark.parametrize(
    "change", [{"rating": Decimal("4.6")}, {"review_count": 13}, {"name": "Steel Desk Lamp"}]
)
async def test_other_content_moves_updated_at_and_no_history(
    shop: Shop, change: dict[str, Any]
) -> None:
    await shop.visit("lamp", LAMP)
    written = await shop.visit("lamp", replace(LAMP, **change))
    assert (written.content_changed, written.price_changed) == (True, False)
    assert len(await shop.rows(HISTORY)) == len(await shop.rows(EVENTS)) == 1


async def test_evidence_and_images_are_not_content(shop: Shop) -> None:
    await shop.visit("lamp", LAMP)
    image = ProductImage("https://cdn.example/lamp.jpg?v=2")
    seen = replace(LAMP, evidence={"price": Evidence(0.5, "dom:price")}, images=(image,))
    assert not (await shop.visit("lamp", seen, version="2")).content_changed
    row = await shop.row("SELECT evidence->'price'->>'origin', parser_version FROM products")
    assert row == ("dom:price", "2")
    assert await shop.rows("SELECT image_url FROM images") == [(image.url,)]


async def test_an_implausible_price_waits_until_it_is_seen_again(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    held = await shop.visit("lamp", lamp("4990"))
    assert (held.outcome, held.price_changed, held.content_changed) == ("suspect", False, False)
    [problem] = held.problems
    assert (problem.field, problem.rule) == ("price", "step")
    price, problems = await shop.row("SELECT price, problems FROM products")
    assert (price, problems[0]["rule"]) == (Decimal("49.9"), "step")
    assert len(await shop.rows(HISTORY)) == len(await shop.rows(EVENTS)) == 1

    confirmed = await shop.visit("lamp", lamp("4990"))
    assert (confirmed.outcome, confirmed.price_changed, confirmed.problems) == ("ok", True, ())
    assert await shop.row("SELECT price, problems FROM products") == (Decimal(4990), [])
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal("49.9"), Decimal(4990)]
    assert await shop.rows("SELECT outcome, fields->>'price' FROM extractions ORDER BY id") == [
        ("ok", "49.90"), ("suspect", "4990"), ("ok", "4990")
    ]  # fmt: skip


async def test_a_doubt_passes_when_the_price_comes_back(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    before = await shop.row(MOMENTS)
    await shop.visit("lamp", lamp("0.02"))
    written = await shop.visit("lamp", lamp())
    assert written.outcome == "ok"
    assert await shop.row("SELECT problems FROM products") == ([],)
    assert (await shop.row(MOMENTS))[1] == before[1]
    assert len(await shop.rows(HISTORY)) == 1


async def test_other_content_of_a_suspect_visit_is_taken(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    written = await shop.visit("lamp", lamp("4990", name="Golden Desk Lamp"))
    assert (written.outcome, written.content_changed) == ("suspect", True)
    assert await shop.row("SELECT product_name, price FROM products") == (
        "Golden Desk Lamp", Decimal("49.9")
    )  # fmt: skip


async def test_a_domains_currency(database: Database, settings: Settings) -> None:
    shop = await Shop(database, settings).open(currency="EUR")
    first = await shop.visit("lamp", lamp(currency="USD"))
    assert (first.outcome, first.problems[0].rule) == ("suspect", "domain")
    assert await shop.row("SELECT price, currency FROM products") == (None, None)
    second = await shop.visit("lamp", lamp(currency=None))
    assert (second.outcome, second.price_changed) == ("ok", True)
    assert await shop.row("SELECT price, currency FROM products") == (Decimal("49.9"), "EUR")


async def test_incomplete_and_failed_pages_leave_an_extraction_alone(shop: Shop) -> None:
    known = await shop.visit("lamp", lamp())
    nameless = await shop.visit("lamp", lamp(name=None))
    broken = await shop.visit("lamp", None, error="IndexError: \0 list index out of range")
    blocked = await shop.visit("new", Product(name="Robot Check", confidence=0.4))
    assert [w.outcome for w in (nameless, broken, blocked)] == [
        "incomplete",
        "failed",
        "incomplete",
    ]
    assert [w.product_id for w in (nameless, broken, blocked)] == [None, None, None]
    assert nameless.reason == "the page has no name of a product"
    assert broken.reason == "IndexError:  list index out of range"
    assert await shop.rows("SELECT id, product_name FROM products") == [
        (known.product_id, "Brass Desk Lamp")
    ]
    rows = await shop.rows("SELECT outcome, error_message FROM extractions ORDER BY id")
    assert [row[0] for row in rows] == ["ok", "incomplete", "failed", "incomplete"]
    assert "Robot Check" in rows[3][1]
    assert await shop.row("SELECT pages, good FROM parse_rates") == (4, 1)


async def test_a_canary_writes_an_extraction_alone(shop: Shop) -> None:
    active = await shop.page("lamp", lamp())
    await shop.write(active)
    page = await shop.page("lamp", lamp("44"))
    canary = replace(page, product=lamp("4400"), version="2", role="canary")
    first, second = await shop.write(page, canary)
    assert (first.price_changed, second.price_changed) == (True, False)
    assert (first.outcome, second.outcome) == ("ok", "suspect")
    assert second.product_id == first.product_id
    assert await shop.row("SELECT price, parser_version FROM products") == (Decimal(44), "1")
    assert await shop.rows("SELECT role, outcome FROM extractions ORDER BY id DESC LIMIT 1") == [
        ("canary", "suspect")
    ]
    alone = await shop.visit("other", lamp(), role="canary")
    assert (alone.outcome, alone.product_id) == ("ok", None)
    assert len(await shop.rows("SELECT id FROM products")) == 1


async def test_the_last_of_a_url_counts(shop: Shop) -> None:
    pages = [await shop.page("lamp", lamp(price)) for price in ("10", "20", "30")]
    written = await shop.write(*pages, await shop.page("other", lamp()))
    assert [w.is_new for w in written] == [False, False, True, True]
    assert len({w.product_id for w in written[:3]}) == 1
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal(30), Decimal("49.9")]
    assert len(await shop.rows("SELECT id FROM extractions")) == 4


async def test_two_writers_of_one_url_make_one_history(shop: Shop) -> None:
    names = [f"lamp{number}" for number in range(40)]
    up = [await shop.page(name, lamp("20")) for name in names]
    down = [await shop.page(name, lamp("30")) for name in reversed(names)]
    await asyncio.gather(*(shop.write(*pages) for pages in (up, down) * 4))
    rows = await shop.rows("SELECT product_id, price FROM price_history ORDER BY recorded_at, id")
    current = dict(await shop.rows("SELECT id, price FROM products"))
    assert len(current) == 40
    for product_id, price in current.items():
        seen = [row[1] for row in rows if row[0] == product_id]
        assert seen[-1] == price
        assert all(old != new for old, new in pairwise(seen))
    added = await shop.rows("SELECT id FROM catalog_events WHERE kind = 'product.added'")
    assert len(added) == 40


async def test_what_has_not_changed_is_touched(shop: Shop, database: Database) -> None:
    await shop.stock({"lamp": lamp(), "other": lamp()})
    before = dict(await shop.rows("SELECT url, last_seen_at FROM products"))
    task = await shop.task("lamp")
    async with database.transaction() as connection:
        await touch_unchanged(connection, [task, 999_999])
        await touch_unchanged(connection, [])
    after = dict(await shop.rows("SELECT url, last_seen_at FROM products"))
    assert after[shop.url("lamp")] > before[shop.url("lamp")]
    assert after[shop.url("other")] == before[shop.url("other")]
    assert len(await shop.rows(HISTORY)) == 2


class Cancelled(Exception):
    pass


async def write_and_cancel(shop: Shop, page: ReadPage) -> None:
    async with shop.database.transaction() as connection:
        await write_pages(connection, [page], settings=shop.settings)
        raise Cancelled


async def test_a_product_follows_its_task_to_another_domain(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    other = await Shop(shop.database, shop.settings, host="example").open()
    written = await shop.visit("lamp", lamp(), domain_id=other.domain_id)
    assert not written.content_changed
    assert await shop.row("SELECT domain_id FROM products") == (other.domain_id,)


async def test_nothing_is_written_when_the_transaction_fails(shop: Shop) -> None:
    page = await shop.page("lamp", lamp())
    with pytest.raises(Cancelled):
        await write_and_cancel(shop, page)
    assert await shop.rows("SELECT id FROM products") == []
    assert await shop.rows("SELECT id FROM catalog_events") == []


# --- hostile values ---------------------------------------------------------------------------

HOSTILE = [
    "'; DROP TABLE products; --",
    "<script>alert(1)</script>",
    "a\0b",
    "lone \ud800 surrogate \udfff",
    "x" * 3_000_000,
    "wort " * 400_000,
    "\u202e‮ \x1b[31m \x07",
    "%s %(name)s {} \\ \\N \\x00",
    "🛋️" * 1000,
]


async def test_hostile_text_in_every_field(shop: Shop) -> None:
    for number, value in enumerate(HOSTILE):
        await visit_with(shop, f"page{number}", value)
    for name, length in (("product_name", 512), ("brand", 255), ("category", 255), ("sku", 100)):
        for (kept,) in await shop.rows(f"SELECT {name} FROM products"):
            assert kept is None or len(kept) <= length
    assert len(await shop.rows("SELECT id FROM extractions")) == 2 * len(HOSTILE)


async def test_what_a_terminal_would_obey_is_not_kept(shop: Shop) -> None:
    obeyed = "Red\x1b[31m\x9b1m\x7f Lamp"
    product = replace(
        LAMP,
        name=obeyed,
        description=f"{obeyed}\nfor desks",
        brand=obeyed,
        sku=obeyed,
        category=(obeyed,),
    )
    await shop.visit("lamp", product)
    kept = "Red [31m 1m Lamp"
    row = await shop.row("SELECT product_name, brand, sku, category, description FROM products")
    assert row == (kept, kept, kept, kept, "Red [31m 1m  Lamp\nfor desks")
    [(_, payload)] = await shop.rows(EVENTS)
    assert payload["name"] == kept
    written = await shop.visit("nothing", replace(LAMP, name="\x1b\x07"))
    assert written.outcome == "incomplete"


async def visit_with(shop: Shop, page: str, value: str) -> None:
    product = replace(
        LAMP,
        name=value,
        description=value,
        brand=value,
        sku=value,
        category=(value, "Lamps", value),
        images=(ProductImage(value, value), ProductImage(f"https://x.example/{value[:50]}", value)),
        variants=(Variant(sku=value, name=value, url=value, gtin=value, currency=value),) * 600,
        evidence={"name": Evidence(0.5, value), value[:40]: Evidence(float("nan"), value)},
        gtin=value,
        currency=value,
    )
    written = await shop.visit(
        page, product, final_url=value, parser=value, version=value, language=value
    )
    assert written.outcome in ("ok", "suspect", "incomplete")
    await shop.visit(page, replace(product, price=Decimal(60), review_count=99))


ABSURD = (Decimal("1e999999"), Decimal("1e-999999"), Decimal("NaN"), Decimal("-Infinity"))


async def test_hostile_numbers(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    for value in ABSURD:
        product = replace(
            LAMP, price=value, list_price=value, rating=value, variants=(Variant(price=value),)
        )
        written = await shop.visit("lamp", replace(product, review_count=10**400))
        assert written.product_id is not None
        assert await shop.row("SELECT price FROM products") == (Decimal("49.9"),)


# --- what is written is what is read -----------------------------------------------------------

words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=60)
amounts = st.none() | st.decimals(min_value="2", max_value="9000", places=2)
products = st.builds(
    Product,
    name=words.map(lambda name: f"Lamp {name}"),
    description=st.none() | words,
    price=amounts,
    currency=st.sampled_from([None, "EUR", "JPY"]),
    availability=st.none() | st.sampled_from(Availability),
    rating=st.none() | st.decimals(min_value=0, max_value=5, places=2),
    review_count=st.none() | st.integers(0, 2**63 - 1),
    brand=st.none() | words,
    category=st.lists(words, max_size=4).map(tuple),
    sku=st.none() | words,
    variants=st.lists(st.builds(Variant, name=words, price=amounts), max_size=3).map(tuple),
    confidence=st.just(0.9),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(product=products)
async def test_what_is_written_is_read(shop: Shop, product: Product) -> None:
    name = f"p{len(shop._tasks)}"
    first = await shop.visit(name, product)
    again = await shop.visit(name, product)
    assert first.is_new
    assert (again.is_new, again.content_changed) == (False, False)
    row = await shop.row(
        """
        SELECT product_name, description, price, availability, rating, review_count, brand, sku,
               jsonb_array_length(variants)
          FROM products WHERE id = %s
        """,
        first.product_id,
    )
    assert row == (
        _line(product.name), (product.description or "").strip() or None, product.price,
        product.availability, product.rating, product.review_count, _line(product.brand),
        _line(product.sku), len(product.variants),
    )  # fmt: skip


def _line(value: str | None) -> str | None:
    return " ".join((value or "").split()) or None


def test_every_field_of_a_product_is_content_or_left_out_on_purpose() -> None:
    kept = {field.name for field in fields(ProductContent)} | {"name"}
    left_out = {field.name for field in fields(Product)} - kept
    # identifiers of the shop are kept in the metadata
    identifiers = {"mpn", "product_id", "variant_id"}
    assert left_out == {"images", "evidence", "confidence", *identifiers}
