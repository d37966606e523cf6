"""The quantity that a page states for its price; a doubtful one is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from product_pages import BUY, linked, product_of, shop_page

OFFER = {"@type": "Offer", "price": "4.99", "priceCurrency": "GBP"}
REFERENCE = {"@type": "QuantitativeValue", "value": "100", "unitCode": "GRM"}


def _specified(**values: Any) -> dict[str, Any]:
    specification = {"@type": "UnitPriceSpecification", "priceCurrency": "GBP", **values}
    return {"offers": {**OFFER, "priceSpecification": specification}}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"size": "500 ml"}, "0.5 l"),
        ({"size": {"@type": "QuantitativeValue", "value": 750, "unitText": "ml"}}, "0.75 l"),
        ({"size": "XL"}, None),
        ({"netContent": {"value": "0.25", "unitCode": "KGM"}}, "0.25 kg"),
        ({"additionalProperty": [{"name": "Net weight", "value": "400 g"}]}, "0.4 kg"),
        ({"additionalProperty": [{"name": "Capacity", "value": "1.7 l"}]}, None),
        ({"hasMeasurement": {"name": "Net weight", "value": 2, "unitCode": "LBR"}},
         "0.90718474 kg"),
        ({"hasMeasurement": {"value": 20, "unitCode": "LTR"}}, None),
        ({"offers": {**OFFER, "eligibleQuantity": {"value": 6, "unitCode": "C62"}}}, "6 piece"),
        ({"offers": {**OFFER, "eligibleQuantity": {"value": 1, "unitCode": "C62"}}}, None),
        ({"offers": {**OFFER, "eligibleQuantity": {"minValue": 6, "unitCode": "C62"}}}, None),
        (_specified(price="2.50", referenceQuantity=REFERENCE), "0.2 kg"),
        (_specified(price="24.95", unitCode="KGM"), "0.2 kg"),
        # what is sold, with the base of its unit price
        (_specified(price="4.99", referenceQuantity={
            "value": "1.5", "unitCode": "LTR", "valueReference": {"value": 1, "unitCode": "LTR"},
        }), "1.5 l"),
        # 4.99 is not the price of a round quantity at 3.07: that of another offer
        (_specified(price="3.07", referenceQuantity=REFERENCE), None),
        # 4 pence may be 3.5 or 4.5: 11 to 14 kg
        (_specified(price="0.04", referenceQuantity=REFERENCE), None),
        (_specified(price="5", referenceQuantity=REFERENCE), None),
        ({"size": "500 ml", "netContent": "400 ml"}, None),
        # of the parcel, or of a thing that is not sold by weight
        ({"weight": "1.2 kg"}, None),
        ({"name": "Copper polish 250 g 500 g", "weight": {"value": 0.5, "unitCode": "KGM"}},
         "0.5 kg"),
    ],
)  # fmt: skip
def test_structured_data(data: dict[str, Any], expected: str | None) -> None:
    item = {"@type": "Product", "name": "Copper kettle", "offers": OFFER, **data}
    assert product_of(linked(json.dumps(item))).quantity == expected


def test_microdata() -> None:
    product = product_of(
        shop_page(
            "<div itemscope itemtype='https://schema.org/Product'>"
            "<meta itemprop='name' content='Copper kettle'>"
            "<div itemprop='offers' itemscope itemtype='https://schema.org/Offer'>"
            "<meta itemprop='price' content='4.99'><meta itemprop='priceCurrency' content='GBP'>"
            "<div itemprop='priceSpecification' itemscope"
            " itemtype='https://schema.org/UnitPriceSpecification'>"
            "<meta itemprop='price' content='2.50'><div itemprop='referenceQuantity' itemscope>"
            "<meta itemprop='value' content='100'><meta itemprop='unitCode' content='GRM'>"
            "</div></div></div></div>"
        )
    )
    assert (str(product.price), product.quantity) == ("4.99", "0.2 kg")


@pytest.mark.parametrize(
    ("metas", "expected"),
    [
        ({"product:unit_pricing_measure": "750 ml"}, "0.75 l"),
        ({"product:weight:value": "500", "product:weight:units": "g"}, None),
    ],
)
def test_meta(metas: dict[str, str], expected: str | None) -> None:
    head = "".join(f'<meta property="{name}" content="{text}">' for name, text in metas.items())
    page = shop_page(f"<p class='price'>£4.99</p>{BUY}", head=head)
    assert product_of(page).quantity == expected


def test_the_weight_says_which_quantity_of_the_name_is_meant() -> None:
    page = linked(
        json.dumps({"@type": "Product", "name": "Copper polish, 250 g or 500 g", "offers": OFFER}),
        body="<h1>Copper polish, 250 g or 500 g</h1>",
        head='<meta property="product:weight:value" content="0.5">'
        '<meta property="product:weight:units" content="kg">',
    )
    assert product_of(page).quantity == "0.5 kg"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>£2.50 / 100 g</p>", "0.2 kg"),
        ("<p>(£24.95/kg)</p>", "0.2 kg"),
        ("<p>1 kg = £24.95</p>", "0.2 kg"),
        ("<p><b>£2.50</b> <span>per 100 g</span></p>", "0.2 kg"),
        ("<p>£0.42 / piece</p>", "12 piece"),
        ("<p>£2.50 / 100 g</p><p>£1.00 / 100 g</p>", None),
        ("<p><del>£2.50 / 100 g</del></p>", None),
        ("<p>€2.50 / 100 g</p>", None),
        ("<div class='related'><p>£2.50 / 100 g</p></div>", None),
        ("<table><tr><th>Net weight</th><td>400 g</td></tr></table>", "0.4 kg"),
        ("<ul><li>Net contents: 330 ml</li></ul>", "0.33 l"),
        ("<table><tr><th>Weight</th><td>2.1 kg</td></tr></table>", None),
        ("<div class='related'><p>Net weight: 400 g</p></div>", None),
    ],
)
def test_visible(markup: str, expected: str | None) -> None:
    product = product_of(shop_page(f"<p class='price'>£4.99</p>{markup}{BUY}"))
    assert (str(product.price), product.quantity) == ("4.99", expected)


@pytest.mark.parametrize(
    "data",
    [
        {"size": ["", {"value": {"value": []}}], "netContent": {"value": True, "unitCode": "KGM"}},
        {"netContent": {"value": "1e99", "unitCode": "KGM"}},
        {"netContent": {"value": "1e-99", "unitCode": ["KGM"]}},
        {"weight": {"value": "9" * 5_000, "unitCode": "KGM"}, "additionalProperty": "Net weight"},
        _specified(price="1e-12", referenceQuantity=REFERENCE),
        _specified(price="1e29", referenceQuantity={"value": "0", "valueReference": {}}),
        {"offers": {**OFFER, "price": "0", "priceSpecification": [None, {"eligibleQuantity": 1}]}},
    ],
)
def test_hostile_data_states_no_quantity(data: dict[str, Any]) -> None:
    item = {"@type": "Product", "name": "Copper kettle", "offers": OFFER, **data}
    body = f"<h1>Copper kettle</h1><p>£2.50 / 1000000 kg</p>{BUY}"
    assert product_of(linked(json.dumps(item), body=body)).quantity is None
