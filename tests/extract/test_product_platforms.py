# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Pages in the markup of common shop software, without data for search engines."""

from __future__ import annotations

from decimal import Decimal

import pytest
from product_pages import product_of

from forager.extract.product.price import money_in
from forager.extract.product.product import Availability, Product

NAME = "Trail Runner 3 Shoe"
URL = "https://www.exampleshop.com/outdoor/trail-runner-3-shoe"
HEADER = (
    "<header><nav><ul><li><a href='/brands'>Brands</a></li><li><a href='/sale'>Sale</a></li></ul>"
    "</nav><div class='minicart'><span class='price'>$0.00</span></div></header>"
)
OTHERS = "".join(
    f"<li class='product-item product-card'><a href='/p/{n}'>Other shoe {n}</a>"
    f"<span class='vendor'>Otherco</span><span class='price'>${n}5.00</span></li>"
    for n in range(1, 6)
)
FOOTER = (
    f"<section class='related-products'><h2>You may also like</h2><ul>{OTHERS}</ul></section>"
    "<footer><a href='/brands/otherco'>Otherco</a><p>Free shipping over $50.00</p></footer>"
)


def read(main: str, title: str = NAME, url: str = URL) -> Product:
    head = f"<head><title>{title} - Example Shop</title></head>"
    return product_of(f"<html lang=en-us>{head}<body>{HEADER}<main>{main}</main>{FOOTER}", url)


SHOPIFY = """<div class="product__info-wrapper"><product-info class="product__info-container"> <p
class="product__text inline-richtext caption-with-letter-spacing">Salomex</p> <div
class="product__title"><h1>Trail Runner 3 Shoe</h1></div><div role="status"><div class="price
price--large price--on-sale price--show-badge"><div class="price__container"> <div
class="price__regular"><span class="visually-hidden visually-hidden--inline">Regular price
</span><span class="price-item price-item--regular">$99.00 USD</span></div><div class="price__sale">
<span class="visually-hidden visually-hidden--inline">Regular price</span><span><s class="price-item
price-item--regular">$99.00 USD</s></span><span class="visually-hidden">Sale price </span><span
class="price-item price-item--sale price-item--last">$89.90 USD</span></div><small class="unit-price
caption hidden"><span class="visually-hidden">Unit price</span><span class="price-item
price-item--last"><span></span><span aria-hidden="true">/</span><span></span>
</span></small></div><span class="badge price__badge-sale">Sale</span></div></div> <div
class="product__tax caption rte">Tax included.</div><p class="product__sku"><span
class="visually-hidden">SKU:</span>TR3-42</p><product-form class="product-form"><form><button
type="submit" name="add" class="product-form__submit button"><span>Add to cart</span></button>
</form></product-form></product-info></div>"""

WOOCOMMERCE = """<div class="summary entry-summary"><h1 class="product_title entry-title"> Trail
Runner 3 Shoe</h1><p class="price"><del aria-hidden="true"><span class="woocommerce-Price-amount
amount"><bdi><span class="woocommerce-Price-currencySymbol">&#36; </span>99.00</bdi></span></del>
<span class="screen-reader-text">Original price was: &#36;99.00. </span><ins
aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi><span
class="woocommerce-Price-currencySymbol">&#36;</span>89.90</bdi></span></ins><span
class="screen-reader-text">Current price is: &#36;89.90.</span></p><p class="stock in-stock">12 in
stock</p><form class="cart"><button type="submit" name="add-to-cart" value="1201"
class="single_add_to_cart_button button alt">Add to cart</button></form><div class="product_meta">
<span class="sku_wrapper">SKU: <span class="sku">TR3-42</span></span> <span class="posted_in">
Category: <a href="/product-category/shoes/" rel="tag">Shoes</a></span> <span class="posted_in">
Brand: <a href="/brand/salomex/" rel="tag">Salomex</a></span></div></div>"""

