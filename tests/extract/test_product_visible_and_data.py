# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""What a visitor sees, where it differs from the structured data."""

from __future__ import annotations

from decimal import Decimal

import pytest
from product_pages import BUY, linked, product_of, shop_page

from forager.extract.product.product import Availability

DATA = (
    '{"@type": "Product", "name": "Copper kettle", "sku": "39481726", "offers":'
    ' {"@type": "Offer", "price": "59.00", "priceCurrency": "GBP",'
    ' "availability": "https://schema.org/InStock"}}'
)


@pytest.mark.parametrize(
    ("markup", "sku"),
    [
        ("<p>Product code 4821377</p>", "4821377"),
        ("<dl><dt>Item No :</dt><dd>amx1</dd></dl>", "amx1"),
        ("<span>SKU</span>: <b>KT-482/13</b>", "KT-482/13"),
        ("<p>Marke: Acme | Art.-Nr.: 77.482.13 | Farbe: Kupfer</p>", "77.482.13"),
        ("<p>Bestellnummer 9911-A</p>", "9911-A"),
        ("<p><span>Réf. :</span> <span>1234/567</span></p>", "1234/567"),
        ("<li>Codice articolo: 66868</li>", "66868"),
        ("<li>Código del producto: AB-77123</li>", "AB-77123"),
        ("<b>Kód produktu:</b><i>GARNI 570 EASY II</i>", "GARNI 570 EASY II"),
        ("<b>Артикул</b><i>102-33</i>", "102-33"),
        ("<p>〈商品編號：M14876706〉</p>", "M14876706"),
        ("<p>eBay item number: 293565036718</p>", "293565036718"),
        ("<p>394/817-26</p>", "394/817-26"),
    ],
)
def test_a_code_that_visitors_see_is_the_sku(markup: str, sku: str) -> None:
    product = product_of(linked(DATA, f"<main><h1>Copper kettle</h1>{markup}</main>"))
    assert product.sku == sku
    same = sku.replace("/", "").replace("-", "") == "39481726"
    assert product.product_id == (None if same else "39481726")


@pytest.mark.parametrize(
    "markup",
    [
        "<p>Manufacturer part number: WK-2000X</p><p>EAN: 4006381333931</p>",
        "<section class='related-products'><p>SKU: 111222</p></section>",
        "<p>Reference book of 1998 kettles</p>",
        "<p>Style 2024 in copper</p>",
    ],
)
def test_other_codes_do_not_replace_the_sku(markup: str) -> None:
    product = product_of(linked(DATA, f"<main><h1>Copper kettle</h1>{markup}</main>"))
    assert product.sku == "39481726"


def test_manufacturer_part_number_and_gtin_stay_separate() -> None:
    markup = "<ul><li>MPN: WK-2000X</li><li>EAN: 4006381333931</li><li>SKU: 77123</li></ul>"
    product = product_of(shop_page(markup + BUY))
    assert (product.sku, product.mpn, product.gtin) == ("77123", "WK-2000X", "4006381333931")


@pytest.mark.parametrize(
    "markup",
    [
        "<span>UVP</span> <span class='price'>£59.00</span><b class='price'>£49.90</b>",
        "<div class='old-price'><span class='price'>£59.00</span></div>"
        "<div class='price'>£49.90</div>",
        "<p class='price'>statt £59.00 jetzt £49.90</p>",
        "<p class='price'>RRP £59.00</p><p class='price'>£49.90</p>",
    ],
)
def test_a_list_price_in_the_data_is_not_the_price(markup: str) -> None:
    product = product_of(linked(DATA, f"<main><h1>Copper kettle</h1>{markup}{BUY}</main>"))
    assert (product.price, product.list_price) == (Decimal("49.90"), Decimal("59.00"))


def test_a_regular_price_that_nothing_undercuts_is_the_price() -> None:
    markup = "<span class='regular-price'><span class='price'>£49.90</span></span>"
    assert product_of(shop_page(markup + BUY)).price == Decimal("49.90")


@pytest.mark.parametrize(
    "markup",
    [
        "<p class='stock'>10 in stock</p>",
        "<p class='availability'>1,202 sold</p>",
        "<ul class='size-list'><li class='stock'>XL: sold out</li></ul>",
        "<div class='store-stock'><p class='stock'>Out of stock</p></div>",
        "<p class='stock-info'>Not available for click and collect</p>",
        "<p class='availability'>Delivery to this postcode is unavailable</p>",
        "<p class='stock'>In stock</p><p class='stock no-display'>Out of stock</p>",
        "<div class='notify-modal'><p class='stock'>Email me when it is available</p></div>",
        "".join(f"<p class='stock-label'>Sold out: {color}</p>" for color in "abc"),
    ],
)
def test_stock_of_an_option_is_not_the_stock_of_the_product(markup: str) -> None:
    for data in (DATA, "{}"):
        body = f"<main><h1>Copper kettle</h1><p class='price'>£59.00</p>{markup}</main>"
        product = product_of(linked(data, body))
        assert product.availability is Availability.IN_STOCK, data


@pytest.mark.parametrize("text", ["0 left", "Only 0 left", "0 left in stock", "0 available"])
def test_a_price_does_not_make_a_product_without_stock_available(text: str) -> None:
    body = f"<main><h1>Copper kettle</h1><p class='price'>£59.00</p><p class='stock'>{text}</p>"
    product = product_of(linked("{}", f"{body}</main>"))
    assert product.availability is Availability.OUT_OF_STOCK


def test_words_and_a_disabled_button_overrule_the_data() -> None:
    markup = "<p class='stock'>Out of stock</p><button disabled>Add to basket</button>"
    product = product_of(linked(DATA, f"<main><h1>Copper kettle</h1>{markup}</main>"))
    assert product.availability is Availability.OUT_OF_STOCK


