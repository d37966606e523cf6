"""Products: structured data, markup and scripts of any shape give a product that can be stored."""

from __future__ import annotations

from forager.extract.product.currency import ISO_CODES
from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from forager.extract.product.product import Product, from_plain, to_plain
from forager.extract.urls import normalize
from fuzz.target import Target, assert_storable

_URL = "https://shop.example/en-gb/p/kettle-123456?variant=7"


def check_markup(data: bytes) -> None:
    """The page of a product, with microdata, RDFA or nothing but text."""
    _check(data)


def check_json_ld(data: bytes) -> None:
    """The text of a script of linked data."""
    script = b"<script type='application/ld+json'>%b</script><h1>Kettle</h1>"
    _check(b"<title>Kettle</title>" + script % data)


def check_state(data: bytes) -> None:
    """The text of a script in which a shop keeps its state."""
    _check(b"<h1>Kettle</h1><p class=price>$9</p><script>window.__STATE__ = %b</script>" % data)


def _check(body: bytes) -> None:
    product = extract_product(open_page(body, _URL, "text/html; charset=utf-8"))
    _check_amounts(product)
    _check_texts(product)
    assert from_plain(to_plain(product)) == product, "a product must survive being stored"


def _check_amounts(product: Product) -> None:
    variants = [variant.price for variant in product.variants]
    for amount in (product.price, product.list_price, *variants):
        # more than a price can be is kept, so that users see that it is wrong
        assert amount is None or (amount.is_finite() and 0 <= amount < 10**40)
    assert product.rating is None or 0 <= product.rating <= 5
    assert product.currency is None or product.currency in ISO_CODES
    assert 0 <= product.confidence <= 1
    for said in product.evidence.values():
        assert 0 <= said.confidence <= 1


def _check_texts(product: Product) -> None:
    texts = [product.name, product.description, product.brand, product.sku, product.gtin]
    texts += [text for each in product.variants for text in (each.sku, each.name, each.gtin)]
    for text in (*texts, *product.category, *(image.alt for image in product.images)):
        assert_storable(text or "")
    for url in (*(image.url for image in product.images), *(v.url for v in product.variants)):
        assert url is None or normalize(url) == url


MARKUP = Target(
    check_markup,
    [
        b"<div itemscope itemtype='http://schema.org/Product'><h1 itemprop=name>Kettle</h1>"
        b"<div itemprop=offers itemscope itemtype='http://schema.org/Offer'><meta itemprop=price "
        b"content=9.99><meta itemprop=priceCurrency content=EUR><link itemprop=availability "
        b"href='http://schema.org/InStock'></div><img itemprop=image src=/k srcset='a 1x,b 2x'>",
        b"<body typeof=Product property=x><span property=name>K</span><b property=price>1.299,00"
        b"</b><ol class=breadcrumb><li>A<li>B</ol>",
        b"<meta property=og:type content=product><meta property=product:price:amount content=1e3>"
        b"<h1>Kettle</h1><div class='price'><del>\xc2\xa312.00</del> \xc2\xa39<sup>99</sup></div>"
        b"<button>Add to cart</button><p>SKU: K-1</p><span class=stars title='4,5 / 5'></span>",
        b"<p class=stock>Only 3 left!</p><table><tr><th>Brand<td>Acme<tr><th>EAN<td>4006381333931",
    ],
    [b"itemscope", b"itemprop=offers", b"itemprop=price", b"itemtype='http://schema.org/Product'",
     b"content=", b"<meta property=og:", b"\xe2\x82\xac", b"\xc2\xa3", b"$", b"1.299,00", b"SKU:",
     b"class=price", b"<del>", b"srcset=", b"Out of stock", b"typeof=Product", b"property=price",
     b"4/5", b"(12)", b"<h1>", b"itemref=", b"itemid=", b"data-price=", b"9999999999999",
     b"1e400"],
)  # fmt: skip
JSON_LD = Target(
    check_json_ld,
    [
        b'{"@type":"Product","name":"Kettle","offers":{"price":"9.99","priceCurrency":"EUR",'
        b'"availability":"https://schema.org/InStock"},"aggregateRating":{"ratingValue":4.5,'
        b'"reviewCount":"12"},"image":["/a.jpg"],"brand":{"name":"A"},"gtin13":"4006381333931"}',
        b'{"@graph":[{"@type":["ProductGroup"],"hasVariant":[{"@id":"#a"}]},{"@id":"#a","sku":1}]}',
        b'[{"@type":"BreadcrumbList","itemListElement":[{"item":{"name":"A"}}]},{"@type":"Product",'
        b'"offers":{"@type":"AggregateOffer","lowPrice":1e400,"offerCount":-1}}]',
        b'<!-- {"@type":"Product","name":"a\nb","price":NaN,} -->',
    ],
    [b'"@type":', b'"Product"', b'"offers":', b'"price":', b'"@graph":', b'"@id":', b"{", b"}",
     b"[", b"]", b"NaN", b"1e400", b"-0", b"null", b"true", b'"hasVariant":',
     b'"priceSpecification":', b"\\ud800", b"\\u0000", b'"image":', b'"url":', b"<!--", b"/*",
     b"*/", b"//", b'"itemListElement":', b",", b'"aggregateRating":', b'"bestRating":',
     b'"reviewCount":', b"&quot;"],
)  # fmt: skip
STATE = Target(
    check_state,
    [b'{"product":{"name":"Kettle","price":999,"sku":"K1","variants":[{"id":7,"price":"9.99"}]}}',
     b'{name: "Kettle", price: {amount: 9.99, currency: \'EUR\'}, /* c */ inStock: true};',
     b"JSON.parse('{\\x22price\\x22:9}')"],
    [b'"price":', b'"sku":', b'"variants":', b"JSON.parse(", b"\\x22", b"{", b"}", b"'", b"`",
     b"//", b"/*", b"cents", b'"currency":', b"\\u", b"</script>", b"<!--"],
)  # fmt: skip
