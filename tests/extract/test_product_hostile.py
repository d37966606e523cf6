"""Pages that were made to break, and pages that merely are broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from product_pages import linked, product_of, shop_page

from forager.errors import InvalidInput
from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from forager.extract.product.product import Product

_NAMES = [
    "@type", "@graph", "@id", "name", "offers", "price", "priceCurrency", "availability", "brand",
    "image", "sku", "gtin13", "aggregateRating", "ratingValue", "bestRating", "reviewCount",
    "hasVariant", "priceSpecification", "category", "itemListElement", "item", "url", "lowPrice",
    "description", "identifier", "variants", "model",
]  # fmt: skip
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["Product", "Offer", "ProductGroup", "BreadcrumbList", "1e400", "$9", "\ud800"]
    )
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=6)
    ),
    max_leaves=25,
)
_PRODUCTS = st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=12).map(
    lambda item: {**item, "@type": "Product"}
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_PRODUCTS | _VALUES, max_size=4))
def test_no_json_ld_breaks_extraction(items: list[object]) -> None:
    assert isinstance(product_of(linked(json.dumps(items))), Product)


@settings(max_examples=100, deadline=None)
@given(_VALUES)
def test_no_state_breaks_extraction(value: object) -> None:
    state = json.dumps({"name": "Copper kettle", "price": value, "sku": value, "variants": [value]})
    product_of(shop_page(f"<script>window.state = {state}</script>"))


_ATTRIBUTES = st.sampled_from(
    ["itemscope", "itemtype='http://schema.org/Product'", "itemprop='offers'", "itemprop='price'",
     "itemprop='name sku brand'", "content='9'", "property='offers'", "typeof='Product'",
     "content='\ud83d'", "class='sku'", "href='http://['", "hidden", "itemprop=''",
     "data-product='{'", "class='price'"]
)  # fmt: skip
_ELEMENTS = st.recursive(
    st.text(max_size=12),
    lambda inner: st.builds(
        lambda tag, names, parts: f"<{tag} {' '.join(names)}>{''.join(parts)}</{tag}>",
        st.sampled_from(["div", "span", "a", "meta", "link", "h1", "s", "time", "img"]),
        st.lists(_ATTRIBUTES, max_size=4),
        st.lists(inner, max_size=3),
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(_ELEMENTS)
def test_no_markup_breaks_extraction(markup: str) -> None:
    assert isinstance(product_of(f"<body>{markup}</body>"), Product)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_extraction(body: bytes) -> None:
    extract_product(open_page(body, "https://shop.example/x"))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"@type": "Product", "offers": ' + '{"offers": ' * 20_000 + "1" + "}" * 20_001,
        '"' + '\\"' * 200_000,
        "/*" * 200_000,
        "{" + " " * 400_000,
        '{"a": 1' + "," * 300_000,
        "<!--" * 50_000,
        ";" * 300_000,
    ],
)
def test_hostile_scripts_end_soon(text: str) -> None:
    assert product_of(linked(text)).price is None
    product_of(shop_page(f"<script>window.price = {text}</script>"))


def test_hostile_texts_end_soon() -> None:
    for text in ("9" * 200_000, "9 " * 100_000, "£" * 200_000, "1.000." * 50_000, "SKU " * 50_000):
        product_of(shop_page(f"<p class='price sku stock brand rating'>{text}</p><b>{text}</b>"))


def test_texts_can_be_stored() -> None:
    data = json.dumps({"@type": "Product", "name": "a\0b\ud800", "description": "x\0" * 90_000})
    product = product_of(linked(data, body="<p>Nothing</p>"))
    assert product.name == "ab\ufffd"
    assert product.description is not None
    assert "\0" not in product.description
    assert len(product.description) <= 65_536


def test_an_address_must_be_one() -> None:
    with pytest.raises(InvalidInput):
        open_page(b"", "mailto:someone@example.org")
