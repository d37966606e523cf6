"""What a visitor sees, where a page has no structured data."""

from __future__ import annotations

from decimal import Decimal

import pytest
from product_pages import BUY, URL, product_of, shop_page

from forager.extract.product.likeness import is_product
from forager.extract.product.product import Availability


def test_the_price_beside_the_heading() -> None:
    product = product_of(
        shop_page(
            f"<div class='price'>£49.90</div>{BUY}"
            "<section class='related-products'>"
            + "".join(f"<div class='price'>£{n}.00</div>" for n in range(5, 15))
            + "</section>"
        )
    )
    assert (product.name, product.price, product.currency) == (
        "Copper kettle", Decimal("49.90"), "GBP",
    )  # fmt: skip
    assert product.availability is Availability.IN_STOCK
    assert is_product(product)


@pytest.mark.parametrize(
    "markup",
    [
        "<span class='price'><del>£59.00</del> <ins>£49.90</ins></span>"
        "<del class='price'>£59.00</del><span class='price'>£49.90</span>",
        "<span class='old-price'>£59.00</span><span class='price-now'>£49.90</span>",
        "<div class='price'>£49.90 Was £59.00</div>",
        "<div class='product-price'>Was £59.00 now £49.90, you save £9.10</div>",
        "<s class='price'>£59.00</s><b class='price'>£49.90</b>",
    ],
)
def test_the_price_before_is_the_list_price(markup: str) -> None:
    product = product_of(shop_page(markup + BUY))
    assert (product.price, product.list_price) == (Decimal("49.90"), Decimal("59.00"))


@pytest.mark.parametrize(
    "noise",
    [
        "<div class='unit-price'>£0.99 / 100 g</div>",
        "<div class='price-note'>£4.99 per month for 12 months</div>",
        "<div class='price-info'>Free delivery over £20.00</div>",
        "<div class='price-save'>Save £12.00</div>",
        "<div class='mini-cart'><span class='price'>£3.00</span></div>",
        "<div class='price' style='display: none'>£1.00</div>",
        "<nav><span class='price'>£2.00</span></nav>",
    ],
)
def test_other_amounts_are_not_the_price(noise: str) -> None:
    product = product_of(shop_page(f"{noise}<div class='price'>£49.90</div>{BUY}"))
    assert product.price == Decimal("49.90")


def test_a_price_without_a_name_for_it() -> None:
    product = product_of(shop_page(f"<p>Free returns</p><p><b>£49.90</b></p>{BUY}"))
    assert product.price == Decimal("49.90")
    apart_prices = product_of(
        "<html lang='zh-tw'><body><h1>銅壺 48213</h1>"
        "<td><span style='font: bold 27px serif'>294</span>"
        "<span> 元 </span></td></body></html>",
        "https://shop.example.tw/48213",
    )
    assert (apart_prices.price, apart_prices.currency) == (Decimal(294), "TWD")


def test_what_the_page_shows_beats_what_its_data_forgot() -> None:
    data = (
        '<script type="application/ld+json">{"@type": "Product", "name": "Copper kettle",'
        ' "offers": {"price": "59.00", "availability": "InStock"}}</script>'
    )
    reduced = product_of(
        shop_page(f"<del class='old-price'>£59.00</del><b class='price'>£49.90</b>{BUY}", data)
    )
    assert (reduced.price, reduced.list_price) == (Decimal("49.90"), Decimal("59.00"))
    gone = product_of(
        shop_page("<p class='stock'>Sold out</p><button disabled>Add to basket</button>", data)
    )
    assert gone.availability is Availability.OUT_OF_STOCK


@pytest.mark.parametrize(
    ("markup", "meaning"),
    [
        ("<p class='availability'>Currently unavailable</p>", Availability.OUT_OF_STOCK),
        ("<button>Sold out</button>", Availability.OUT_OF_STOCK),
        (f"<p class='stock'>In stock</p>{BUY}", Availability.IN_STOCK),
        ("<div class='related'><p class='stock'>Sold out</p></div>" + BUY, Availability.IN_STOCK),
        ("<b class='price'>£5</b>", Availability.IN_STOCK),
        ("<p>Words.</p>", None),
        ("<b class='price'>£5</b><p>Sold out</p>", Availability.OUT_OF_STOCK),
    ],
)
def test_availability(markup: str, meaning: Availability | None) -> None:
    assert product_of(shop_page(markup)).availability is meaning