MAGENTO = """<div class="product-info-main"><div class="page-title-wrapper product"><h1
class="page-title"><span class="base" data-ui-id="page-title-wrapper">Trail Runner 3 Shoe</span>
</h1></div><div class="product-info-price"><div class="price-box price-final_price"
data-role="priceBox" data-product-id="1556"><span class="special-price"><span class="price-container
price-final_price tax weee"><span class="price-label">Special Price</span> <span
id="product-price-1556" data-price-amount="89.9" data-price-type="finalPrice"
class="price-wrapper"><span class="price">$89.90</span></span></span></span><span class="old-price">
<span class="price-container price-final_price tax weee"><span class="price-label">Regular Price
</span><span id="old-price-1556" data-price-amount="99" data-price-type="oldPrice"
class="price-wrapper"><span class="price">$99.00</span></span></span></span></div><div
class="product-info-stock-sku"><div class="stock available" title="Availability"><span>In stock
</span></div><div class="product attribute sku"><strong class="type">SKU</strong><div class="value">
TR3-42</div></div></div></div><ul class="prices-tier items"><li class="item">Buy 3 for <span
class="price-container price-tier_price"><span class="price-wrapper"><span class="price">$80.00
</span></span></span> each and <strong class="benefit">save 11%</strong></li></ul><button
type="submit" title="Add to Cart" class="action primary tocart"><span>Add to Cart</span></button>
<table class="data table additional-attributes"><tr><th class="col label" scope="row">Manufacturer
</th><td class="col data" data-th="Manufacturer">Salomex</td></tr></table></div>"""

PRESTASHOP = """<h1 class="h1">Trail Runner 3 Shoe</h1><div class="product-prices
js-product-prices"> <div class="product-discount"><span
class="regular-price">$99.00</span></div><div class="product-price h5 has-discount"><div
class="current-price"><span class="current-price-value" content="89.9">$89.90</span><span
class="discount discount-percentage">Save 9%</span></div><p class="product-unit-price sub">($8.99
per kg)</p></div><div class="tax-shipping-delivery-label">Tax included</div></div><div
class="product-add-to-cart"><button class="btn btn-primary add-to-cart"
data-button-action="add-to-cart" type="submit">Add to cart</button><span id="product-availability"
class="js-product-availability"><i class="material-icons product-last-items">&#xE002;</i> Last items
in stock</span></div><div class="product-manufacturer"><label class="label">Brand</label><span><a
href="/brand/2-salomex">Salomex</a></span></div><div class="product-reference"><label class="label">
Reference </label><span>TR3-42</span></div>"""

SHOPWARE = """<h1 class="product-detail-name">Trail Runner 3 Shoe</h1><div class="col-md-auto
product-detail-manufacturer"><a href="https://salomex.example"
class="product-detail-manufacturer-link" title="Salomex"><img src="/m/1.png"
class="product-detail-manufacturer-logo" alt="Salomex"></a></div> <div
class="product-detail-price-container"><p class="product-detail-price with-list-price">$89.90*
</p><span class="list-price"><span class="list-price-price">$99.00*</span> <span
class="list-price-percentage">(9.19% saved)</span></span></div><div
class="product-detail-price-unit"><span class="price-unit-label">Content:</span> <span
class="price-unit-content">0.5 kg</span> <span class="price-unit-reference">($179.80* / 1 kg)</span>
</div><p class="product-detail-tax">Prices incl. VAT plus shipping costs</p><p
class="delivery-information delivery-available"><span class="delivery-status-indicator bg-success">
</span>Available, delivery time 1-3 days</p><button class="btn btn-primary btn-buy">Add to shopping
cart</button><div class="product-detail-ordernumber-container"><span
class="product-detail-ordernumber-label">Product number:</span> <span
class="product-detail-ordernumber">TR3-42</span></div>"""

BIGCOMMERCE = """<section class="productView-details product-data"><h1 class="productView-title">
Trail Runner 3 Shoe</h1><h2 class="productView-brand"><a href="/salomex/"><span>Salomex</span></a>
</h2><div class="productView-price"><div class="price-section price-section--withoutTax
non-sale-price--withoutTax"><span>Was:</span> <span class="price
price--non-sale">$99.00</span></div> <div class="price-section price-section--withoutTax"><span
class="price-now-label">Now:</span> <span class="price price--withoutTax
price--main">$89.90</span></div><div class="price-section price-section--saving price"><span
class="price">(You save</span> <span class="price price--saving">$9.10</span>
<span>)</span></div></div><dl class="productView-info"><dt class="productView-info-name
sku-label">SKU:</dt><dd class="productView-info-value">TR3-42</dd><dt
class="productView-info-name">Availability:</dt><dd class="productView-info-value">Usually ships in
24 hours</dd></dl></section><input id="form-action-addToCart" class="button button--primary"
type="submit" value="Add to Cart">"""

