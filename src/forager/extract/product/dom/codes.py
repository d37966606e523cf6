# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Visible codes beside a label: SKU, manufacturer part number and GTIN."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.view import TEXT_START, DomView
from forager.extract.product.elements import Element, Text
from forager.extract.product.product import Fact, FieldName
from forager.extract.product.wording import code_key, gtin_of, sku_of

_NUMBER = r"(?:numbers?|num\b\.?|no\b\.?|nr\b\.?|n[°º]|№|code|id\b|#)"
# a label that can only mean the shop's code
_STRONG = "|".join((
    rf"(?:store )?sku(?: {_NUMBER})?\b|asin\b|ugs\b",
    rf"(?:ebay )?(?:item|product|prod\b\.?|article|catalog(?:ue)?|cat\b\.?|stock|style|order|web"
    rf"|reference|listing|ad|post|deal|lot|style) ?{_NUMBER}",
    r"art(?:ikel)?[.-]{0,2} ?(?:nr|nummer|no|code|n[°º])\b\.?|(?:bestell|produkt|waren|material)-?"
    r"(?:nr|nummer|code|id)\b\.?|artikel-?id\b",
    r"r[ée]f(?:[ée]rence)?\.?(?: (?:du )?(?:produit|article|interne))|code (?:article|produit)"
    r"|(?:num[ée]ro|n[°º]) d(?:e l['’]objet|['’]article|e produit|u produit)(?: ebay)?",
    r"codice (?:prodotto|articolo|art\b\.?)|cod\. (?:art|prod)\w*\.?",
    r"c[óo]digo d[eo]l? ?(?:el )?(?:producto|art[íi]culo|produto|artigo)|(?:n[úu]mero|n[°º]\.?) de"
    r" (?:producto|art[íi]culo|modelo)|c[óo]d\. (?:prod|art)\w*\.?",
    r"(?:artikel|bestel|product)(?:nummer|nr|code)\b\.?|art\.? ?nr\b\.?|vare(?:nummer|nr)\b\.?"
    r"|produkt(?:nummer|nr|kod)\b\.?|best\.? ?nr\b\.?|tuote(?:numero|koodi|nro)\b",
    r"(?:objednac[íi] )?k[óo]d (?:produktu|zboží|tovaru|výrobku)|objednac[íi] (?:k[óo]d|číslo)"
    r"|katal[óo]gov[ée] číslo|číslo (?:produktu|výrobku|artiklu)|kod (?:produktu|towaru|producto)"
    r"|(?:nr|numer) (?:katalogowy|artykułu|produktu)|cikksz[áa]m|termékk[óo]d"
    r"|cod (?:produs|articol)",
    r"артикул|код (?:товара|товару|на продукта|продукта)|номер товара|ürün kodu|stok kodu"
    r"|κωδικ[όο]ς(?: προϊόντος)?",
    r"商品(?:管理)?(?:番号|コード|編號|编号|代碼|代码|號)|(?:產品|产品)(?:編號|编号)|品番|貨號|货号|品號"
    r"|(?:상품|제품|딜|모델)\s?(?:번호|코드)|품번|رقم (?:المنتج|الصنف)|(?:رمز|كود) المنتج"
    r"|מק[\"״]?ט|mã (?:sản phẩm|sp|hàng)\b|รหัสสินค้า|kode (?:produk|barang)",
))  # fmt: skip
# words that mean a code only with a colon, or alone in their element
_WEAK = (
    r"(?:r[ée]f(?:erenc(?:e|ia)|[ée]rence|erência)?\b\.?|rif\b\.?|cod(?:e|ice)?\b\.?"
    r"|c[óo]d(?:igo)?\b\.?|k[óo]d\b|kod\b|код|арт\b\.?|article|style|item|art\b\.?|symbol|indeks"
    r"|product)"
)
_MPN = (
    r"(?:mpn\b|(?:item )?model(?: (?:number|no\b\.?|#|name))?\b|modell(?:nummer|nr)?\b\.?"
    r"|modell?o\b|mod[èe]le\b|(?:mfr|mfg|manufacturer)\b\.?(?:'s)? ?(?:part|product|item)?"
    rf" ?{_NUMBER}|part ?(?:{_NUMBER})|(?:hersteller|manufacturer)-?(?:artikel)?-?(?:nr|nummer)\b"
    r"\.?|r[ée]f(?:[ée]rence)?\.? (?:fabricant|constructeur)|型番|型號|型号|모델명|part[ -]?number)"
)
_GTIN = r"(?:(?:ean|gtin|upc|isbn|barcode)(?:-?1[0-4]|-?8)?(?:[ -]?(?:code|number|kód))?)"
_LABEL = re.compile(
    rf"(?:(?P<mpn>{_MPN})|(?P<gtin>{_GTIN})|(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))"
    r"(?![^\W\d_])\s{0,3}(?P<mark>[:#：=№]{0,2})[\s.:]{0,4}"
)
_CODE = re.compile(r"(?P<code>\w[\w\-./]{1,40})(?=$|[\s,;|)\]〉】])")
_EDGE = "〈【[(*•·-–|>"
_BETWEEN = re.compile(r"\s*[|;•·]\s*|,\s+|\n\s*(?=\w)")
_SEPARATOR = re.compile(r"[|;•·,\n]")
_PUNCTUATION = re.compile(r"[\W_]*")
_MAX_TEXT = 100
# a label with this many codes belongs to a list of products or variants
_MANY = 4
_STRONG_TRUST, _WEAK_TRUST = 0.93, 0.74
_FAR = 3_000


