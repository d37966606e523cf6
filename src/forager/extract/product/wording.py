# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Cleaned texts of a product: without markup, names on one line, limited in length."""

from __future__ import annotations

import html
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from forager.extract.product.price import machine_amount
from forager.extract.text import collapse, storable

MAX_NAME = 512
MAX_BRAND = 255
MAX_SKU = 100
MAX_DESCRIPTION = 65_536
MAX_CATEGORY = 255
MAX_CATEGORIES = 16
# characters of a text that is compared as a name
_MAX_COMPARED = 4_000

# placeholders of templates that were not filled in
_TEMPLATE = re.compile(r"\{\{|\}\}|<%|\$\{|^\$[A-Za-z]|\[\[|%%")
_TAG = re.compile(r"<[^<>]{0,2000}>")
_NOTHING = frozenset(
    ["", "-", "--", "n/a", "na", "none", "null", "undefined", "nan", "false", "true", "unknown",
     "not applicable", "0", "no brand", "nobrand", "brand", "[object object]", "default", "other",
     "others", "n.a.", "n.v.t.", "not specified", "sans marque", "sin marca", "ohne marke",
     "senza marca", "sem marca", "no name", "noname", "shopify", "magento", "woocommerce",
     "prestashop", "my store"]
)  # fmt: skip