def test_a_price_alone_says_little_about_stock() -> None:
    product = product_of(shop_page("<b class='price'>£5</b>"))
    assert product.evidence["availability"].origin.startswith("inferred:")
    assert product.evidence["availability"].confidence < 0.8


@pytest.mark.parametrize(
    ("markup", "sku"),
    [
        ("<span class='sku'>AC-777</span>", "AC-777"),
        ("<p>SKU: AC-777</p>", "AC-777"),
        ("<table><tr><th>Art.-Nr.</th><td>AC-777</td></tr></table>", "AC-777"),
        ("<dl><dt>Item #</dt><dd>AC-777</dd></dl>", "AC-777"),
        ("<p data-sku='AC-777'></p>", "AC-777"),
        ("<p>Nothing.</p>", "48213"),
    ],
)
def test_codes(markup: str, sku: str) -> None:
    assert product_of(shop_page(markup)).sku == sku


@pytest.mark.parametrize(
    ("url", "sku"),
    [
        ("https://shop.example/item/143863282131", "143863282131"),
        ("https://shop.example/thing.html?pid=AB123", "AB123"),
        ("https://shop.example/2024/news-of-the-day", None),
        ("https://shop.example/kettles/copper", None),
    ],
)
def test_codes_in_addresses(url: str, sku: str | None) -> None:
    assert product_of(shop_page("<p>Nothing.</p>"), url).sku == sku


def test_a_currency_beside_the_element_of_the_price() -> None:
    shown = "<div>2 for <b>9.00</b>: <span class=price>49.90</span> <i>€</i></div>" + BUY
    product = product_of(shop_page(shown))
    assert (product.price, product.currency) == (Decimal("49.90"), "EUR")


def test_labels_for_brand_and_trade_number() -> None:
    product = product_of(
        shop_page(
            "<table><tr><th>Brand</th><td>Acme</td></tr><tr><th>EAN</th><td>4006381333931</td></table>"
        )
    )
    assert (product.brand, product.gtin) == ("Acme", "4006381333931")


def test_crumbs_stars_and_pictures() -> None:
    product = product_of(
        shop_page(
            "<ol class='breadcrumb'><li><a href='/'>Home</a></li>"
            "<li><a href='/k'>Kitchen</a></li></ol>"
            "<div class='rating' title='4.3 out of 5'>1,204 reviews</div>"
            "<img class='main-image' src='/k.jpg' alt='Copper kettle'>"
            "<img src='/logo.png' class='main'>"
        )
    )
    assert product.category == ("Kitchen",)
    assert (product.rating, product.review_count) == (Decimal("4.30"), 1204)
    assert [(image.url, image.alt) for image in product.images] == [
        ("https://shop.example.co.uk/k.jpg", "Copper kettle")
    ]


def _tiles(count: int) -> str:
    return "".join(
        f"<li class='product-card'><a href='/p/{n}'><h3>Kettle {n}</h3>"
        f"<span class='price'>£{n}.00</span>"
        "</a><button>Add to basket</button></li>"
        for n in range(1, count)
    )


def test_lists_and_articles_are_no_products() -> None:
    listing = product_of(
        f"<title>Kettles</title><body><h1>Kettles</h1><ul>{_tiles(25)}</ul></body>",
        "https://shop.example.co.uk/kettles",
    )
    assert listing.confidence < 0.5
    items = ", ".join(
        f'{{"item": {{"@type": "Product", "name": "K{n}", "offers": {{"price": {n}}}}}}}'
        for n in range(1, 3)
    )
    listed = product_of(
        f'<script type="application/ld+json">{{"@type": "ItemList", "itemListElement": [{items}]}}'
        f"</script><h1>Kettles</h1><ul>{_tiles(20)}</ul>",
        "https://shop.example.co.uk/kettles",
    )
    assert listed.confidence < 0.5
    article = product_of(
        '<title>Why kettles whistle</title><meta property="og:type" content="article"><body>'
        "<h1>Why kettles whistle</h1><p>In 1890 a kettle cost £2. Now it is £50.</p></body>",
        "https://news.example.com/why-kettles-whistle",
    )
    assert article.confidence < 0.5
    assert not is_product(product_of("", URL))
