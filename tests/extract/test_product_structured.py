"""Structured data as shops publish it, mistakes included."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from product_pages import URL, linked, product_of, shop_page

from forager.extract.product.product import Availability, ImageRole, Variant

KETTLE = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "Copper kettle",
    "description": "<p>Boils &amp; whistles.</p>",
    "image": ["/img/a.jpg", "https://cdn.example/b.jpg", "/img/a.jpg?w=200"],
    "brand": {"@type": "Brand", "name": "Acme"},
    "sku": "AC-48213",
    "gtin13": "4006381333931",
    "category": "Kitchen > Kettles",
    "aggregateRating": {"ratingValue": "9", "bestRating": "10", "reviewCount": "1,204"},
    "offers": {
        "@type": "Offer",
        "price": "49.90",
        "priceCurrency": "GBP",
        "availability": "https://schema.org/InStock",
    },
}


def test_every_field_of_json_ld() -> None:
    product = product_of(linked(json.dumps(KETTLE)))
    assert product.name == "Copper kettle"
    assert product.description == "Boils & whistles."
    assert (product.price, product.currency) == (Decimal("49.90"), "GBP")
    assert product.availability is Availability.IN_STOCK
    assert (product.rating, product.review_count) == (Decimal("4.50"), 1204)
    assert (product.brand, product.sku, product.gtin) == ("Acme", "AC-48213", "4006381333931")
    assert product.category == ("Kitchen", "Kettles")
    first, second = product.images
    assert first.url == "https://shop.example.co.uk/img/a.jpg"
    assert (first.role, second.role) == (ImageRole.PRIMARY, ImageRole.GALLERY)
    assert product.evidence["price"].origin == "json-ld:Product.offers"
    assert product.evidence["price"].confidence > 0.9
    assert product.confidence > 0.8


def test_small_versions_of_pictures_are_thumbnails() -> None:
    images = ["/thumbs/main.jpg", "/img/b.jpg", "/thumbnails/b.jpg", "/img/thumbelina.jpg"]
    product = product_of(linked(json.dumps({**KETTLE, "image": images})))
    roles = [image.role for image in product.images]
    primary, gallery, thumbnail = ImageRole.PRIMARY, ImageRole.GALLERY, ImageRole.THUMBNAIL
    assert roles == [primary, gallery, thumbnail, gallery]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda text: f"<!--\n{text}\n-->",
        lambda text: f"//<![CDATA[\n{text}\n//]]>",
        lambda text: f"{text};",
        lambda text: text[:-1] + ",}",
        lambda text: "/* the product */ " + text,
        lambda text: text.replace("Copper kettle", "Copper\tkettle"),
        lambda text: f"[{text}]",
        lambda text: '{"@graph": [{"@type": "WebPage"}, ' + text + "]}",
        lambda text: '{"@type": "WebPage", "mainEntity": ' + text + "}",
        lambda text: text.replace('"', "&quot;"),
        lambda text: text.replace('"Product"', '["Thing", "http://schema.org/Product"]'),
    ],
)
def test_mistakes_that_shops_make(mistake: object) -> None:
    assert callable(mistake)
    product = product_of(linked(mistake(json.dumps(KETTLE))))
    assert (product.name, product.price) == ("Copper kettle", Decimal("49.90"))


def _offered(offers: object, **more: object) -> str:
    return linked(
        json.dumps({"@type": "Product", "name": "Copper kettle", "offers": offers, **more})
    )


def test_offers_in_their_many_shapes() -> None:
    low = product_of(_offered({"@type": "AggregateOffer", "lowPrice": 10, "highPrice": "20"}))
    assert low.price == 10
    assert low.evidence["price"].confidence < 0.95
    specified = product_of(
        _offered(
            {
                "priceSpecification": [
                    {"price": 99, "priceType": "https://schema.org/ListPrice"},
                    {"price": "0.50", "referenceQuantity": {"value": 100}},
                    {"price": 79, "priceCurrency": "EUR"},
                ]
            }
        )
    )
    assert (specified.price, specified.list_price, specified.currency) == (
        Decimal(79),
        Decimal(99),
        "EUR",
    )
    several = product_of(
        _offered(
            [
                {"price": 12, "availability": "OutOfStock", "sku": "S"},
                {"price": 15, "availability": "InStock", "sku": "L"},
            ]
        )
    )
    assert (several.price, several.availability) == (Decimal(15), Availability.IN_STOCK)
    assert several.variants == (
        Variant(sku="S", price=Decimal(12), availability=Availability.OUT_OF_STOCK),
        Variant(sku="L", price=Decimal(15), availability=Availability.IN_STOCK),
    )


def test_a_product_group_has_variants() -> None:
    group = {
        "@type": "ProductGroup",
        "name": "Copper kettle",
        "hasVariant": [
            {"@type": "Product", "sku": "A", "name": "1 l", "offers": {"price": 10, "url": "?v=1"}},
            {"@type": "Product", "sku": "B", "gtin8": "96385074", "offers": {"price": 12}},
        ],
    }
    first, second = product_of(linked(json.dumps(group))).variants
    assert (first.sku, first.price, first.url) == ("A", Decimal(10), f"{URL}?v=1")
    assert second.gtin == "96385074"


def test_the_main_product_is_not_a_related_one() -> None:
    others = [
        {"@type": "Product", "name": f"Teapot {n}", "offers": {"price": n}} for n in range(1, 9)
    ]
    product = product_of(linked(json.dumps([*others, KETTLE])))
    assert product.price == Decimal("49.90")
    unrelated = product_of(linked(json.dumps(others), body="<h1>All our things</h1>"))
    assert unrelated.price is None
    assert unrelated.confidence < 0.5


def test_one_item_for_each_size_is_one_product() -> None:
    sizes = [
        {
            "@type": "Product",
            "name": "Copper kettle",
            "sku": f"K-{n}",
            "offers": {"price": 10, "availability": "InStock" if n == 7 else "OutOfStock"},
        }
        for n in range(9)
    ]
    product = product_of(linked(json.dumps(sizes)))
    assert (product.price, product.availability) == (Decimal(10), Availability.IN_STOCK)


def test_an_offer_that_holds_its_product() -> None:
    offer = {
        "@type": "Offer",
        "price": 7,
        "itemOffered": {"@type": "Product", "name": "Copper kettle"},
    }
    assert product_of(linked(json.dumps(offer))).price == 7


MICRODATA = """
<div itemscope itemtype="https://schema.org/Product">
  <h1 itemprop="name">Copper kettle</h1><img itemprop="image" src="/k.jpg">
  <span itemprop="brand" itemscope itemtype="https://schema.org/Brand">
    <span itemprop="name">Acme</span></span>
  <meta itemprop="sku" content="AC-1">
  <div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
    <span itemprop="price" content="49.90">49 pounds</span>
    <meta itemprop="priceCurrency" content="GBP">
    <link itemprop="availability" href="https://schema.org/OutOfStock"></div>
  <div itemprop="isRelatedTo" itemscope itemtype="https://schema.org/Product">
    <span itemprop="name">Copper kettle lid</span></div>
