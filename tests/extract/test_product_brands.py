"""Brands as the software of shops marks them, and texts that only look like brands."""

from __future__ import annotations

import pytest

from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from forager.extract.product.product import Product


def product_of(body: str) -> Product:
    html = f"""<!doctype html><title>Trail Runner 3 Shoe - Example Shop</title>
        <main><h1>Trail Runner 3 Shoe</h1><span class="price">$89.90</span>{body}
        <button>Add to cart</button></main>"""
    return extract_product(open_page(html.encode(), "https://www.exampleshop.com/p/trail-runner"))


@pytest.mark.parametrize(
    "body",
    [
        '<div class="product-single__vendor">Salomex</div>',
        '<a href="/collections/vendors?q=Salomex">Salomex</a>',
        '<div class="pwb-single-product-brands"><a href="/brand/s/"><img alt="Salomex"></a></div>',
        '<span class="posted_in">Brand: <a href="/brand/salomex/" rel="tag">Salomex</a></span>',
        '<div class="product attribute manufacturer"><b>Manufacturer</b><i>Salomex</i></div>',
        '<a class="product-detail-manufacturer-link" href="/x"><img alt="Salomex"></a>',
        '<div class="product--supplier"><a href="/s/"><img src="x.png" alt="Salomex"></a></div>',
        '<h2 class="productView-brand"><a href="/salomex/"><span>Salomex</span></a></h2>',
        "<p>by <a href=/s/salomex>Salomex</a></p>",
        '<div class="pdp" data-product-brand="Salomex"></div>',
        '<div class="pdp" data-vendor="Salomex"></div>',
        '<form data-manufacturer="Salomex" action="/cart"></form>',
        '<form><input type="hidden" name="brand" value="Salomex"></form>',
        '<span itemprop="manufacturer">Salomex</span>',
        '<meta name="product:manufacturer" content="Salomex">',
    ],
)
def test_brands_in_the_markup_of_shop_software(body: str) -> None:
    assert product_of(body).brand == "Salomex"


@pytest.mark.parametrize(
    "label",
    [
        "Brand", "Brand Name", "Marke:", "Markenname", "Hersteller", "Marque", "Marque du produit",
        "Fabricant", "Marca:", "Nome da marca", "Marchio", "Fabricante", "Merk", "Fabrikant",
        "Značka", "Producent", "Marka", "Valmistaja", "Produsent", "Κατασκευαστής", "Proizvođač",
        "Prekės ženklas", "Kaubamärk", "Бренд", "Марка", "Виробник", "ブランド名", "メーカー名",
        "品牌", "브랜드명", "Make",
    ],
)  # fmt: skip
def test_brands_in_tables_of_many_languages(label: str) -> None:
    table = f"<table><tr><th>Weight</th><td>200 g</td></tr><tr><th>{label}</th><td>Salomex</td>"
    assert product_of(table).brand == "Salomex"


@pytest.mark.parametrize(
    "script",
    [
        'dataLayer.push({"ecommerce":{"detail":{"products":[{"name":"Trail Runner 3 Shoe",'
        '"id":"TR342","price":"89.90","brand":"Salomex"}]}}});',
        "gtag('event', 'view_item', {currency: 'USD', items: [{item_id: 'TR342',"
        " item_name: 'Trail Runner 3 Shoe', item_brand: 'Salomex', price: 89.9}]});",
        'var utag_data={"product_id":["TR342"],"product_name":["Trail Runner 3 Shoe"],'
        '"product_brand":["Salomex"],"product_price":["89.90"]};',
        'var meta = {"product":{"id":6789,"vendor":"Salomex","variants":[{"id":1,"price":8990,'
        '"name":"Trail Runner 3 Shoe - 42","public_title":"42","sku":"TR342"}]}};',
    ],
)
def test_brands_in_the_data_for_analytics(script: str) -> None:
    assert product_of(f"<script>{script}</script>").brand == "Salomex"


def test_prices_of_variants_in_cents() -> None:
    html = b"""<title>Trail Runner 3 Shoe</title><h1>Trail Runner 3 Shoe</h1><script>var meta =
        {"product":{"id":6789,"vendor":"Salomex","variants":[{"id":1,"price":8990,
        "name":"Trail Runner 3 Shoe - 42","public_title":"42","sku":"TR342"}]}};</script>"""
    product = extract_product(open_page(html, "https://www.exampleshop.com/p/trail-runner"))
    assert str(product.price) == "89.9"


@pytest.mark.parametrize(
    "body",
    [
        "<div>Sold by Ramshop</div>",
        '<aside class="facet"><h4>Brand</h4><a href="?brand=acme">Acme</a></aside>',
        '<div class="review-list"><p>by Anna</p></div>',
        '<nav><a href="/brands/">All brands</a></nav>',
        "<p>Brand new in its box, never used.</p>",
        "<p>Make an offer</p>",
        '<section class="related-products"><p class="vendor" data-vendor="Otherco">Otherco</p>',
        '<p data-brand="fs"></p>',
        '<p data-brand="Acme"></p><p data-brand="Otherco"></p>',
    ],
)
def test_texts_that_are_no_brands(body: str) -> None:
    assert product_of(body).brand is None
