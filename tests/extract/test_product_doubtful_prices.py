"""Amounts beside the price are not the price; no price is better than a doubtful one."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from forager.extract.product.places import LearnedPlace
from forager.extract.product.product import Availability, Product

BESIDE = """<p>Shipping from CHF 9.90, free from CHF 50.-</p><p>Or 12 rates of CHF 9.50</p>
<p>Minimum order CHF 30.-</p><div class="reviews"><h3>Reviews</h3><div class="review">
<p>Bought it for CHF 20.-</p></div></div><div itemprop="review"><b>CHF 21.-</b></div>
<div class="related"><a href="/p/2">Pot</a> <span class="price">CHF 15.-</span></div>"""
STATED = """<script type="application/ld+json">{"@type": "Product", "name": "Kettle", "sku": "K-1",
"offers": {"@type": "Offer", "price": "120.00", "priceCurrency": "EUR"}}</script>"""


def read(
    body: str, *, head: str = "", language: str = "de-ch", host: str = "shop.example"
) -> Product:
    html = f"""<html lang="{language}"><head><title>Kettle</title>{head}</head><body><main>
    <h1>Kettle</h1>{body}<button>Add to cart</button></main></body></html>"""
    return extract_product(open_page(html.encode(), f"https://{host}/p/1", "text/html"))


@pytest.mark.parametrize(
    "place",
    [
        '<div class="price"></div>',
        '<div class="price">CHF 0.00</div>',
        '<b class="price">-</b>',
        "",
    ],
)
def test_amounts_beside_an_empty_place_are_not_the_price(place: str) -> None:
    product = read(place + BESIDE)
    assert (product.price, product.currency) == (None, None)


def test_an_amount_in_the_place_of_the_price_is_still_read() -> None:
    assert read('<div class="price">CHF 49.-</div>' + BESIDE).price == 49
    assert read("<p><b>CHF 49.-</b></p>" + BESIDE).price == 49


@pytest.mark.parametrize(
    "words", ["Price on request", "Preis auf Anfrage", "Prix sur demande", "Call for price"]
)
def test_a_price_on_request_is_a_state(words: str) -> None:
    product = read(f'<div class="price">{words}</div>{BESIDE}')
    assert (product.price, product.availability) == (None, Availability.ON_REQUEST)


@pytest.mark.parametrize(
    "shown",
    [
        "<p><s>€120.00</s> <strong>€90.00</strong></p>",
        '<div class="price"><del>€120.00</del> <ins>€90.00</ins></div>',
        '<p><span style="text-decoration: line-through">120,00 €</span> <b>90,00 €</b></p>',
        '<span class="was">€120.00</span><span class="deal">€90.00</span>',
        # the list price in an element without a name
        "<p><s>€120.00</s> <b class='price'>€90.00</b></p>",
        "<b class='price'>€90.00</b> <del>€120.00</del>",
        "<p>RRP: €120.00</p><p class='price'>€90.00</p>",
    ],
)
def test_a_visible_deal_wins_over_a_stated_price_that_is_struck_through(shown: str) -> None:
    product = read(shown, head=STATED, language="en")
    assert (product.price, product.list_price) == (Decimal(90), Decimal(120))
    assert product.evidence["price"].origin == "dom:deal"


@pytest.mark.parametrize(
    "shown",
    [
        "<p><s>€150.00</s> <strong>€120.00</strong></p>",
        "<p><strong>€120.00</strong></p><div class='related'><s>€120.00</s><b>€30.00</b></div>",
        "<p>Only €90.00 with a coupon</p>",
    ],
)
def test_a_stated_price_that_is_not_struck_through_stays(shown: str) -> None:
    assert read(shown, head=STATED, language="en").price == 120


def test_the_learned_place_of_a_price_is_not_the_one_that_is_struck_through() -> None:
    shown = '<p><s class="former">€120.00</s> <strong class="deal">€90.00</strong></p>'
    html = f"<html><head><title>Kettle</title>{STATED}</head><body><h1>Kettle</h1>{shown}</body>"
    page = open_page(html.encode(), "https://shop.example/p/1", "text/html")
    product = extract_product(page, place=LearnedPlace(search=True))
    assert product.evidence["price"].place == "strong.deal"


@pytest.mark.parametrize("written", ["18 534:-", "18 534:--", "18 534,-"])
@pytest.mark.parametrize(("host", "language"), [("butik.se", "en"), ("shop.example", "sv")])
def test_a_dash_for_the_decimals_means_the_currency_of_the_country(
    written: str, host: str, language: str
) -> None:
    product = read(f'<div class="price">{written}</div>', language=language, host=host)
    assert (product.price, product.currency) == (Decimal(18534), "SEK")


def test_without_a_country_a_dash_names_no_currency() -> None:
    product = read('<div class="price">18 534:-</div>', language="en")
    assert (product.price, product.currency) == (Decimal(18534), None)


@pytest.mark.parametrize(
    "other",
    [
        "<p>Delivery <span class='price'>€4.99</span></p>",
        "<label>Extended warranty <span class='price'>€49.00</span></label>",
        "<label>Add 3 year protection plan <span class='price'>€49.00</span></label>",
    ],
)
def test_what_is_bought_with_a_product_is_not_its_price(other: str) -> None:
    assert read(other, language="en").price is None
    assert read(f"{other}<p class='price'>€300.00</p>", language="en").price == 300


def test_a_text_beside_a_product_that_is_sold_out_is_not_its_price() -> None:
    product = read("<p class='stock'>Sold out</p><p>Similar: Tin kettle €19.00</p>", language="en")
    assert (product.price, product.availability) == (None, Availability.OUT_OF_STOCK)