SALESFORCE = """<div class="container product-detail product-wrapper" data-pid="TR3-42"><div
class="product-brand">Salomex</div><h1 class="product-name">Trail Runner 3 Shoe</h1><div
class="product-number-rating"><div class="product-number">Item No. <span class="product-id">TR3-42
</span></div></div><div class="prices"><div class="price"><span><del><span class="strike-through
list"><span class="value" content="99.00"><span class="sr-only">Price reduced from</span> $99.00
<span class="sr-only">to</span></span></span></del><span class="sales"><span class="value"
content="89.90">$89.90</span></span></span></div></div><div class="availability
product-availability"><span class="availability-label">Availability:</span><ul class="list-unstyled
availability-msg"><li><div>In Stock</div></li></ul></div><button class="add-to-cart btn
btn-primary">Add to Cart</button></div>"""

HYBRIS = """<div class="product-details page-title"><h1 class="name">Trail Runner 3 Shoe</h1><span
class="sku">Product ID</span> <span class="code">TR342</span></div><div
class="product-main-info"><div class="product-details"><p class="price">$89.90</p><div
class="description">A light shoe.</div></div> <div class="addtocart-component"><div
class="info"><div class="stock-wrapper clearfix">In Stock</div> </div><button id="addToCartButton"
class="btn btn-primary btn-block js-add-to-cart">Add to cart </button></div><table><tr><td
class="attrib">Brand</td><td>Salomex</td></tr></table></div>"""

WIX = """<h1 data-hook="product-title" class="_2qrJF">Trail Runner 3 Shoe</h1><div data-hook="sku"
class="_1rwRc">SKU: TR3-42</div><div class="_26qxh"><span data-hook="sr-formatted-secondary-price"
class="_1EBPk">Regular Price</span><span data-hook="formatted-secondary-price" class="_3bOYT">$99.00
</span><span data-hook="sr-formatted-primary-price" class="_1EBPk">Sale Price</span><span
data-hook="formatted-primary-price" class="_2-l9W">$89.90</span></div><button
data-hook="add-to-cart" class="buttonnext1002086537__root">Add to Cart</button><div
data-hook="info-section"><h2>Brand</h2> <p>Salomex</p></div>"""

SQUARESPACE = """<article class="ProductItem hentry on-sale"><section
class="ProductItem-details"><h1 class="ProductItem-details-title">Trail Runner 3 Shoe</h1><div
class="ProductItem-product-price"><div class="product-price">$89.90 <span
class="original-price">$99.00</span></div></div><div
class="ProductItem-details-excerpt"><p><strong>Brand:</strong> Salomex</p><p>SKU: TR3-42</p></div>
<div class="sqs-add-to-cart-button-wrapper"><div class="sqs-add-to-cart-button" role="button">Add To
Cart</div></div></section></article>"""

OPENCART = """<h1>Trail Runner 3 Shoe</h1><ul class="list-unstyled"><li>Brands <a
href="/index.php?route=product/manufacturer/info&amp;manufacturer_id=8">Salomex</a></li><li>Product
Code: TR3-42</li><li>Reward Points: 100</li><li>Availability: In Stock</li></ul><ul
class="list-unstyled"><li><span style="text-decoration: line-through;">$99.00</span></li><li><h2>
$89.90</h2></li><li>Ex Tax: $75.00</li><li>Price in reward points: 400</li></ul><button
id="button-cart" class="btn btn-primary btn-lg btn-block">Add to Cart</button>"""