class _LabeledCode(NamedTuple):
    field: FieldName
    label: str
    code: str
    trust: float
    distance: int


def code_facts(view: DomView) -> Iterator[Fact]:
    """Labeled codes, the best for each field."""
    found = list(_labeled_codes(view))
    for name in (FieldName.SKU, FieldName.MPN, FieldName.GTIN):
        of_field = [each for each in found if each.field is name]
        lists = {
            label
            for label in {each.label for each in of_field}
            if len({e.code for e in of_field if e.label == label}) >= _MANY
        }
        for each in sorted(of_field, key=lambda e: (-e.trust, e.distance))[:3]:
            trust = each.trust - (0.25 if each.label in lists else 0.0)
            yield Fact(name, each.code, trust, f"label:{each.label}")


def shown_spellings(view: DomView, codes: Collection[str]) -> Iterator[Fact]:
    """Known codes in their visible spelling: 466/7999 for 4667999."""
    keys = {code_key(code) for code in codes if len(code) > 4}
    # hardly any text ends with the last digit of a known code
    ends = tuple({key[-1] for key in keys if key[-1].isdigit()})
    for _, node, text in view.texts if ends else ():
        if not (text.endswith(ends) and 5 < len(text) < 24 and text[0].isalnum()):
            continue
        # a code that is known in this spelling needs no other
        if text not in codes and code_key(text) in keys and not _is_aside(node, view):
            yield Fact(FieldName.SKU, text, 0.93, "label:shown")
            return


def _labeled_codes(view: DomView) -> Iterator[_LabeledCode]:
    texts = view.texts
    for at in view.texts_with(_MAY_BE_LABEL):
        order, node, text = texts[at]
        if len(text) >= _MAX_TEXT:
            continue
        for found, rest in _labels_in(text):
            following = "" if rest else _next_text(texts, at)
            code = _code_beside(found, rest, following)
            if code is None or _is_aside(node, view):
                continue
            distance = abs(order - view.start)
            yield _labeled_code(
                found, code, distance, hidden=view.surroundings.of(_parent(node)).hidden
            )


def _next_text(texts: list[Text], at: int) -> str:
    """The text after a label, without the colon that may stand between them."""
    return next((t for _, _, t in texts[at + 1 : at + 4] if not _PUNCTUATION.fullmatch(t)), "")


