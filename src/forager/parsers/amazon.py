"""Product pages of Amazon in all its countries, in the layouts of the last years."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any

from forager.extract.hosts import host_name, host_of
from forager.extract.product.availability import availability_in
from forager.extract.product.price import Money, money_in
from forager.extract.product.product import Availability, ProductImage, Variant
from forager.extract.product.wording import gtin_of
from forager.parsers.parser import ABSENT, SiteParser, visible_text

_MAX_VARIANTS = 200
_MAX_VALUE = 1_000_000

# places of the price, newest layout first; prices of other sellers come last
_OFFERS = (
    "#corePriceDisplay_desktop_feature_div .priceToPay",
    "#corePriceDisplay_mobile_feature_div .priceToPay",
    "#corePrice_desktop .priceToPay",
    "#corePrice_desktop .a-price:not(.a-text-price)",
    "#corePrice_feature_div .a-price:not(.a-text-price)",
    "#apex_desktop .a-price:not(.a-text-price)",
)
_PRICES = (
    "#priceblock_dealprice",
    "#priceblock_saleprice",
    "#priceblock_ourprice",
    "#price_inside_buybox",
    "#newBuyBoxPrice",
    "#kindle-price",
    "#buyNewSection .offer-price",
    "#mediaNoAccordion .header-price",
    "#price .offer-price",
    "[id^=dmusic_digital_buy_button_buyBox]",
    "#olp-upd-new .a-color-price",
    "#olp-upd-new-used .a-color-price",
    "#olp_feature_div .a-color-price",
)
_LIST_PRICES = (
    "#corePriceDisplay_desktop_feature_div .basisPrice .a-offscreen",
    "#corePrice_desktop .a-text-price[data-a-strike=true] .a-offscreen",
    "#corePrice_feature_div .a-text-price[data-a-strike=true] .a-offscreen",
    ".priceBlockStrikePriceString",
    "#listPrice",
    "#print-list-price",
    "#digital-list-price",
)
_BUYING = (
    "#add-to-cart-button",
    "#buy-now-button",
    "#one-click-button",
    "#add-to-cart-button-ubb",
    "#buybox-see-all-buying-choices",
    "[id^=dmusic_digital_buy_button_buyBox]",
)
_DETAILS = ", ".join(
    (
        "#productOverview_feature_div tr",
        "table.prodDetTable tr",
        "#productDetails_feature_div tr",
        "#prodDetails tr",
        "#detailBullets_feature_div li",
        "#detail-bullets li",
        "#detailBulletsWrapper_feature_div li",
        "ul.detail-bullet-list li",
        "#technicalSpecifications_feature_div tr",
    )
)
_GTIN_LABEL = re.compile(r"\b(?:upc|ean|gtin|isbn(?:-1[03])?|barcode|jan)\b", re.IGNORECASE)
_BRAND_LABEL = re.compile(
    r"^(?:brand(?: name)?|marke|marque|marca|merk|varumärke|marka|ブランド|品牌|العلامة التجارية)$",
    re.IGNORECASE,
)
_MAKER_LABEL = re.compile(
    r"^(?:manufacturer|hersteller|fabricant|produttore|fabricante|fabrikant|tillverkare|producent"
    r"|label|メーカー|制造商|üretici)$",
    re.IGNORECASE,
)
# "Visit the X Store", "Brand: X" and their translations
_BYLINES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^visit the (.+?)(?: store)?$",
        r"^besuche(?:n sie)? den (.+?)[- ]store$",
        r"^(?:visiter|visitez) la boutique (.+)$",
        r"^visita lo store di (.+)$",
        r"^visita la tienda de (.+)$",
        r"^visite a loja (?:d[aeo] )?(.+)$",
        r"^bezoek de (.+?)[- ](?:store|winkel)$",
        r"^besök (.+?)[- ]butiken$",
        r"^odwiedź sklep (.+)$",
        r"^(.+?) store['\u2019]u? ?ziyaret et(?:in)?$",
        r"^(.+?)\s*のストアを表示$",
        r"^(?:访问|造訪)\s*(.+?)\s*(?:店铺|品牌旗舰店)$",
        r"^تفضل بزيارة متجر (.+)$",
        r"^(?:brand|marke|marque|marca|merk|varumärke|marka|ブランド|品牌|العلامة التجارية)"
        r"\s*[:\uff1a]\s*(.+)$",
    )
)
_ASIN = re.compile(r"[A-Z0-9]{10}")
_ASIN_IN_URL = re.compile(r"/(?:dp|gp/product|gp/aw/d)/([A-Z0-9]{10})(?![A-Z0-9])")
_NUMBERS = re.compile(r"\d(?:[.,]\d{1,2})?(?!\d)")
_GALLERY = re.compile(rb"colorImages['\"]\s*:\s*\{\s*['\"]initial['\"]\s*:\s*(?=\[)")
_VARIANTS = re.compile(rb"dimensionValuesDisplayData['\"]\s*:\s*(?=\{)")
_MARKS = re.compile(r"[\s:\uff1a\u200e\u200f]+$|^[\s\u200e\u200f]+")


class AmazonParser(SiteParser):
    """Product pages of Amazon, in all countries."""

    name = "amazon"
    version = "1"
    patterns = (
        "amazon.*/dp/*",
        "amazon.*/*/dp/*",
        "amazon.*/gp/product/*",
        "amazon.*/*/gp/product/*",
        "amazon.*/gp/aw/d/*",
    )

    def product_name(self) -> Any:
        return self.text(
            "#productTitle", "#ebooksProductTitle", "#title", "#dmusicProductTitle_feature_div h1"
        )

    def price(self) -> Any:
        return self._own(self._offer.amount if self._offer else None)

    def currency(self) -> Any:
        return self._own(self._offer.currency if self._offer else None)

    def list_price(self) -> Any:
        asked = self.amount(*_LIST_PRICES)
        paid = self._offer.amount if self._offer else None
        return self._own(asked if asked and paid and asked > paid else None)

    def availability(self) -> Any:
        said = availability_in(
            self.text("#availability", "#outOfStock", "#exports_desktop_outOfStock") or ""
        )
        if next(self.nodes(*_BUYING), None) is None:
            return said
        if said is Availability.OUT_OF_STOCK:
            return Availability.BACKORDER  # not there, but it can be ordered
        return said or Availability.IN_STOCK

    def rating(self) -> Any:
        said = self.attribute("#acrPopover", "title") or self.text("#acrPopover .a-icon-alt") or ""
        return self._own(_out_of_five(said))

    def review_count(self) -> Any:
        return self._own(self.text("#acrCustomerReviewText"))

    def brand(self) -> Any:
        overview = self.text("tr.po-brand td:nth-child(2)")
        return (
            overview or self._byline() or self._detail(_BRAND_LABEL) or self._detail(_MAKER_LABEL)
        )

    def category(self) -> Any:
        return self._own(tuple(self.texts("#wayfinding-breadcrumbs_feature_div li a")))

    def sku(self) -> Any:
        """The ASIN of the page: the URL may be that of a family of products."""
        shown = self.attribute("#ASIN", "value") or self.attribute("input[name=ASIN]", "value")
        if shown and _ASIN.fullmatch(shown):
            return shown
        found = _ASIN_IN_URL.search(self.page.url)
        return found[1] if found else None

    def gtin(self) -> Any:
        values = (value for label, value in self._details if _GTIN_LABEL.search(label))
        numbers = (gtin_of(number) for value in values for number in value.split())
        return next((number for number in numbers if number), None)

    def images(self) -> Any:
        return tuple(self._gallery()) or tuple(self._main_image())

    def variants(self) -> Any:
        shown = self._script_value(_VARIANTS)
        if not isinstance(shown, dict) or len(shown) < 2:
            return None
        prices = self._swatch_prices
        return tuple(
            self._variant(asin, _joined(names), prices.get(asin))
            for asin, names in list(shown.items())[:_MAX_VARIANTS]
            if _ASIN.fullmatch(asin)
        )

    def description(self) -> Any:
        return (
            self.text("#productDescription")
            or "\n".join(self.texts("#feature-bullets li .a-list-item"))
            or None
        )

    # --- what they share -------------------------------------------------------------------------

    @property
    def currency_hints(self) -> tuple[str, ...]:
        home = host_name(host_of(self.page.url)).endswith("amazon.com")
        return ("USD", *self.page.currency_hints) if home else self.page.currency_hints

    @cached_property
    def _is_known_layout(self) -> bool:
        return next(self.nodes("#productTitle", "#ebooksProductTitle"), None) is not None

    def _own(self, value: Any) -> Any:
        """A value, or ABSENT in a known layout: values elsewhere belong to other products."""
        if value is None or value == ():
            return ABSENT if self._is_known_layout else None
        return value

    @cached_property
    def _offer(self) -> Money | None:
        return next(self._new_offers(), None) or self.money(*_PRICES)

    def _new_offers(self) -> Iterator[Money]:
        for node in self.nodes(*_OFFERS):
            hidden = node.css_first(".a-offscreen")
            texts = (visible_text(hidden) if hidden else "", _whole_and_fraction(node))
            for text in texts:
                yield from (money for money in money_in(text, self.currency_hints) if money.amount)

    @cached_property
    def _swatch_prices(self) -> dict[str, Money]:
        """Prices of other variants by ASIN."""
        found: dict[str, Money] = {}
        for swatch in self.nodes("li[data-defaultasin]"):
            label = swatch.css_first(".twisterSwatchPrice")
            text = visible_text(label) if label is not None else ""
            money = next(money_in(text, self.currency_hints), None)
            if money is not None and money.amount:
                found.setdefault(swatch.attributes["data-defaultasin"] or "", money)
        return found

    def _variant(self, asin: str, name: str | None, money: Money | None) -> Variant:
        return Variant(
            sku=asin,
            name=name,
            price=money.amount if money else None,
            currency=money.currency if money else None,
            url=self.page.absolute(f"/dp/{asin}"),
        )

    def _byline(self) -> str | None:
        text = self.text("#bylineInfo", "#brand") or ""
        matches = (pattern.match(text) for pattern in _BYLINES)
        return next((found[1].strip() for found in matches if found), None) or self.text("a#brand")

    def _detail(self, label: re.Pattern[str]) -> str | None:
        return next((value for name, value in self._details if label.search(name)), None)

    @cached_property
    def _details(self) -> list[tuple[str, str]]:
        """Labels and values of the tables and lists of details."""
        rows = []
        for node in self.nodes(_DETAILS):
            label = node.css_first("th, .a-text-bold, td")
            name = _MARKS.sub("", visible_text(label)) if label else ""
            whole = visible_text(node)
            if name and len(whole) < 2000:
                rows.append(
                    (name, _MARKS.sub("", whole.partition(name)[2].lstrip(" :\uff1a\u200e\u200f")))
                )
        return rows

    def _gallery(self) -> Iterator[ProductImage]:
        shown = self._script_value(_GALLERY)
        for image in shown if isinstance(shown, list) else ():
            url = image.get("hiRes") or image.get("large")
            if isinstance(url, str):
                yield ProductImage(url)

    def _main_image(self) -> Iterator[ProductImage]:
        for node in self.nodes("#landingImage", "#imgBlkFront", "#ebooksImgBlkFront"):
            given = node.attributes
            url = given.get("data-old-hires") or _largest(given.get("data-a-dynamic-image") or "{}")
            if url := url or given.get("src"):
                yield ProductImage(url, given.get("alt"))

    def _script_value(self, name: re.Pattern[bytes]) -> Any:
        """The JSON value of a name in one of the scripts."""
        source = self.page.source
        found = name.search(source)
        if found is None:
            return None
        following = source[found.end() : found.end() + _MAX_VALUE].decode("utf-8", "replace")
        return json.JSONDecoder().raw_decode(following)[0]


def _whole_and_fraction(node: Any) -> str:
    """A price in large and small type: the decimal mark between them differs by country."""
    parts = [node.css_first(f".a-price-{part}") for part in ("symbol", "whole", "fraction")]
    symbol, whole, fraction = (visible_text(part) if part else "" for part in parts)
    digits = re.sub(r"\D", "", whole)
    cents = re.sub(r"\D", "", fraction)
    return f"{symbol} {digits}.{cents}" if cents else f"{symbol} {digits}"


def _out_of_five(said: str) -> Decimal | None:
    """4.6 of '4.6 out of 5 stars' in any language; some begin with the five."""
    numbers = [Decimal(number.replace(",", ".")) for number in _NUMBERS.findall(said)[:2]]
    if len(numbers) != 2 or 5 not in numbers:
        return None
    numbers.remove(Decimal(5))
    return numbers[0] if numbers[0] <= 5 else None


def _largest(sizes: str) -> str | None:
    """The URL with the most pixels of {url: [width, height]}."""
    found = json.loads(sizes)
    return max(found, key=lambda url: found[url][0] * found[url][1]) if found else None


def _joined(names: Any) -> str | None:
    return ", ".join(map(str, names)) if isinstance(names, list) else None
