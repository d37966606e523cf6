"""Prices that no column holds, implausible prices, and domains' currencies."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import orjson
import pytest

from forager.extract.product.page import open_page
from forager.extract.product.product import Evidence, Product, Variant
from forager.parsers.registry import parse_product
from forager.products.service import show_product
from products.product_shop import EVENTS, HISTORY, LAMP, MOMENTS, Shop, lamp


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
async def test_an_amount_that_exceeds_its_column_is_kept_and_marked(shop: Shop, price: str) -> None:
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


async def test_an_amount_in_any_text_replaces_no_price_from_a_known_place(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    text = {"price": Evidence(0.6, "dom:text")}
    for _ in range(4):
        await shop.visit("lamp", lamp("20", evidence=text))
        # first the price is missing, then it is gone; the other amount is never stored
        assert 20 not in [row[0] for row in await shop.rows("SELECT price FROM price_history")]
    await shop.visit("lamp", lamp("50"))
    assert await shop.row("SELECT price FROM products") == (50,)


async def test_a_price_without_a_currency_has_that_of_the_other_pages(shop: Shop) -> None:
    await shop.stock({f"p{n}": lamp("50", currency="SEK") for n in range(3)})
    await shop.visit("new", lamp("60", currency=None))
    row = await shop.row("SELECT currency, problems FROM products WHERE price = 60")
    assert row == ("SEK", [])


async def test_pages_in_several_currencies_decide_about_no_other(shop: Shop) -> None:
    currencies = ["SEK", "NOK", "SEK", "DKK"]
    await shop.stock({f"p{n}": lamp("50", currency=each) for n, each in enumerate(currencies)})
    await shop.visit("new", lamp("60", currency=None))
    assert await shop.row("SELECT currency FROM products WHERE price = 60") == (None,)


async def test_a_price_from_another_place_waits_for_a_second_visit(shop: Shop) -> None:
    def read(price: str, origin: str, place: str | None = None) -> Product:
        return lamp(price, evidence={"price": Evidence(0.9, origin, place)})

    await shop.visit("lamp", read("50", "json-ld:Product"))
    for _ in range(3):  # a place that alternates never gets into the history
        [problem] = (await shop.visit("lamp", read("70", "dom:price"))).problems
        assert (problem.rule, problem.severity) == ("place", "doubt")
        assert not (await shop.visit("lamp", read("50", "json-ld:Product"))).problems
    assert await shop.row("SELECT evidence -> 'price' ->> 'origin' FROM products") == (
        "json-ld:Product",
    )
    await shop.visit("lamp", read("70", "dom:price"))
    assert (await shop.visit("lamp", read("70", "dom:price"))).price_changed
    assert not (await shop.visit("lamp", read("71", "dom:price"))).problems
    # a deal beside the stated price is visible evidence, and so is its end
    await shop.visit("deal", read("50", "json-ld:Product"))
    assert not (await shop.visit("deal", read("40", "dom:deal"))).problems
    assert (await shop.visit("deal", read("50", "json-ld:Product"))).problems
    assert not (await shop.visit("deal", read("50", "json-ld:Product", place="b"))).problems
    # another parser version knows other places
    reread = await shop.visit("deal", read("30", "dom:price"), version="2")
    assert reread.price_changed
    assert not reread.problems


async def test_structured_data_of_other_pages_says_what_a_sign_means(shop: Shop) -> None:
    def read(currency: str, origin: str) -> Product:
        evidence = {name: Evidence(0.9, origin) for name in ("price", "currency")}
        return lamp("50", currency=currency, evidence=evidence)

    for number in range(3):
        await shop.visit(f"{number}", read("USD", "json-ld:Product"))
    # a dollar on a Canadian domain, and signs that are not a dollar
    for name, seen, stored in (("ca", "CAD", "USD"), ("eu", "EUR", "EUR"), ("se", "SEK", "SEK")):
        await shop.visit(name, read(seen, "dom:price"))
        [(currency,)] = await shop.rows(
            "SELECT currency FROM products WHERE url = %s", shop.url(name)
        )
        assert currency == stored
    # what a page states itself counts
    await shop.visit("own", read("CAD", "json-ld:Product"))
    assert await shop.rows("SELECT currency FROM products WHERE url = %s", shop.url("own")) == [
        ("CAD",)
    ]