def _labels_in(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The labels at the start of the parts of a text, each with the text after it."""
    parts = _BETWEEN.split(text) if _SEPARATOR.search(text) else (text,)
    for part in parts:
        bare = part.lstrip(_EDGE).strip()
        lower = bare.lower()
        if len(lower) == len(bare) and (found := _LABEL.match(lower)):
            yield found, bare[found.end() :]


def _code_beside(found: re.Match[str], rest: str, following: str) -> str | None:
    if found["gtin"]:
        return gtin_of(rest or following)
    if not rest:
        return _whole_code(following)
    # an abbreviation needs no colon: Ref. 1234
    if found["weak"] and not (found["mark"] or found["weak"].endswith(".")):
        return None
    code = _CODE.match(rest)
    if code is None:
        return None
    return code["code"].rstrip(".-/") if _is_code(code["code"]) else None


def _whole_code(text: str) -> str | None:
    """A text that is a code and nothing else; it may have blanks: GARNI 570 EASY II."""
    if ": " in text:
        return None  # another label
    code = sku_of(text.strip("〈〉()[]# "))
    return code if code and len(code) <= 40 and code.count(" ") <= 3 and _is_code(code) else None


def _is_code(text: str) -> bool:
    return len(text) >= 3 and any(map(str.isdigit, text))


def _labeled_code(found: re.Match[str], code: str, distance: int, *, hidden: bool) -> _LabeledCode:
    trust = _WEAK_TRUST if found["weak"] else _STRONG_TRUST
    trust -= 0.2 if hidden else 0.0
    trust -= 0.1 if distance > _FAR else 0.0
    field = FieldName.MPN if found["mpn"] else FieldName.GTIN if found["gtin"] else FieldName.SKU
    label = found["mpn"] or found["gtin"] or found["strong"] or found["weak"]
    return _LabeledCode(field, label.strip(), code, trust, distance)


def _parent(node: LexborNode) -> LexborNode:
    return node.parent or node


def _is_aside(node: LexborNode, view: DomView) -> bool:
    around = view.surroundings.of(_parent(node))
    return around.elsewhere or around.tile or around.linked


def _starts() -> list[str]:
    """The first letters of every label, which most texts do not begin with."""
    words = """
        sku store asin ugs ebay item product prod article art. artikel catalog cat. stock style
        order web reference listing ad post deal lot bestell produkt waren material réf ref code
        numéro numero número n° nº codice cod. código codigo cód vare tuote best objednací kód kod
        katalógové katalogové číslo nr numer cikkszám termékkód артикул код номер ürün stok
        κωδικός 商品 產品 产品 品番 貨號 货号 品號 상품 제품 딜번호 모델 품번 رقم رمز كود מק mã รหัส
        kode rif арт symbol indeks mpn model modèle modele mfr mfg manufacturer part hersteller
        型番 型號 型号 ean gtin upc isbn barcode
    """
    return sorted({word[:3] for word in words.split()})


def _any_case(text: str) -> str:
    """A pattern for a text in lower case, and for its letters that are not ASCII in upper case."""
    return "".join(c if c.isascii() else f"[{c}{c.upper()}]" for c in map(re.escape, text))


# by the first letter, so that the others are compared only after it
_ANY_START = "|".join(
    f"{_any_case(first)}(?:{'|'.join(_any_case(start[1:]) for start in starts)})"
    for first, starts in groupby(_starts(), key=itemgetter(0))
)
# where a label may begin: few texts have such a place
_MAY_BE_LABEL = re.compile(rf"[{TEXT_START}|;•·,\n]\s*[{re.escape(_EDGE)}]*\s*(?:{_ANY_START})")


# --- attributes and form fields -----------------------------------------------------------------

_ID_ATTRIBUTES = (
    ("data-sku", 0.62), ("data-product-sku", 0.62), ("data-product_sku", 0.62),
    ("data-product-id", 0.5),
    ("data-productid", 0.5), ("data-product_id", 0.5), ("data-pid", 0.45), ("data-item-id", 0.45),
)  # fmt: skip
_ID_INPUTS = {
    "sku": 0.62, "product_sku": 0.6, "product_id": 0.55, "productid": 0.55, "product-id": 0.55,
    "product": 0.5, "item_id": 0.5, "itemid": 0.5, "asin": 0.7, "pid": 0.5, "products_id": 0.55,
    "id_product": 0.55, "add-to-cart": 0.55, "prod_id": 0.5, "item": 0.4, "prodid": 0.5,
    "productcode": 0.6, "product_code": 0.6, "code": 0.4, "productnumber": 0.6, "id": 0.35,
}  # fmt: skip
_SKU_NAMES = re.compile(r"(?<![a-z])sku")
_MAX_NAMED = 120


def attribute_facts(view: DomView) -> Iterator[Fact]:
    """Codes in attributes, in form fields, and in elements that are named after a SKU."""
    for element in view.elements.skus[:200]:
        around = view.surroundings.of(element.node)
        if not (around.elsewhere or around.tile):
            yield from _element_facts(element, view)
    for element, name, value in view.fields:
        if (trust := _ID_INPUTS.get(name)) is None or not _is_bare_code(value):
            continue
        if not view.surroundings.of(element.node).elsewhere:
            yield Fact(
                FieldName.SKU, value.strip(), trust - _far(element, view), f"dom:input {name}"
            )


def _element_facts(element: Element, view: DomView) -> Iterator[Fact]:
    attributes = element.attributes
    for name, trust in _ID_ATTRIBUTES:
        value = attributes.get(name)
        if value and _is_bare_code(value):
            yield Fact(FieldName.SKU, value.strip(), trust - _far(element, view), f"dom:{name}")
    if element.node.tag in ("script", "style", "input", "select", "form", "option"):
        return
    text = element.node.text(separator=" ")
    if len(text) > 600 or len(text := " ".join(text.split())) > _MAX_NAMED:
        return
    labels = [code for found, rest in _labels_in(text) if (code := _code_beside(found, rest, ""))
              and (found["strong"] or found["weak"])]  # fmt: skip
    code = labels[0] if labels else sku_of(text) if _SKU_NAMES.search(element.names) else None
    if code and _is_bare_code(code):
        trust = (0.86 if labels else 0.66) - _far(element, view)
        place = "label" if labels else "dom"
        yield Fact(FieldName.SKU, code, trust, f"{place}:{element.names[:40].strip()}")


def _is_bare_code(value: str) -> bool:
    text = value.strip()
    return 3 <= len(text) <= 60 and any(map(str.isdigit, text)) and " " not in text


def _far(element: Element, view: DomView) -> float:
    return 0.15 if view.distance(element) > 1500 else 0.0
