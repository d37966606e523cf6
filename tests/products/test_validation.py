"""Rules of fields, and when an offer is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.product.product import Product, ProductImage
from forager.products.json_columns import problems_json, unconfirmed_values
from forager.products.validation.fields import (
    FieldViolation,
    UnconfirmedValue,
    check,
    is_turned_away,
)
from forager.products.validation.plausibility import Offer, OfferCheck, Past, Standing, check_offer
from products.product_shop import LAMP

HUGE = Decimal("1e1000000")


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("price", Decimal(0), "positive"),
        ("price", Decimal("-1"), "positive"),
        ("price", Decimal("0.00001"), "positive"),
        ("price", Decimal("NaN"), "format"),
        ("price", Decimal("Infinity"), "format"),
        ("price", 12.5, "format"),
        ("price", "12.50", "format"),
        ("price", HUGE, "size"),
        ("list_price", Decimal("-5"), "positive"),
        ("currency", "XXX", "known"),
        ("currency", "eur", "known"),
        ("currency", 978, "known"),
        ("availability", "somewhere", "known"),
        ("rating", Decimal("5.01"), "range"),
        ("rating", Decimal("-0.1"), "range"),
        ("rating", Decimal("NaN"), "range"),
        ("review_count", -1, "range"),
        ("review_count", 2**63, "range"),
        ("review_count", True, "range"),
        ("gtin", "4006381333932", "check_digit"),
        ("gtin", "00000000", "check_digit"),
    ],
)
def test_an_impossible_value_is_left_out_and_named(field: str, value: Any, rule: str) -> None:
    checked = check(replace(LAMP, **{field: value}))
    assert getattr(checked.product, field) is None
    [problem] = [problem for problem in checked.problems if problem.field == field]
    assert problem.rule == rule
    assert len(problem.message) < 200
    assert checked.incomplete is None


def test_a_good_product_has_no_problems() -> None:
    assert check(LAMP).problems == ()
    assert check(LAMP).product == LAMP


def test_a_book_number_becomes_a_gtin() -> None:
    assert check(replace(LAMP, gtin="0-306-40615-2")).product.gtin == "9780306406157"


def test_a_list_price_below_the_price_is_left_out() -> None:
    checked = check(replace(LAMP, list_price=Decimal("49.89")))
    assert checked.product.list_price is None
    assert [problem.rule for problem in checked.problems] == ["order"]
    assert check(replace(LAMP, list_price=LAMP.price)).problems == ()


def test_images_must_have_web_addresses() -> None:
    bad = (
        "data:image/png;base64,AAAA",
        "javascript:alert(1)",
        "//no.scheme/x",
        "http://",
        "http://[",
    )
    good = ProductImage("https://shop.example/lamp.jpg")
    checked = check(replace(LAMP, images=(*map(ProductImage, bad), good)))
    assert checked.product.images == (good,)
    [problem] = checked.problems
    assert "and 4 more" in problem.message


@pytest.mark.parametrize(
    "name",
    ["Robot Check", "Access Denied", "Just a moment...", "Attention Required! | Cloudflare",
     "403 Forbidden", "503 - Service Unavailable", "Page not found", "Example | 404 Not Found",
     "Pardon Our Interruption...", "Access to this page has been denied",
     "Please verify you are a human", "Error 503", "Sorry! Something went wrong!",
     "Seite nicht gefunden"],
)  # fmt: skip
def test_a_page_that_turns_away_is_no_product(name: str) -> None:
    assert is_turned_away(name)
    checked = check(Product(name=name, confidence=0.9))
    assert checked.incomplete is not None
    # a game may be called so: with a price and a number it is a product, and marked
    checked = check(replace(LAMP, name=name))
    assert checked.incomplete is None
    assert [problem.rule for problem in checked.problems] == ["page_title"]


@pytest.mark.parametrize(
    "name", ["Security Camera", "Just a Moment of Peace candle", "Robot Vacuum", "500 Piece Puzzle"]
)
def test_products_are_not_taken_for_error_pages(name: str) -> None:
    assert not is_turned_away(name)


@pytest.mark.parametrize("name", [None, "", "  \n", "\0", 17])
def test_without_a_name_there_is_no_product(name: Any) -> None:
    checked = check(replace(LAMP, name=name))
    assert checked.incomplete == "the page has no name of a product"


def test_a_name_alone_is_not_enough() -> None:
    assert check(Product(name="About us", confidence=0.1)).incomplete is not None
    assert check(Product(name="Lamp", confidence=0.5)).incomplete is None
    assert check(Product(name="Lamp", sku="1", confidence=0.1)).incomplete is None


# --- the price's states --------------------------------------------------------------------------

EUR10 = Offer(Decimal(10), None, "EUR", "in_stock")


def at(
    price: str | None, currency: str | None = "EUR", availability: str | None = "in_stock"
) -> Offer:
    return Offer(None if price is None else Decimal(price), None, currency, availability)


def rules(offer_check: OfferCheck) -> list[str]:
    return [problem.rule for problem in offer_check.problems]


def after(problems: tuple[FieldViolation, ...], offer: Offer) -> Past:
    """What the next visit knows, through the JSON that a product keeps."""
    return Past(offer, unconfirmed_values(json.loads(problems_json(problems))))


@pytest.mark.parametrize(
    ("known", "seen", "standing", "rule"),
    [
        (Offer(), at("10"), Standing.ACCEPTED, None),
        (Offer(), at(None), Standing.ABSENT, None),
        (Offer(), at("1"), Standing.UNCONFIRMED, "placeholder"),
        (Offer(), at("0.01"), Standing.UNCONFIRMED, "placeholder"),
        (Offer(), at("999999.00"), Standing.UNCONFIRMED, "placeholder"),
        (Offer(), at("99.99"), Standing.ACCEPTED, None),
        (EUR10, at("10"), Standing.ACCEPTED, None),
        (EUR10, at("100"), Standing.ACCEPTED, None),
        (EUR10, at("100.01"), Standing.UNCONFIRMED, "step"),
        (EUR10, at("1.50"), Standing.ACCEPTED, None),
        (EUR10, at("0.99"), Standing.UNCONFIRMED, "step"),
        (EUR10, at("1"), Standing.UNCONFIRMED, "placeholder"),
        (at("1"), at("1"), Standing.ACCEPTED, None),
        (EUR10, at("10", "USD"), Standing.UNCONFIRMED, "changed"),
        (EUR10, at(None), Standing.UNCONFIRMED, "vanished"),
        (EUR10, at(None, None, "out_of_stock"), Standing.ABSENT, None),
        (EUR10, at("11", None), Standing.ACCEPTED, "missing"),
        (at("10", None), at("11"), Standing.ACCEPTED, None),
    ],
)
def test_a_price_is_taken_or_held(
    known: Offer, seen: Offer, standing: Standing, rule: str | None
) -> None:
    offer_check = check_offer(seen, Past(known))
    assert offer_check.standing is standing
    assert rules(offer_check) == ([] if rule is None else [rule])
    if standing is Standing.UNCONFIRMED:
        assert offer_check.offer == replace(known, availability=seen.availability)


def test_amounts_in_problems_are_as_people_write_them() -> None:
    known = Past(Offer(Decimal("10.0000"), None, "EUR", "in_stock"))
    (problem,) = check_offer(Offer(Decimal("10000.5000"), None, "EUR", "in_stock"), known).problems
    assert problem.message == "the price was 10, and is 10000.50 now"


def test_what_is_seen_again_is_believed() -> None:
    first = check_offer(at("500"), Past(EUR10), page="a")
    assert (first.standing, first.offer.price) == (Standing.UNCONFIRMED, Decimal(10))
    second = check_offer(at("500.0"), after(first.problems, first.offer), page="b")
    assert (second.standing, second.offer.price, second.problems) == (
        Standing.CONFIRMED, Decimal(500), ()
    )  # fmt: skip


def test_the_same_page_read_again_confirms_nothing() -> None:
    first = check_offer(at("500"), Past(EUR10), page="a")
    again = check_offer(at("500"), after(first.problems, first.offer), page="a")
    assert again.standing is Standing.UNCONFIRMED
    assert check_offer(at("500"), after(again.problems, again.offer), page="b").standing is (
        Standing.CONFIRMED
    )


def test_another_doubtful_price_waits_anew_and_a_good_one_ends_the_doubt() -> None:
    first = check_offer(at("500"), Past(EUR10), page="a")
    other = check_offer(at("700"), after(first.problems, first.offer), page="b")
    assert other.standing is Standing.UNCONFIRMED
    back = check_offer(at("11"), after(other.problems, other.offer), page="c")
    assert (back.standing, back.problems) == (Standing.ACCEPTED, ())
    again = check_offer(at("500"), after(back.problems, back.offer), page="d")
    assert again.standing is Standing.UNCONFIRMED


def test_a_vanished_price_and_a_changed_currency_are_confirmed_too() -> None:
    gone = check_offer(at(None), Past(EUR10), page="a")
    assert check_offer(at(None), after(gone.problems, gone.offer), page="b").offer.price is None
    moved = check_offer(at("10", "USD"), Past(EUR10), page="a")
    assert moved.offer.currency == "EUR"
    settled = check_offer(at("10", "USD"), after(moved.problems, moved.offer), page="b")
    assert (settled.standing, settled.offer.currency) == (Standing.CONFIRMED, "USD")


def test_what_is_impossible_is_not_believed_however_often_it_comes() -> None:
    past = Past(EUR10)
    for page in ("a", "b", "c"):
        offer_check = check_offer(at(None), past, page=page, impossible={"price"})
        assert (offer_check.standing, offer_check.offer, offer_check.problems) == (
            Standing.REFUSED,
            EUR10,
            (),
        )
        past = after(offer_check.problems, offer_check.offer)
    strange = check_offer(at("11", None), past, impossible={"currency"})
    assert (strange.standing, strange.offer) == (Standing.REFUSED, EUR10)
    assert check_offer(at("11", None), Past(), impossible={"currency"}).offer.price == Decimal(11)
    stock = check_offer(at("10", availability=None), past, impossible={"availability"})
    assert (stock.offer.availability, stock.problems) == ("in_stock", ())


def test_a_domains_currency_is_law() -> None:
    past = Past(EUR10, {"price": UnconfirmedValue("12 USD", "a")})
    offer_check = check_offer(at("12", "USD"), past, page="b", domain_currency="EUR")
    assert (offer_check.standing, offer_check.offer, rules(offer_check)) == (
        Standing.REFUSED,
        EUR10,
        ["domain"],
    )
    filled = check_offer(at("12", None), Past(EUR10), domain_currency="EUR")
    assert (filled.offer.currency, filled.problems) == ("EUR", ())


def test_stock_is_believed_at_once_and_its_absence_the_second_time() -> None:
    assert check_offer(at("10", availability="out_of_stock"), Past(EUR10)).offer.availability == (
        "out_of_stock"
    )
    missing = check_offer(at("10", availability=None), Past(EUR10), page="a")
    assert (missing.offer.availability, rules(missing)) == ("in_stock", ["missing"])
    again = check_offer(
        at("10", availability=None), after(missing.problems, missing.offer), page="b"
    )
    assert (again.offer.availability, again.problems) == (None, ())


# below what is absurd: see the last test
prices = st.none() | st.decimals(min_value="0.0001", max_value="9999998", places=4)
offers = st.builds(
    Offer,
    price=prices,
    currency=st.sampled_from([None, "EUR", "USD"]),
    availability=st.sampled_from([None, "in_stock", "out_of_stock"]),
)


@given(known=offers, seen=offers)
def test_every_price_that_stays_is_believed_on_the_second_page(known: Offer, seen: Offer) -> None:
    first = check_offer(seen, Past(known), page="a")
    assert first.offer.price in (known.price, seen.price)
    second = check_offer(seen, after(first.problems, first.offer), page="b")
    assert second.offer.price == seen.price
    third = check_offer(seen, after(second.problems, second.offer), page="c")
    assert third.offer == second.offer
    assert not any(problem.unconfirmed for problem in third.problems)


def test_nines_that_no_currency_makes_a_price_of_are_never_believed() -> None:
    known, seen = Offer(Decimal(10), None, "EUR", "in_stock"), Decimal(999_999_999)
    first = check_offer(replace(known, price=seen), Past(known), page="a")
    second = check_offer(replace(known, price=seen), after(first.problems, first.offer), page="b")
    assert (first.offer.price, second.offer.price) == (known.price, known.price)
    assert [problem.rule for problem in second.problems] == ["placeholder"]
