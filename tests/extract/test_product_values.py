# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Single values: amounts, currencies, codes, ratings and the words for stock."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.amounts import amount_text
from forager.extract.product.availability import availability_in, term_of
from forager.extract.product.currency import country_hints, currency_of, iso_code
from forager.extract.product.price import machine_amount, money_in
from forager.extract.product.product import Availability
from forager.extract.product.wording import (
    brand_of,
    category_of,
    count_of,
    gtin_of,
    name_of,
    rating_of,
    sku_of,
)


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("£9.99", "9.99", "GBP"),
        ("1.299,00 €", "1299.00", "EUR"),
        ("1 299,00 Kč", "1299.00", "CZK"),
        ("1\u00a0299,50 zł", "1299.50", "PLN"),
        ("CHF 1'299.00", "1299.00", "CHF"),
        ("CHF 1’299.–", "1299", "CHF"),
        ("€ 49,-", "49", "EUR"),
        ("₹1,29,999.00", "129999.00", "INR"),
        ("1,234,567원", "1234567", "KRW"),
        ("US$ 12.5", "12.5", "USD"),
        ("12 99 €", "12.99", "EUR"),
        ("KWD 1.250", "1.250", "KWD"),
        ("12,345.678 KWD", "12345.678", "KWD"),
        ("0,99 €", "0.99", "EUR"),
        ("USD 15.00", "15.00", "USD"),
        ("USD 1234567890", "1234567890", "USD"),
    ],
)
def test_amounts_as_people_write_them(text: str, amount: str, currency: str) -> None:
    money = next(money_in(text))
    assert (money.amount, money.currency) == (Decimal(amount), currency)


def test_short_names_of_dinars_need_their_country() -> None:
    [money] = money_in("1.250 KD", ("KWD",))
    assert (money.amount, money.currency) == (Decimal("1.250"), "KWD")
    [money] = money_in("1.250 KD")
    assert money.currency is None


@given(st.text("0123456789 .,:'’$€£kKrRFtUuSsDCHL\u00a0-%ab", max_size=60))
def test_far_words_do_not_change_amounts(text: str) -> None:
    alone = [(m.amount, m.currency, m.start) for m in money_in(text)]
    later = [(m.amount, m.currency, m.start - 100) for m in money_in("…" * 100 + text)]
    assert alone == later


def test_the_beginning_of_a_long_number_is_no_amount() -> None:
    assert list(money_in("EAN 4006381333931, EUR 12345678901")) == []


def test_words_are_money_only_where_they_are_known() -> None:
    assert [m.symbol for m in money_in("a 6 ft cable, TOP 100, all 5, 12 kr")] == [None] * 4
    (forints,) = money_in("12 990 Ft", ("HUF",))
    assert (forints.amount, forints.currency) == (Decimal(12990), "HUF")
    (rupiah,) = money_in("Rp 15.000", ("IDR",))
    assert (rupiah.amount, rupiah.currency) == (Decimal(15000), "IDR")


@pytest.mark.parametrize(
    ("value", "currency", "amount"),
    [
        ("1299.000", None, "1299.000"),
        ("1,299.00", None, "1299.00"),
        (13.4, None, "13.4"),
        (25, None, "25"),
        ("3.340", "CLP", "3340"),
        ("$60", None, "60"),
        ("", None, None),
        ("call us", None, None),
        (True, None, None),
        (float("nan"), None, None),
        (10**30, None, None),
        ("1234567890", None, "1234567890"),
        ("99999999999999.99", None, "99999999999999.99"),
        ("4006381333931", None, "4006381333931"),
        ({"a": 1}, None, None),
    ],
)
def test_amounts_as_machines_write_them(
    value: Any, currency: str | None, amount: str | None
) -> None:
    assert machine_amount(value, currency) == (None if amount is None else Decimal(amount))


def test_amounts_are_shown_plainly() -> None:
    assert [amount_text(Decimal(each)) for each in ("87.11", "88.00", "1E+3", "0.5", "1.2345")] == [
        "87.11", "88", "1000", "0.50", "1.2345",
    ]  # fmt: skip


def test_a_shared_symbol_needs_a_country() -> None:
    assert currency_of("$") is None
    assert currency_of("$", country_hints("shop.example.ca", "/", None)) == "CAD"
    assert currency_of("$", country_hints("shop.example.com", "/", "en-us")) == "USD"
    assert currency_of("kr", country_hints("butik.example.se", "/", None)) == "SEK"
    assert currency_of("¥", country_hints("example.com", "/", "ja")) == "JPY"
    assert currency_of("$", country_hints("example.com", "/en-au/item", None)) == "AUD"
    # .co is in use worldwide
    assert country_hints("example.co", "/", None) == ()


def test_currency_codes_are_checked() -> None:
    assert [iso_code(each) for each in ("eur", "RUR", "XXX", "EURO", "")] == [
        "EUR", "RUB", None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "gtin"),
    [
        ("4006381333931", "4006381333931"),
        ("0 12345 67890 5", "012345678905"),
        ("96385074", "96385074"),
        (4006381333931, "4006381333931"),
        ("4006381333932", None),
        ("0306406152", "9780306406157"),
        ("080442957X", "9780804429573"),
        ("0000000000000", None),
        ("12345", None),
        (True, None),
        (None, None),
        (["4006381333931"], None),
    ],
)
def test_trade_numbers_are_checked(value: object, gtin: str | None) -> None:
    assert gtin_of(value) == gtin