NOPCOMMERCE = """<div class="product-essential" data-productid="4"><div class="product-name"><h1>
Trail Runner 3 Shoe</h1></div><div class="manufacturers"><span class="label">Manufacturer:</span>
<span class="value"><a href="/salomex">Salomex</a></span></div><div class="availability"><div
class="stock"><span class="label">Availability:</span> <span class="value">In
stock</span></div></div> <div class="additional-details"><div class="sku"><span
class="label">SKU:</span> <span class="value"> TR3-42</span></div></div><div class="prices"><div
class="old-product-price"><span>Old price:</span> <span>$99.00</span></div><div
class="product-price"><span class="price-value-4">$89.90</span></div> </div><button class="button-1
add-to-cart-button">Add to cart</button></div>"""

VTEX = """<div class="vtex-flex-layout-0-x-flexCol"><span
class="vtex-store-components-3-x-productBrandName">Salomex</span><h1
class="vtex-store-components-3-x-productNameContainer"><span
class="vtex-store-components-3-x-productBrand">Trail Runner 3 Shoe</span></h1><span
class="vtex-product-identifier-0-x-product-identifier__label">SKU</span><span
class="vtex-product-identifier-0-x-product-identifier__separator">:</span> <span
class="vtex-product-identifier-0-x-product-identifier__value">TR342</span><span
class="vtex-product-price-1-x-listPrice"><span class="vtex-product-price-1-x-listPriceValue
strike"><span class="vtex-product-price-1-x-currencyContainer">$99.00</span></span></span><span
class="vtex-product-price-1-x-sellingPrice"><span class="vtex-product-price-1-x-sellingPriceValue">
<span class="vtex-product-price-1-x-currencyContainer">$89.90</span></span></span><span
class="vtex-product-price-1-x-installments">4x of $22.48</span><button class="vtex-button">Add to
cart </button></div>"""

PLATFORMS = {
    "shopify": SHOPIFY, "woocommerce": WOOCOMMERCE, "magento": MAGENTO, "prestashop": PRESTASHOP,
    "shopware": SHOPWARE, "bigcommerce": BIGCOMMERCE, "salesforce": SALESFORCE, "hybris": HYBRIS,
    "wix": WIX, "squarespace": SQUARESPACE, "opencart": OPENCART, "nopcommerce": NOPCOMMERCE,
    "vtex": VTEX,
}  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_field_of_a_platform(platform: str) -> None:
    product = read(PLATFORMS[platform])
    before = None if platform == "hybris" else Decimal("99.00")
    sku = "TR342" if platform in ("hybris", "vtex") else "TR3-42"
    few = platform == "prestashop"
    assert (product.name, product.price, product.currency) == (NAME, Decimal("89.90"), "USD")
    assert (product.list_price, product.brand, product.sku) == (before, "Salomex", sku)
    assert product.availability is (Availability.LIMITED if few else Availability.IN_STOCK)


HEADING = f"<h1>{NAME}</h1>"
PRICE = "<p class='price'>$89.90</p>"
BUY = "<button>Add to cart</button>"