@pytest.mark.parametrize(
    ("markup", "brand"),
    [
        ("<a class='brand' href='/b/acme'>See more of Acme</a>", "Acme"),
        ("<a href='/brands/acme-tools'>Acme Tools</a>", "Acme Tools"),
        ("<a href='/marken/acme/'><img alt='Acme' src='a.png'></a>", "Acme"),
        ("<div class='brand-price'>£249.00</div>", None),
        ("<a href='/brands/acme'><img alt='Acme Logo' src='a.png'></a>", "Acme"),
        ("<a class='brand' href='/b/acme'>Tutti i prodotti Acme</a>", "Acme"),
        ("<p itemprop='brand'>Acme</p>", "Acme"),
        ("<p itemprop='brand'>Acme</p><p itemprop='brand'>Zenith</p>", None),
        ("<div data-product-id='A1234' data-brand='Acme'></div>", "Acme"),
        ("<p>Hersteller</p><p>R.K.</p>", "R.K."),
        ("<div class='product-brand'>Visit the Acme Store</div>", "Acme"),
        ("<div class='product-brand'>Shop Acme</div>", "Acme"),
        ("<div class='product-brand'>Acme (12)</div>", "Acme"),
        ("<div class='vendor'>Sold by Zenith Trading</div>", None),
        ("<div class='brand-reviews'>Be the first to review this</div>", None),
        ("<table><tr><th>BRAND</th><td>Acme</td></tr></table>", "Acme"),
        ("<p><b>Product brand</b> : <i>Acme</i></p>", "Acme"),
        ("<dl><dt>Manufacturer</dt><dd>: Acme</dd></dl>", "Acme"),
        ("<footer><b>Brand:</b> Zenith</footer>", None),
        ("<p>by Acme</p>", "Acme"),
        ("<p>By <a href='/s/acme'>Acme</a></p>", "Acme"),
        ("<p>by <b>Monday</b></p>", None),
        ("<p>by 24 November</p>", None),
        ("<img alt='Acme logo' src='/logos/1.png'>", "Acme"),
        ("<span itemprop='brand'><a href='/x'>Acme</a></span>", "Acme"),
        ("<a itemprop='brand' href='/x'><img alt='Acme' src='a.png'></a>", "Acme"),
    ],
)
def test_brands_without_calls_to_action(markup: str, brand: str | None) -> None:
    assert product_of(shop_page(markup + BUY)).brand == brand


@pytest.mark.parametrize(
    ("title", "url", "brand"),
    [
        ("$15 · Casio FX-991ES calculator", "https://shop.example/p/1", "Casio"),
        ("Buy Black & Decker drill | Corner Shop", "https://shop.example/p/1", "Black & Decker"),
        ("Leather pouch for Samsung phones", "https://shop.example/p/1", None),
        ("Samsung Galaxy case, clear", "https://shop.example/p/1", None),
        ("FJÄLLBO shelf unit - IKEA", "https://www.ikea.com/p/fjallbo", "IKEA"),
    ],
)
def test_a_well_known_brand_begins_the_title(title: str, url: str, brand: str | None) -> None:
    assert product_of(f"<title>{title}</title><h1>{title}</h1>" + BUY, url).brand == brand


def test_a_shop_is_a_brand_only_where_its_data_says_so() -> None:
    shown = '<meta property="og:site_name" content="Corner Shop"><p class=product-brand>{}</p>'
    assert product_of(shop_page(shown.format("Corner Shop") + BUY)).brand is None
    assert product_of(shop_page(shown.format("Acme") + BUY)).brand == "Acme"
    data = '{{"@type": "Product", "name": "Lamp", "brand": {{"name": "{}"}}}}'
    script = '<script type="application/ld+json">{}</script>'
    own = shown.format("x") + script.format(data.format("Corner Shop"))
    assert product_of(shop_page(own + BUY)).brand == "Corner Shop"
    platform = script.format(data.format("Shopify"))
    assert product_of(shop_page(platform + BUY)).brand is None


@pytest.mark.parametrize(
    "around", ["<nav>{}</nav>", "<div role=dialog>{}</div>", "<div class='main-menu'>{}</div>"]
)
def test_a_heading_of_a_menu_is_no_name(around: str) -> None:
    html = f"<title>Copper kettle - Shop</title><body>{around.format('<h1>Our range</h1>')}"
    assert product_of(html + "<p class=price>£5</p>" + BUY).name != "Our range"
    real = html + "<h1>Kettle made of copper</h1><p class=price>£5</p>" + BUY
    assert product_of(real).name == "Kettle made of copper"
    # a template may put everything into an element of that name
    whole = f"<title>Copper kettle - Shop</title>{around.format('<h1>Copper kettle</h1>')}"
    assert product_of(whole + BUY).name == "Copper kettle"


def test_a_brand_is_spelled_as_in_the_title() -> None:
    data = '{"@type": "Product", "name": "TP-Link camera", "brand": {"name": "TP LINK"}}'
    html = linked(data, "<h1>TP-Link camera</h1>").replace("Copper kettle", "TP-Link camera")
    assert product_of(html).brand == "TP-Link"


def test_offers_of_variants_are_offers_of_their_group() -> None:
    data = (
        '{"@type": "ProductGroup", "name": "Copper kettle", "hasVariant": ['
        '{"@type": "Product", "sku": "A", "offers": {"price": "59.00", "priceCurrency": "GBP",'
        ' "availability": "OutOfStock"}},'
        '{"@type": "Product", "sku": "B", "offers": {"price": "65.00", "priceCurrency": "GBP",'
        ' "availability": "InStock"}}]}'
    )
    product = product_of(linked(data))
    assert (product.price, product.availability) == (Decimal("65.00"), Availability.IN_STOCK)
