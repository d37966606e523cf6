"""Whether a page still shows the known product."""

from __future__ import annotations

import pytest

from forager.extract.product.product import Evidence
from forager.products.validation.identity import (
    Identity,
    identity_of,
    is_same_product,
    may_be_merged,
)
from products.product_shop import Shop, lamp

KNOWN = Identity("Brass Desk Lamp", "BL-100", "4006381333931")


@pytest.mark.parametrize(
    "seen",
    [
        Identity("Lamp of brass", "BL 100"),
        Identity("A lamp", None, "04006381333931"),
        # its codes were corrected, or are missing today
        Identity("Brass desk lamp", "BL-101", "5901234123457"),
        Identity("Brass Desk Lamp"),
    ],
)
def test_a_code_or_the_name_shows_the_same_product(seen: Identity) -> None:
    assert is_same_product(KNOWN, seen)


@pytest.mark.parametrize(
    "seen",
    [
        Identity("All products"),
        Identity("This product is no longer available"),
        Identity("Brass Desk Lamp 2", "BL-200", "5901234123457"),
        Identity("Desk Lamp"),
    ],
)
def test_a_page_without_the_codes_and_the_name_shows_another_product(seen: Identity) -> None:
    assert not is_same_product(KNOWN, seen)


def test_a_product_without_codes_may_be_spelled_in_other_words() -> None:
    known = Identity("Brass Desk Lamp")
    assert is_same_product(known, Identity("Brass Desk Lamp - New!", "X-1"))
    assert not is_same_product(known, Identity("All lamps"))


def test_a_code_of_the_url_is_no_identity() -> None:
    listing = lamp(None, name="All products", sku="12345", gtin=None, evidence={})
    assert identity_of(listing) == Identity("All products", "12345")
    of_url = lamp(None, sku="12345", gtin=None, evidence={"sku": Evidence(0.6, "url")})
    assert identity_of(of_url) == Identity("Brass Desk Lamp")
    assert identity_of(lamp(name=None)) is None


def test_products_are_merged_by_gtin_or_by_sku_and_name() -> None:
    assert may_be_merged(KNOWN, Identity("Lamp", "X", "4006381333931"))
    assert may_be_merged(Identity("Lamp", "X"), Identity("lamp", "x"))
    assert not may_be_merged(Identity("Lamp", "X"), Identity("Vase", "X"))
    assert not may_be_merged(Identity("Lamp"), Identity("Lamp"))
    assert not may_be_merged(KNOWN, Identity(KNOWN.name, KNOWN.sku, "5901234123457"))


async def test_codes_that_a_page_leaves_out_are_kept(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    await shop.visit("lamp", lamp("45", sku=None, gtin=None))
    row = await shop.row("SELECT price, sku, gtin FROM products")
    assert row == (45, lamp().sku, lamp().gtin)


async def test_two_products_that_redirect_to_one_page_by_name_alone_stay_two(shop: Shop) -> None:
    nameless = {"sku": None, "gtin": None}
    await shop.visit("a", lamp("50", **nameless))
    await shop.visit("b", lamp("60", **nameless))
    moved = [
        await shop.page(name, lamp("55", **nameless), final_url=shop.url("c")) for name in "ab"
    ]
    await shop.write(*moved)
    assert len(await shop.rows("SELECT FROM products")) == 2