def line_of(value: Any, limit: int) -> str | None:
    """One line of text, or None if the value is not text or empty."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)[: limit * 8]
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    text = collapse(storable(text))[:limit].strip()
    return text if text and not _TEMPLATE.search(text) else None


def name_of(value: Any) -> str | None:
    text = line_of(value, MAX_NAME)
    return text if text and text.lower() not in _NOTHING else None


# labels before a brand, in lower case
BRAND_LABELS = frozenset(
    ["brand", "marke", "marque", "marca", "značka", "merk", "märke", "varumärke", "manufacturer",
     "hersteller", "výrobce", "výrobca", "márka", "gyártó", "marka", "fabricant", "produttore",
     "fabricante", "producent", "fabrikant", "tillverkare", "merkki", "mærke", "merke",
     "producător", "бренд", "производитель", "виробник", "торговая марка", "ブランド", "メーカー",
     "品牌", "브랜드", "제조사", "מותג", "العلامة التجارية", "merek", "ยี่ห้อ", "thương hiệu", "maker",
     "made by", "manufactured by", "make", "vendor", "designer", "markenname",
     "marke/hersteller", "marchio",
     "nome della marca", "nome do fabricante", "nome da marca", "nombre de la marca",
     "marque du produit", "nom de la marque", "fabrikant/merk", "merknaam", "valmistaja", "brändi",
     "produsent", "varemerke", "κατασκευαστής", "μάρκα", "εταιρεία", "proizvođač", "proizvajalec",
     "blagovna znamka", "robna marka", "prekės ženklas", "gamintojas", "kaubamärk", "tootja",
     "zīmols", "ražotājs", "marcă", "márkanév", "марка", "торгова марка", "изготовитель",
     "ブランド名", "メーカー名", "製造元", "品牌名稱", "品牌名称", "廠牌", "브랜드명", "제조사명",
     "nhà sản xuất", "üretici", "brand/manufacturer", "יצרן", "الشركة المصنعة", "الماركة"]
)  # fmt: skip
BRAND_LABEL = rf"(?:(?:product|item) )?(?:{'|'.join(sorted(BRAND_LABELS, reverse=True))})(?: name)?"
_BRAND_PREFIX = re.compile(rf"^(?:{BRAND_LABEL}|by|von)\s*[:：]\s*", re.IGNORECASE)
# links to the shop of a brand inside a larger shop; `of` names a maker, and no kind of product
_MAKER_CALLS = (
    r"visit the(?= .* (?:store|shop|page)$)|besuchen sie den|visiter la boutique"
    r"|visita (?:lo store di|la tienda de)|bezoek de|zobacz sklep"
    r"|(?:shop|view|see|show|browse|discover|explore|find)(?: all| more)"
    r"(?: (?:products?|items?))? (?:of|from|by)"
    r"|(?:all|more)(?: (?:products?|items?))? (?:of|from|by)"
    r"|(?:alle |weitere |mehr )(?:artikel |produkte )?(?:von|der marke)"
    r"|(?:voir )?(?:tous les|plus de) (?:produits|articles)(?: d[eu])?"
    r"|(?:ver|vedi|mostra) (?:m[áa]s|todos?|tutti|altri) (?:los )?(?:productos|prodotti|produtos)"
    r"(?: d[eio]\w*)?"
    r"|(?:todos os|tutti i|todos los) (?:produtos|prodotti|productos)(?: d[aeio]\w*)?"
    r"|(?:bekijk )?alle (?:producten|artikelen) van"
    r"|(?:zobacz )?wszystkie produkty(?: (?:od|marki))?"
    r"|(?:všechny|všetky) produkty(?: značky)?"
)
_CALLS = (
    r"visit the|shop|(?:shop|view|see|show|browse|discover|explore|find)(?: all| more)"
    r"(?: (?:products?|items?))?|(?:voir )?(?:tous les|plus de)(?: d[eu])?"
    r"|(?:ver|vedi|mostra) (?:m[áa]s|todos?|tutti|altri)(?: d[eio]\w*)?"
    r"|(?:zobacz )?więcej(?: (?:od|marki))?"
)
_CALLED = (
    r"\s+(?P<brand>.{1,80}?)(?:[ -](?:store|shop|page|winkel|products?|items?|artikel|produkte))?"
)
_BRAND_SHOP = re.compile(rf"(?:{_MAKER_CALLS}|{_CALLS}){_CALLED}", re.IGNORECASE)
_MAKER_SHOP = re.compile(rf"(?:{_MAKER_CALLS}){_CALLED}", re.IGNORECASE)
# a kind of product is in lower case here, or the whole line has capitals: Shop All Shoes
_ALL_OF_BRAND = re.compile(rf"(?:Shop|View|See|Browse|Discover|Explore) all{_CALLED}")
# "more from this collection", "more from our blog"
_NO_MAKER = re.compile(
    r"(?:the\s+)?(?:this|these|that|our|us|your|my|same|other|similar|diese[mrs]?|uns|unser\w*|cette?|ces|notre"
    r"|nos|esta|este|nuestr\w+|questo|questa|deze|onze|brand|seller|shop|store|collection|categor\w+"
    r"|range|serie\w*|products?|items?|what|blog|journal|magazine|instagram|facebook|tiktok|youtube"
    r"|help|faq|size guide|size chart|contact|a (?:to|bis|à|a|tot) z)\b"
    r"|(?:sale|new in|new arrivals|type|women|men|kids|soldes)$",
    re.IGNORECASE,
)
# the first letters of such lines
CALL_STARTS = frozenset(
    ["vis", "bes", "bez", "zob", "sho", "vie", "see", "bro", "dis", "exp", "fin", "all", "mor",
     "wei", "meh", "voi", "tou", "abo", "plu", "ver", "ved", "mos", "tod", "tut", "bek", "wsz",
     "vše"]
)  # fmt: skip


def maker_called(text: str) -> str | None:
    """The maker of whom a line offers more: "More from Acme", "Visit the Acme store"."""
    return _proper_name(_MAKER_SHOP.fullmatch(text))


def all_called(text: str) -> str | None:
    """The name after "Shop all": a brand, or a kind of product that has capitals."""
    return _proper_name(_ALL_OF_BRAND.fullmatch(text))


def _proper_name(call: re.Match[str] | None) -> str | None:
    name = call["brand"] if call else ""
    return name if name[:1].isupper() and not _NO_MAKER.match(name) else None


def brand_of(value: Any) -> str | None:
    text = line_of(value, MAX_BRAND)
    if not text or text.lower() in _NOTHING or text.startswith(("http://", "https://", "/")):
        return None
    text = _BRAND_PREFIX.sub("", text)
    shop = _BRAND_SHOP.fullmatch(text)
    # a page title in place of a brand ends with the name of the site
    brand = (shop["brand"] if shop else text).partition(" | ")[0].strip()
    return brand if brand.lower() not in _NOTHING else None


_SKU_PREFIX = re.compile(
    r"^(?:sku|mpn|item|product|article|art|model|ref|réf|référence|reference|code|id|no|nr|number)"
    r"[\s.]*(?:code|id|no|nr|number|#)?[\s.]*[:#：]\s*",
    re.IGNORECASE,
)
_SKU = re.compile(r"[\w][\w \-./+#:|_&()*]{0,99}")


def sku_of(value: Any) -> str | None:
    """An identifier: short, with a letter or digit first, and no sentence."""
    # the name of the product may stand below its code
    first = value.strip().partition("\n")[0] if isinstance(value, str) else value
    text = line_of(first, MAX_SKU + 1)
    if not text or len(text) > MAX_SKU or text.lower() in _NOTHING:
        return None
    text = _SKU_PREFIX.sub("", text).rstrip(" .,;:")
    if not _SKU.fullmatch(text) or text.count(" ") > 5:
        return None
    return text if any(map(str.isalnum, text)) else None


_NOT_CODE = re.compile(r"[\W_]+")


def code_key(text: str) -> str:
    """The same key for all spellings of a code or name."""
    return _NOT_CODE.sub("", text.lower()) or text


def description_of(value: Any) -> str | None:
    """Text of several lines; markup in it becomes blanks."""
    if not isinstance(value, str):
        return None
    text = value[: MAX_DESCRIPTION * 2]
    if "&lt;" in text or "&amp;" in text:
        text = html.unescape(text)
    text = html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
    lines = (collapse(line) for line in storable(text).splitlines())
    return "\n".join(line for line in lines if line)[:MAX_DESCRIPTION] or None


_SEPARATORS = re.compile(r"\s*(?:>|›|»|→|\||&gt;|(?<=\S)\s+/\s+(?=\S))\s*")


def category_of(value: Any) -> tuple[str, ...]:
    """A path of categories, from a list or from a text with separators."""
    if isinstance(value, str):
        value = _SEPARATORS.split(html.unescape(value)[:4000])
    if not isinstance(value, list | tuple):
        return ()
    names = (line_of(each, MAX_CATEGORY) for each in value[: MAX_CATEGORIES * 2])
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_CATEGORIES]


_WORD = re.compile(r"\w+")


def words_in(text: str | None) -> frozenset[str]:
    return _words_in(text[:_MAX_COMPARED]) if text else frozenset()


# the titles of a page are compared with many names
@lru_cache(maxsize=64)
def _words_in(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def alike(one: str | None, other: str | None) -> float:
    """The share of the shorter text's words that the longer one has, from 0 to 1."""
    first, second = words_in(one), words_in(other)
    if not first or not second:
        return 0.0
    return len(first & second) / min(len(first), len(second))