@pytest.mark.parametrize(
    "markup",
    [
        "<div class='price'>$89.90 <span>($17.98 / kg)</span></div>",
        "<div class='price-box'><b>$89.90</b><small>Unit price: $17.98 per kg</small></div>",
        "<div class='price'>$89.90<i>or 4 interest-free payments of $22.48</i></div>",
        "<p class='price'>or 4 x $22.48</p><p class='price'>$89.90</p>",
        "<p class='price'>12x R$ 8,33 sem juros</p><p class='price'>R$ 89,90 à vista</p>",
        "<p class='price'>$8.99 per month</p><p class='price'>$89.90</p>",
        "<p class='price'>$5 off</p><p class='price'>$89.90</p>",
        "<p class='member-price'>Members: $79.90</p><p class='price'>$89.90</p>",
        "<div class='price'><span>Member price</span> <b class='price-value'>$79.90</b></div>"
        "<div class='price'><span>Regular price</span> <b class='price-value'>$89.90</b></div>",
        "<label class='option'>Subscribe <b class='subscription-price'>$80.91</b></label>"
        "<label class='option'>One-time purchase <b class='price'>$89.90</b></label>",
        "<p class='price'>$74.92 <i>excl. tax</i></p><p class='price'>$89.90 <i>incl. tax</i></p>",
        "<p class='price'><b class='price-ex-vat'>$74.92 ex VAT</b>"
        " <b class='price-inc-vat'>$89.90 inc VAT</b></p>",
        "<b class='price'>$89.90</b><p>Lowest price in 30 days before the discount:"
        " <span class='price'>$85.00</span></p>",
        "<b class='price'>89,90 €</b><p>Niedrigster Preis der letzten 30 Tage:"
        " <span class='price'>85,00 €</span></p>",
        "<div class='prices'><div class='price'><del><span class='value'>$99.00</span></del>"
        "<span class='sales'><span class='value'>$89.90</span></span></div></div>",
        "<p class='price'>RRP 99.00</p><p class='price'>89.90</p>",
        "<p class='price'><i class='with-list-price'>$89.90</i> <s>$99.00</s></p>",
        "<p class='price'>From $89.90</p>",
        "<p class='price'>$89.90 – $119.90</p>",
        "<p class='price'>As low as <b class='price'>$89.90</b></p>",
        "<p class='price'>$89.90</p><p class='price'>Approximately $119.00</p>",
        "<div><i>You save:</i> <b class='price-now'>$10.00</b></div><p class='price'>$89.90</p>",
    ],
)  # fmt: skip
def test_a_price_that_everyone_pays_for_the_whole_product(markup: str) -> None:
    assert read(HEADING + markup + BUY).price == Decimal("89.90")


def test_a_price_for_some_buyers_is_used_where_there_is_no_other() -> None:
    assert read(f"{HEADING}<p class='price'>Members: $79.90</p>{BUY}").price == Decimal("79.90")
    assert read(f"{HEADING}<p class='price'>$74.92 ex VAT</p>{BUY}").price == Decimal("74.92")


