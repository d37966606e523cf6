# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Values beside their labels: "SKU: 4711", "Art.-Nr. 4711", "Brand: Acme"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forager.extract.product.dom.view import View
from forager.extract.product.elements import Element
from forager.extract.product.record import Fact, FieldName
from forager.extract.product.wording import brand_of, gtin_of, sku_of

_SKU_LABEL = (
    r"(?:\bSKU|\bsku|\bUGS|\bASIN|Item (?:number|no\.?|code|id|#)|item (?:number|no\.?|code|id|#)"
    r"|Item ID|Product (?:code|number|no\.?|id|ID|#)|product (?:code|number|id)"
    r"|Prod(?:uct)? ?(?:ID|Code)"
    r"|Catalog(?:ue)? (?:number|no\.?|#)|Stock (?:code|number|no\.?)|Article (?:number|no\.?|code)"
    r"|Article"
    r"|Web ?Code|Web ID|Style (?:#|no\.?|number|code)|Style|Part (?:number|no\.?|#)|Order (?:code"
    r"|no\.?)"
    r"|Art(?:ikel)?\.?[- ]?(?:Nr|Nummer|nr|nummer|No|no)\.?|Bestell-?(?:Nr|nummer)\.?|Artikelnummer"
    r"|R[ée]f(?:[ée]rence)?\.?(?: (?:produit|article|fabricant))?|Codice(?: (?:prodotto"
    r"|articolo))?|Cod\.?"
    r"|Referencia|Código(?: (?:de producto|del? artículo|do produto))?|Ref\.?|C[óo]d\.?|Modelo"
    r"|SKU Code"
    r"|Kód(?: (?:produktu|tovaru|zboží|výrobku))?|Katalogové číslo|Kod (?:produktu|towaru)"
    r"|Cikkszám|Cod produs"
    r"|Артикул|Код (?:товара|товару)|Арт\.?|Varenummer|Varenr\.?|Art\.? ?nr\.?|Tuotenumero"
    r"|Ürün Kodu|Stok Kodu"
    r"|商品(?:番号|コード|編號|编号|代碼)|品番|型番|型號|貨號|货号|상품(?:번호|코드)|모델명"
    r"|رقم المنتج|رمز المنتج)"
)
_CODE = r"(?P<code>[\w][\w\-./]{2,40})"
_SKU_TEXT = re.compile(rf"(?<!\w){_SKU_LABEL}\s{{0,3}}[:#：.№]?\s{{0,3}}[:#：]?\s{{0,3}}{_CODE}")
# at the start of a line, the code behind it or in the next line
_SKU_LINE = re.compile(rf"{_SKU_LABEL}\s{{0,3}}[.№]?\s{{0,3}}[:#：]?\s{{0,3}}{_CODE}?$")
_GTIN_LABEL = r"(?:EAN|GTIN|UPC|ISBN|Barcode)"
_GTIN_LINE = re.compile(
    rf"{_GTIN_LABEL}(?:-?1[0-4]|-?8)?(?:[ -]?(?:code|number"
    r"|kód))?\s{0,3}[:：]?\s{0,5}"
    r"(?P<code>\d[\d\- ]{6,16}[\dXx])?(?!\d)",
    re.IGNORECASE,
)
_ID_ATTRIBUTES = (
    ("data-sku", 0.62), ("data-product-sku", 0.62), ("data-product-id", 0.5), ("data-productid",
     0.5),
    ("data-product_id", 0.5), ("data-pid", 0.45), ("data-item-id", 0.45),
)  # fmt: skip
_ID_INPUTS = {
    "sku": 0.62, "product_sku": 0.6, "product_id": 0.55, "productid": 0.55, "product-id": 0.55,
    "product": 0.5, "item_id": 0.5, "itemid": 0.5, "asin": 0.7, "pid": 0.5, "products_id": 0.55,
    "id_product": 0.55, "add-to-cart": 0.55, "prod_id": 0.5, "item": 0.4, "prodid": 0.5,
    "productcode": 0.6, "product_code": 0.6, "code": 0.4, "productnumber": 0.6, "id": 0.35,
}  # fmt: skip
_MAX_TEXT = 120


def label_facts(view: View) -> Iterator[Fact]:
    yield from _sku_facts(view)
    yield from _brand_facts(view)


def _sku_facts(view: View) -> Iterator[Fact]:
    for element in view.elements.skus[:200]:
        yield from _sku_of_element(element, view)
    for element in view.elements.inputs[:300]:
        name = (element.attributes.get("name") or element.attributes.get("id") or "").lower()
        if (confidence := _ID_INPUTS.get(name)) is None:
            continue
        value = element.attributes.get("value") or ""
        if _is_code(value) and not view.surroundings.of(element.node).elsewhere:
            yield Fact(
                FieldName.SKU, value.strip(), confidence - _far(element, view), f"dom:input {name}"
            )