_LENGTHS = (8, 12, 13, 14)
_NOT_DIGITS = re.compile(r"[\s\-.–]")
_ISBN10 = re.compile(r"\d{9}[\dXx]")


def gtin_of(value: object) -> str | None:
    """The number without blanks, if its check digit is right; an ISBN-10 as its ISBN-13."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = _NOT_DIGITS.sub("", str(value)[:64])
    if _ISBN10.fullmatch(text):
        return _isbn13(text)
    if len(text) not in _LENGTHS or not (text.isascii() and text.isdigit()):
        return None
    return text if _check_digit(text[:-1]) == text[-1] and text.strip("0") else None


def _check_digit(digits: str) -> str:
    total = sum(int(d) * (3 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits)))
    return str(-total % 10)


def _isbn13(text: str) -> str | None:
    values = [10 if c in "Xx" else int(c) for c in text]
    if sum(value * (10 - i) for i, value in enumerate(values)) % 11:
        return None
    digits = "978" + text[:9]
    return digits + _check_digit(digits)


_BEST = Decimal(5)
_CENT = Decimal("0.01")
_OUT_OF = re.compile(
    r"(\d{1,3}(?:[.,]\d{1,15})?)\s{0,3}(?:/|out of|von|sur|su|de|av|van|z|из|of)\s{0,3}"
    r"(\d{1,3})(?!\d)",
    re.IGNORECASE,
)


def rating_of(value: object, best: object = None, worst: object = None) -> Decimal | None:
    """`value` on a scale from `worst` to `best` (default: 5), converted to 0 to 5."""
    if isinstance(value, str) and (pair := _OUT_OF.search(value[:200])):
        value, best = pair[1], best if best is not None else pair[2]
    amount = _number(value)
    top = _number(best) or _BEST
    if amount is None or not 0 <= amount <= top or top > 1000:
        return None
    low = _number(worst) or Decimal(0)
    # a scale from 1 to 5 is read as it is written; only another top changes the number
    if top != _BEST and low <= 1 < top:
        amount = amount * _BEST / top
    return amount.quantize(_CENT) if 0 <= amount <= _BEST else None


def _number(value: object) -> Decimal | None:
    if isinstance(value, str):
        value = value.strip().replace(",", ".").rstrip("%")
    return machine_amount(value)


def count_of(value: object) -> int | None:
    """A number of reviews: '1,234 ratings' is 1234."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = int(value) if value == value and abs(value) < 1e9 else None
    if isinstance(value, str):
        found = re.search(r"\d[\d.,\s\u00a0]{0,12}", value[:100])
        digits = re.sub(r"\D", "", found[0]) if found else ""
        value = int(digits) if digits else None
    return value if isinstance(value, int) and 0 <= value < 10**9 else None