</div>
"""


def test_microdata() -> None:
    product = product_of(f"<body>{MICRODATA}</body>")
    assert (product.name, product.brand, product.sku) == ("Copper kettle", "Acme", "AC-1")
    assert (product.price, product.currency) == (Decimal("49.90"), "GBP")
    assert product.availability is Availability.OUT_OF_STOCK
    assert product.evidence["sku"].origin == "microdata:Product"


def test_an_offer_without_a_product_is_kept() -> None:
    product = product_of(
        shop_page(
            '<span itemprop="price" content="7.50"></span>'
            '<meta itemprop="priceCurrency" content="EUR">'
        )
    )
    assert (product.price, product.currency) == (Decimal("7.50"), "EUR")


def test_rdfa() -> None:
    product = product_of(
        '<body><div vocab="https://schema.org/" typeof="Product">'
        '<h1 property="name">Copper kettle</h1>'
        '<div property="offers" typeof="Offer"><span property="price" content="49.90"></span>'
        '<meta property="priceCurrency" content="EUR"></div></div></body>'
    )
    assert product.price == Decimal("49.90")
    assert product.evidence["price"].origin == "rdfa:Product.offers"


def test_meta_elements() -> None:
    head = "".join(
        f'<meta property="{name}" content="{value}">'
        for name, value in {
            "og:type": "product", "og:title": "Copper kettle", "og:image": "/k.jpg",
            "product:price:amount": "49.90", "product:price:currency": "SEK",
            "product:sale_price:amount": "39.90", "product:availability": "oos",
            "product:brand": "Acme", "product:retailer_item_id": "AC-1",
            "product:ean": "4006381333931",
        }.items()
    )  # fmt: skip
    product = product_of(shop_page("", head))
    assert (product.price, product.list_price) == (Decimal("39.90"), Decimal("49.90"))
    assert (product.currency, product.brand, product.sku) == ("SEK", "Acme", "AC-1")
    assert product.availability is Availability.OUT_OF_STOCK
    assert product.gtin == "4006381333931"
    assert product.images[0].url == "https://shop.example.co.uk/k.jpg"


def test_labels_of_shared_links() -> None:
    head = (
        '<meta name="twitter:label1" content="Price"><meta name="twitter:data1" content="£12.00">'
        '<meta name="twitter:label2" content="Availability">'
        '<meta name="twitter:data2" content="In stock">'
    )
    product = product_of(shop_page("", head))
    assert (product.price, product.currency) == (Decimal(12), "GBP")
    assert product.availability is Availability.IN_STOCK


def test_breadcrumbs_lose_home_and_product() -> None:
    crumbs = {
        "@type": "BreadcrumbList",
        "itemListElement": [
            {"@type": "ListItem", "name": "Home"},
            {"@type": "ListItem", "item": {"name": "Kitchen"}},
            {"@type": "ListItem", "name": "Copper kettle"},
        ],
    }
    assert product_of(linked(json.dumps(crumbs))).category == ("Kitchen",)


@pytest.mark.parametrize(
    "data",
    [
        {"@graph": [{**KETTLE, "brand": {"@id": "#b"}}, {"@id": "#b", "name": "Zenith"}]},
        {
            **{name: value for name, value in KETTLE.items() if name != "brand"},
            "additionalProperty": [{"name": "Weight", "value": "2 kg"},
                                   {"name": "Brand", "value": "Zenith"}],
        },
    ],
)  # fmt: skip
def test_a_brand_that_the_item_refers_to_or_lists(data: dict[str, object]) -> None:
    assert product_of(linked(json.dumps(data))).brand == "Zenith"


@pytest.mark.parametrize("reference", [["#b"], {"@id": "#b"}, None, 7])
def test_a_reference_that_is_no_text_is_left_out(reference: object) -> None:
    graph = [{**KETTLE, "brand": {"@id": reference}}, {"@id": "#b", "name": "Zenith"}]
    assert product_of(linked(json.dumps({"@graph": graph}))).name == KETTLE["name"]