def _sku_of_element(element: Element, view: View) -> Iterator[Fact]:
    around = view.surroundings.of(element.node)
    if around.elsewhere or around.tile:
        return
    for name, confidence in _ID_ATTRIBUTES:
        value = element.attributes.get(name)
        if value and _is_code(value):
            yield Fact(
                FieldName.SKU, value.strip(), confidence - _far(element, view), f"dom:{name}"
            )
    if element.node.tag in ("script", "style", "input", "select", "form", "option"):
        return
    text = element.node.text(separator=" ")
    if len(text) > 600 or not (text := " ".join(text.split())) or len(text) > _MAX_TEXT:
        return
    labelled = _SKU_TEXT.search(text)
    value = labelled["code"] if labelled else text
    is_sku = "sku" in element.names or labelled
    code = sku_of(value)
    if is_sku and code and _is_code(code):
        confidence = 0.72 if labelled else 0.66
        yield Fact(
            FieldName.SKU,
            code,
            confidence - _far(element, view),
            f"dom:{element.names[:40].strip()}",
        )


def _is_code(value: str) -> bool:
    text = value.strip()
    return 3 <= len(text) <= 60 and any(map(str.isdigit, text)) and " " not in text


def _far(element: Element, view: View) -> float:
    return 0.15 if view.distance(element) > 1500 else 0.0


def line_facts(view: View) -> Iterator[Fact]:
    """Labels in any short line of the text, for what nothing better has said."""
    named_sku = named_gtin = named_brand = False
    lines = [text for _, _, text in view.texts if len(text) < 100]
    for line, following in zip(lines, (*lines[1:], ""), strict=False):
        if not _ANY_LINE.match(line):
            continue
        if not named_sku and (code := _labelled_sku(line, following)):
            named_sku = True
            yield Fact(FieldName.SKU, code, 0.58, "dom:label")
        if not named_gtin and (gtin := _labelled_gtin(line, following)):
            named_gtin = True
            yield Fact(FieldName.GTIN, gtin, 0.6, "dom:label")
        if not named_brand and (brand := _labelled_brand(line, following)):
            named_brand = True
            yield Fact(FieldName.BRAND, brand, 0.55, "dom:label")


_BRAND_LABEL = (
    r"(?:Brand|Marke|Marque|Marca|Značka|Merk|Märke|Varumärke|Manufacturer|Hersteller|Výrobce"
    r"|Výrobca|Márka"
    r"|Marka|Fabricant|Produttore|Fabricante|Producent|Бренд|Производитель|ブランド|メーカー|品牌"
    r"|브랜드|제조사)"
)
_BRAND_LINE = re.compile(
    rf"{_BRAND_LABEL}"
    r"(?:\s(?:name|Name))?\s{0,3}(?P<mark>[:：]?)\s{0,3}(?P<value>.{0,60})"
)

# most lines begin with no label, and are asked only once
_ANY_LINE = re.compile(rf"{_SKU_LABEL}|(?i:{_GTIN_LABEL})|{_BRAND_LABEL}")


def _labelled_brand(line: str, following: str) -> str | None:
    found = _BRAND_LINE.fullmatch(line)
    if found is None or (found["value"] and not found["mark"]):
        return None
    brand = brand_of(found["value"] or following)
    return brand if brand and len(brand) < 40 and not brand.endswith((":", ".", "?")) else None


def _labelled_sku(line: str, following: str) -> str | None:
    found = _SKU_LINE.match(line)
    if found is None:
        return None
    code = (found["code"] or following).strip().rstrip(".-/")
    return code if _is_code(code) and sum(map(str.isdigit, code)) >= 3 else None


def _labelled_gtin(line: str, following: str) -> str | None:
    found = _GTIN_LINE.match(line)
    return gtin_of(found["code"] or following) if found else None


def _brand_facts(view: View) -> Iterator[Fact]:
    for element in view.elements.brands[:80]:
        around = view.surroundings.of(element.node)
        if around.elsewhere or around.tile or view.distance(element) > 400:
            continue
        if element.node.tag in ("script", "style", "input", "select", "form", "ul", "nav"):
            continue
        text = element.node.text(separator=" ")
        if len(text) > 300:
            continue
        brand = brand_of(" ".join(text.split())) or _picture_brand(element)
        if brand and len(brand) < 50 and brand[-1] not in ".!?:":
            yield Fact(FieldName.BRAND, brand, 0.5, f"dom:{element.names[:40].strip()}")
            return


def _picture_brand(element: Element) -> str | None:
    picture = element.node.css_first("img[alt]")
    return brand_of(picture.attributes.get("alt")) if picture is not None else None