@pytest.mark.parametrize(
    ("value", "best", "rating"),
    [
        ("4.5", None, "4.50"),
        ("4,5", None, "4.50"),
        (9, 10, "4.50"),
        ("80", "100", "4.00"),
        ("4.3 out of 5 stars", None, "4.30"),
        ("8,6 von 10", None, "4.30"),
        (7, None, None),
        (-1, None, None),
        ("good", None, None),
        ([], {}, None),
    ],
)
def test_ratings_are_out_of_five(value: object, best: object, rating: str | None) -> None:
    assert rating_of(value, best) == (None if rating is None else Decimal(rating))


def test_counts_of_reviews() -> None:
    values = ["1,234 ratings", 12, 3.0, "no reviews", None, True, float("inf")]
    assert [count_of(each) for each in values] == [1234, 12, 3, None, None, None, None]


@pytest.mark.parametrize(
    ("term", "meaning"),
    [
        ("https://schema.org/InStock", Availability.IN_STOCK),
        ("http://schema.org/LimitedAvailability", Availability.LIMITED),
        ("schema:OutOfStock", Availability.OUT_OF_STOCK),
        ("SoldOut", Availability.OUT_OF_STOCK),
        ("PreOrder", Availability.PREORDER),
        ("BackOrder", Availability.BACKORDER),
        ("InStoreOnly", Availability.IN_STORE_ONLY),
        ("Discontinued", Availability.DISCONTINUED),
        ("in stock", Availability.IN_STOCK),
        ("oos", Availability.OUT_OF_STOCK),
        (False, Availability.OUT_OF_STOCK),
        ("NOT SOLD", None),
        (7, None),
    ],
)
def test_terms_of_availability(term: object, meaning: Availability | None) -> None:
    assert term_of(term) is meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("In stock, ships today", Availability.IN_STOCK),
        ("Currently unavailable.", Availability.OUT_OF_STOCK),
        ("Not available", Availability.OUT_OF_STOCK),
        ("Nicht auf Lager", Availability.OUT_OF_STOCK),
        ("Auf Lager", Availability.IN_STOCK),
        ("Épuisé", Availability.OUT_OF_STOCK),
        ("Non disponibile", Availability.OUT_OF_STOCK),
        ("Disponibile", Availability.IN_STOCK),
        ("Нет в наличии", Availability.OUT_OF_STOCK),
        ("Není skladem", Availability.OUT_OF_STOCK),
        ("Skladem", Availability.IN_STOCK),
        ("在庫切れ", Availability.OUT_OF_STOCK),
        ("품절", Availability.OUT_OF_STOCK),
        ("Only 3 left", Availability.LIMITED),
        ("Pre-order now", Availability.PREORDER),
        ("No longer available", Availability.DISCONTINUED),
        ("Sold by Acme", None),
        ("Free returns", None),
    ],
)
def test_words_for_stock(text: str, meaning: Availability | None) -> None:
    assert availability_in(text) is meaning


def test_names_are_one_clean_line() -> None:
    assert name_of(" A &amp; B\n <b>kettle</b>\0 ") == "A & B kettle"
    assert name_of("{{ product.name }}") is None
    assert name_of("\ud800x") == "\ufffdx"
    assert len(name_of("x" * 5000) or "") == 512


def test_brands_lose_their_labels() -> None:
    said = [
        "Brand: Acme",
        "Visit the Acme Store",
        "Besuchen Sie den Acme-Store",
        "$metaBrand",
        "N/A",
    ]
    assert [brand_of(each) for each in said] == ["Acme", "Acme", "Acme", None, None]


def test_codes_are_short() -> None:
    said = [
        "SKU: AB-12",
        4711,
        "924/9556",
        "TE502955-12\n Housse de chaise, canapé",
        "a sentence of many words that is no code",
        None,
        "x" * 200,
    ]
    assert [sku_of(each) for each in said] == [
        "AB-12", "4711", "924/9556", "TE502955-12", None, None, None,
    ]  # fmt: skip


def test_category_paths() -> None:
    assert category_of("Home &gt; Kitchen > Kettles") == ("Home", "Kitchen", "Kettles")
    assert category_of(["Kitchen", None, "Kettles", "Kettles"]) == ("Kitchen", "Kettles")
    assert category_of(7) == ()


@pytest.mark.parametrize(
    ("text", "amount"),
    [("$.75", "0.75"), ("35€ 99", "35.99"), ("19€99", "19.99"), ("118, 99 €", "118.99"),
     ("KWD 12.500", "12.500"), ("3 for £10", "10")],
)  # fmt: skip
def test_unusual_spellings_of_prices(text: str, amount: str) -> None:
    [money] = [m for m in money_in(text, ("USD", "EUR")) if m.symbol]
    assert money.amount == Decimal(amount)