@pytest.mark.parametrize(
    ("text", "currency"), [("$89.90 CAD", "CAD"), ("$89.90", "USD"), ("$89.90 off", "USD")]
)
def test_a_code_says_which_dollar_is_meant(text: str, currency: str) -> None:
    amount = next(money_in(text, ("USD",)))
    assert (amount.currency, text[amount.start : amount.end].strip()) == (
        currency, text.removesuffix(" off"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("markup", "meaning"),
    [
        ("<p class='stock available-on-backorder'>Available on backorder</p>" + BUY, "backorder"),
        ("<button class='add-to-cart'>Pre-order now</button>", "preorder"),
        ("<p class='stock'>Verfügbar ab 12.05.</p><button>Vorbestellen</button>", "preorder"),
        ("<p class='inventory'>Hurry, only 2 items left!</p>" + BUY, "limited"),
        ("<p class='inventory'>3 left</p>" + BUY, "limited"),
        ("<p class='inventory'>23 left</p>" + BUY, "in_stock"),
        ("<p class='delivery-info delivery-soldout'>No longer available</p>", "discontinued"),
        ("<p>This product has been discontinued.</p>", "discontinued"),
        ("<p class='stock'>Expected back in stock: 4 June</p><button>Notify me</button>",
         "out_of_stock"),
        ("<button disabled>Coming soon</button>", "out_of_stock"),
        ("<p class='availability'>Available in store only</p>", "in_store_only"),
        ("<label class='variant'>42 <i>Variant sold out</i></label>" + BUY, "in_stock"),
        ("<p class='availability'>Delivery: in stock</p><p class='availability'>Pickup: unavailable"
         "</p>" + BUY, "in_stock"),
    ],
)  # fmt: skip
def test_availability_in_the_words_of_shops(markup: str, meaning: str) -> None:
    assert read(HEADING + PRICE + markup).availability == meaning


@pytest.mark.parametrize(
    "markup",
    [
        "<a href='/salomex'>Shop all Salomex</a>",
        "<a href='/c/12'>More from Salomex</a>",
        "<a href='/c/12'>MORE FROM Salomex</a>",
        "<a href='/c/12'>Visit the Salomex store</a>",
        "<a href='/c/12'>See all products by Salomex</a>",
        "<a href='/c/12'>Weitere Artikel von Salomex</a>",
        "<a href='/c/12'>Tous les produits Salomex</a>",
        "<a href='/c/12'>Ver más productos de Salomex</a>",
        "<section class='more-from-brand'><h2>More from Salomex</h2></section>",
        "<a href='/brands/salomex' aria-label='Go to Salomex brand page'><svg></svg></a>",
        "<a class='product-brand' href='/s' title='Salomex'><svg></svg></a>",
        "<dl><dt>Designer</dt><dd><a href='/d/salomex'>Salomex</a></dd></dl>",
        "<p>Vendor: Salomex</p>",
        "<li><strong>Brand</strong> – Salomex</li>",
        """<div data-gtm='{"item_brand": "Salomex", "item_name": "Trail Runner 3 Shoe",
        "price": 89.9, "item_id": "T1"}'></div>""",
    ],
)
def test_brands_that_the_page_names_in_passing(markup: str) -> None:
    assert read(HEADING + PRICE + markup + BUY).brand == "Salomex"


@pytest.mark.parametrize(
    "markup",
    [
        "<h3>About Salomex</h3>",
        "<p><a href='/c/9'>Salomex</a></p>",
        "<img src='/l.png' alt='Salomex'>",
    ],
)
def test_a_name_that_begins_the_title_and_stands_alone_is_a_brand(markup: str) -> None:
    title = f"Salomex {NAME}"
    assert read(f"<h1>{title}</h1>{PRICE}{markup}{BUY}", title).brand == "Salomex"
    crumbs = f"<ol class='breadcrumb'><li>{markup}</li></ol>" if "href" in markup else ""
    assert read(f"{crumbs}<h1>{title}</h1>{PRICE}{BUY}", title).brand is None


@pytest.mark.parametrize(
    "markup",
    [
        "<a href='/c/1'>Shop all shoes</a><a href='/c/1'>Shop All Shoes</a>",
        "<p class='breadcrumb'><a href='/s'>Shoes</a></p><a href='/s'>Shop all Shoes</a>",
        "<nav><a href='/w'>Shop all Women</a></nav>",
        "<a href='/c/1'>More from this collection</a><a href='/c/1'>More from our blog</a>",
        "<a href='/c/1'>See all products</a><a href='/c/1'>View all details</a>",
        "<a href='/c/1'>Visit our store</a><a href='/c/1'>Visit the store</a>",
        "<dl><dt>Designer</dt><dd>Henrik Prent</dd></dl>",
        "<p>Designer furniture</p>",
        "<h2>More From The Same Brand</h2><h2>More of What You Love</h2>",
        "<h2>Visit the Size Guide page</h2><h2>View all products from A to Z</h2>",
        "<p class='breadcrumb'><a href='/s'>Running</a></p><h2>More from Running</h2>",
        "<img src='/1.jpg' alt='Trail Runner'>",
        "<a href='/t/1'>Trail</a>, <a href='/t/2'>Outdoor</a>",
        "<ul><li><a href='/t/1'>Trail</a></li></ul>",
        "<p class='product__sku caption-with-letter-spacing'>SKU: TR3-42</p>",
    ],
)
def test_calls_that_name_no_brand(markup: str) -> None:
    assert read(HEADING + PRICE + markup + BUY).brand is None


@pytest.mark.parametrize(
    ("markup", "sku"),
    [
        ("<p>Ref. TR3-42</p>", "TR3-42"),
        ("<p>Style #: TR3-42</p>", "TR3-42"),
        ("<button data-product_sku='TR3-42' data-product_id='993'>Add to cart</button>", "TR3-42"),
        ("<p>Product</p><p>Reward points: 100</p>", None),
        ("<p>Ref. no longer given</p>", None),
    ],
)
def test_codes_in_the_markup_of_shops(markup: str, sku: str | None) -> None:
    assert read(HEADING + PRICE + markup + BUY).sku == sku


def test_the_days_of_a_lowest_price_are_no_price() -> None:
    lowest = "<div class=price>Lowest price of the last 30 days: <b>$80.00</b></div>"
    assert read(HEADING + lowest + BUY).price is None
