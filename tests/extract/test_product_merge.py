"""Many claims, one product."""

from __future__ import annotations

from decimal import Decimal

from product_pages import page_of, shop_page

from forager.extract.product.extract import extract_product, find_facts
from forager.extract.product.merge import claims_for, merge
from forager.extract.product.product import Fact, FieldName

PAGE = page_of(shop_page("<b class='price'>£49.90</b><button>Add to basket</button>"))


def _price(amount: str, confidence: float, origin: str) -> Fact:
    return Fact(FieldName.PRICE, Decimal(amount), confidence, origin)


def test_places_that_agree_make_a_value_surer() -> None:
    facts = [
        _price("10", 0.8, "json-ld:Product"),
        _price("10.00", 0.6, "dom:price"),
        _price("10", 0.5, "dom:text"),
        _price("12", 0.82, "microdata:Product"),
    ]
    ten, twelve = claims_for(FieldName.PRICE, facts)
    assert ten.confidence > twelve.confidence > 0.8
    assert merge(facts, PAGE).price == 10
    assert merge(facts, PAGE).evidence["price"].origin == "json-ld:Product"


def test_codes_are_the_same_however_they_are_written() -> None:
    facts = [
        Fact(FieldName.SKU, "924/9556", 0.7, "dom:sku"),
        Fact(FieldName.SKU, "9249556", 0.6, "url"),
    ]
    (claim,) = claims_for(FieldName.SKU, facts)
    assert claim.value == "924/9556"
    assert claim.confidence > 0.7


def test_a_site_parser_overrides_single_fields() -> None:
    generic = extract_product(PAGE)
    parsed = extract_product(PAGE, [_price("1.00", 0.9, "parser:shop")])
    assert (generic.price, parsed.price) == (Decimal("49.90"), Decimal(1))
    assert parsed.evidence["price"].origin == "parser:shop"
    assert parsed.name == generic.name
    unsure = extract_product(PAGE, [_price("1.00", 0.2, "parser:shop")])
    assert unsure.price == Decimal("49.90")


def test_a_list_price_is_higher_than_the_price() -> None:
    lower = Fact(FieldName.LIST_PRICE, Decimal(5), 0.9, "json-ld:Product")
    assert merge([_price("10", 0.9, "json-ld:Product"), lower], PAGE).list_price is None


def test_facts_have_values_of_the_products_own_types() -> None:
    assert {fact.field for fact in find_facts(PAGE)} >= {FieldName.NAME, FieldName.PRICE}
    assert all(0 <= fact.confidence <= 1 for fact in find_facts(PAGE))
