"""Hostile text and numbers are written, and read back unchanged."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forager.extract.product.product import Availability, Evidence, Product, ProductImage, Variant
from forager.products.content import ProductContent
from products.product_shop import EVENTS, LAMP, Shop, lamp

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
    # identifiers of the shop and the quantity are kept in the metadata
    details = {"mpn", "product_id", "variant_id", "quantity"}
    assert left_out == {"images", "evidence", "confidence", *details}
