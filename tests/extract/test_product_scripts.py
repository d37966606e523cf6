"""The state that shops hand to their own scripts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from product_pages import product_of, shop_page

from forager.extract.product.product import Availability

KETTLE = {
    "id": 48213,
    "name": "Copper kettle",
    "brand": {"name": "Acme"},
    "sku": "AC-48213",
    "price": {"current": {"value": 49.9, "currency": "GBP"}},
    "originalPrice": 59,
    "ean": "4006381333931",
    "inStock": False,
}
OTHERS = [{"id": n, "name": f"Teapot {n}", "sku": f"T-{n}", "price": n} for n in range(50)]


def _script(text: str, attributes: str = "") -> str:
    return shop_page(f"<script {attributes}>{text}</script>")


def test_the_state_of_an_application() -> None:
    state: dict[str, Any] = {"props": {"others": OTHERS, "pageProps": {"product": KETTLE}}}
    product = product_of(_script(json.dumps(state), 'id="__NEXT_DATA__" type="application/json"'))
    assert (product.price, product.list_price) == (Decimal("49.9"), Decimal(59))
    assert (product.currency, product.brand, product.sku) == ("GBP", "Acme", "AC-48213")
    assert product.gtin == "4006381333931"
    assert product.availability is Availability.OUT_OF_STOCK
    assert product.evidence["price"].origin == "script:state"


def test_a_value_assigned_in_a_script() -> None:
    data = json.dumps({"items": [*OTHERS, KETTLE]})
    for text in (
        f"window.__INITIAL_STATE__ = {data};",
        f"var a = 1; window.__PRELOADED_STATE__={data}; start();",
        f"dataLayer.push({data});",
        f"window.state = JSON.parse({json.dumps(data)});",
    ):
        assert product_of(_script(text)).sku == "AC-48213"


def test_javascript_that_is_not_json() -> None:
    product = product_of(
        _script(
            "dataLayer.push({ecommerce: {detail: {products: [{name: 'Copper kettle', id: 'AC-1',"
            " price: '49.90', brand: 'Acme'}]}}});"
        )
    )
    assert (product.price, product.brand, product.sku) == (Decimal("49.90"), "Acme", "AC-1")


def test_a_theme_that_counts_in_cents() -> None:
    theme = {
        "title": "Copper kettle",
        "price": 4990,
        "compare_at_price": 5900,
        "vendor": "Acme",
        "variants": [
            {
                "title": "1 l",
                "sku": "A",
                "price": 4990,
                "compare_at_price": 5900,
                "available": True,
            },
            {
                "title": "2 l",
                "sku": "B",
                "price": 6990,
                "compare_at_price": None,
                "available": False,
            },
        ],
    }
    product = product_of(_script(json.dumps(theme), 'type="application/json"'))
    assert (product.price, product.list_price) == (Decimal("49.90"), Decimal(59))
    assert [variant.price for variant in product.variants] == [Decimal("49.90"), Decimal("69.90")]
    assert product.variants[1].availability is Availability.OUT_OF_STOCK


def test_objects_of_other_products_are_left_alone() -> None:
    product = product_of(_script(json.dumps(OTHERS), 'type="application/json"'))
    assert product.price is None


def test_data_in_attributes() -> None:
    data = json.dumps(KETTLE).replace('"', "&quot;")
    assert product_of(shop_page(f'<div data-product="{data}"></div>')).price == Decimal("49.9")
