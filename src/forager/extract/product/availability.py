# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Availability: the terms of schema.org, and phrases of shops."""

from __future__ import annotations

import re
from functools import lru_cache

from forager.extract.product.product import Availability

_TERMS = {
    "instock": Availability.IN_STOCK, "onlineonly": Availability.IN_STOCK,
    "limitedavailability": Availability.LIMITED, "preorder": Availability.PREORDER,
    "presale": Availability.PREORDER, "backorder": Availability.BACKORDER,
    "madetoorder": Availability.BACKORDER, "instoreonly": Availability.IN_STORE_ONLY,
    "outofstock": Availability.OUT_OF_STOCK, "soldout": Availability.OUT_OF_STOCK,
    "reserved": Availability.OUT_OF_STOCK, "discontinued": Availability.DISCONTINUED,
    # not terms of schema.org, but found in their place
    "oos": Availability.OUT_OF_STOCK, "outstock": Availability.OUT_OF_STOCK,
    "unavailable": Availability.OUT_OF_STOCK, "notavailable": Availability.OUT_OF_STOCK,
    "notinstock": Availability.OUT_OF_STOCK, "available": Availability.IN_STOCK,
    "availablefororder": Availability.IN_STOCK, "availableforpreorder": Availability.PREORDER,
    "availableforbackorder": Availability.BACKORDER, "backordered": Availability.BACKORDER,
    "instockonline": Availability.IN_STOCK, "pending": Availability.OUT_OF_STOCK,
    "lowstock": Availability.LIMITED, "limitedstock": Availability.LIMITED,
    "instoreandonline": Availability.IN_STOCK, "purchasable": Availability.IN_STOCK,
}  # fmt: skip
_NOT_LETTERS = re.compile(r"[^a-z]")


def term_of(value: object) -> Availability | None:
    """The meaning of a machine-readable term, with or without `https://schema.org/`."""
    if isinstance(value, bool):
        return Availability.IN_STOCK if value else Availability.OUT_OF_STOCK
    if not isinstance(value, str):
        return None
    name = re.split(r"[/#:]", value[:200].strip().rstrip("/"))[-1][:80]
    return _TERMS.get(_NOT_LETTERS.sub("", name.lower())) or availability_in(name)


# Negations first: "not available" holds "available". One pattern per meaning, all languages.
_WORDS: tuple[tuple[Availability, str], ...] = (
    (
        Availability.DISCONTINUED,
        r"\bdiscontinued\b|no longer (?:available|sold|made|in production|offered)"
        r"|nicht mehr (?:lieferbar|erhältlich|verfügbar|im sortiment)|plus (?:commercialisé"
        r"|disponible)"
        r"|n'est plus (?:disponible|vendu|en vente)|non (?:è )?più disponibile"
        r"|ya no está disponible"
        r"|descatalogado|fuori produzione|снят с (?:производства|продажи)|niet meer leverbaar"
        r"|生産終了|販売終了|판매\s?종료|predaj ukončený|prodej (?:skončil|ukončen)"
        r"|výpredaj ukončený"
        r"|this (?:listing|auction|sale) (?:has )?ended|販賣結束|已下架|下架商品",
    ),
    (
        Availability.OUT_OF_STOCK,
        r"cannot be (?:purchased|ordered|bought)|nie je možné (?:\w+ )?(?:kúpiť|objednať)"
        r"|nelze (?:\w+ )?(?:zakoupit|koupit|objednat)|nicht bestellbar|out[ -]of[ -]stock"
        r"|sold[ -]?out|\bunavailable\b|not (?:currently )?(?:available|in stock)"
        r"|(?:temporarily|currently|momentarily) (?:unavailable|out)|\boos\b|\bno stock\b"
        r"|(?<![\d.,])0 (?:in stock|left\b|remaining\b|available\b)"
        r"|check back (?:soon|later)|notify me when|email me when|^sold[.!]?$|\bcoming soon\b"
        r"|(?:expected|due|will be)(?: to be)? (?:back )?in stock|not yet available"
        r"|demnächst (?:verfügbar|erhältlich|lieferbar)|bientôt disponible|próximamente"
        r"|prossimamente|binnenkort (?:leverbaar|verkrijgbaar|beschikbaar)|скоро в продаже"
        r"|(?:has been|already|is|was|item) sold[.!]?$|back in stock (?:soon|alert|notif)"
        r"|ausverkauft|nicht (?:auf lager|verfügbar|lieferbar|vorrätig|erhältlich)|vergriffen"
        r"|derzeit nicht|momentan nicht|rupture(?: de stock)?|épuisé|indisponible|pas (?:en stock|"
        r"disponible)|non disponibile|esaurito|terminato|agotado|sin (?:stock|existencias)"
        r"|\bno (?:hay )?(?:disponible|existencias|stock)|fora de estoque|esgotado|indisponível"
        r"|uitverkocht|niet (?:op voorraad|leverbaar|beschikbaar)|slut(?:såld| i lager)|ej i lager"
        r"|utsolgt|ikke på lager|udsolgt|loppu(?:nut|unmyyty)?\b|ei varastossa|wyprzedan|niedostępn"
        r"|brak w magazynie"
        r"|vyprod[aá]n|není skladem|nedostupn|nie je (?:na sklade|skladom)|vypredan"
        r"|nincs (?:készleten|"
        r"raktáron)|elfogyott|stoc epuizat|indisponibil|изчерпан|няма наличност|нет в наличии"
        r"|распродан|закончил|немає в наявності|відсутній|tükendi|stokta yok|mevcut değil|εξαντλη"
        r"|μη διαθέσιμ|在庫(?:切れ|なし|がありません)|売り切れ|完売|品切れ|缺货|售完|已售完|售罄"
        r"|補貨中|完售|已售完|無庫存|품절|매진|일시품절|재고\s?없음|نفد|نفذت|غير متوفر|غير متاح"
        r"|אזל|לא במלאי"
        r"|hết hàng|stok habis|habis terjual|สินค้าหมด",
    ),
    (
        Availability.PREORDER,
        r"pre[ -]?order|pre[ -]?sale|vorbestell|précommand|preordin|prevent[ai]\b|reservar ahora"
        r"|pré-?venda|förbeställ|forudbestil|forhåndsbestill|предзаказ|передзамовлення|předobjedn"
        r"|predobjedn|przedsprzedaż|予約(?:受付|注文|商品)|預購|预购|예약\s?(?:판매|구매)"
        r"|ön sipariş",
    ),
    (
        Availability.BACKORDER,
        r"back[ -]?order|nachbestell|made to order|auf bestellung|sur commande|su ordinazione"
        r"|bajo pedido|sob encomenda|op bestelling|на заказ|на замовлення|na objednávku"
        r"|na zamówienie",
    ),
    (
        Availability.IN_STORE_ONLY,
        r"(?:in[ -]store|store pick ?up) only|only (?:available )?in stores?|nur (?:in der"
        r"|im) (?:filiale"
        r"|markt)|uniquement en magasin|solo en tienda|solo in negozio",
    ),
    (
        Availability.LIMITED,
        r"only \d{1,3} (?:(?:items?|pieces?|units?|pairs?) )?(?:left|remaining|in stock|available)"
        r"|(?<![\d.,])[1-9] (?:(?:items?|pieces?|units?|pairs?) )?(?:left|remaining)\b"
        r"|(?:low|limited) stock|last (?:one|few"
        r"|items?)"
        r"|few (?:left|remaining)|nur noch \d{1,3}|wenige verfügbar|plus que \d{1,3}"
        r"|il ne reste (?:plus )?"
        r"que \d{1,3}|solo \d{1,3} (?:rimast|disponibil)|últim[oa]s? unidad"
        r"|quedan? (?:solo )?\d{1,3}"
        r"|últimas? unidades|残り\s?\d{1,3}|poslední (?:kus|\d)|posledn[ýé] kus|ostatnie sztuki",
    ),
    (
        Availability.IN_STOCK,
        r"\bin[ -]?stock\b|\bavailable\b|ready to ship|ships (?:in|within|today|from)"
        r"|\d+ left in stock"
        r"|auf lager|vorrätig|lieferbar|verfügbar|en stock|disponible|disponibil[ei]|disponível"
        r"|em estoque|op voorraad|leverbaar|i lager|på lager|varastossa|dostępn|w magazynie|skladem"
        r"|na sklade|skladom|dostupn|készleten|raktáron|în stoc|in stoc|в наличност|в наличии"
        r"|в наявності"
        r"|stokta|mevcut|διαθέσιμο|在庫あり|在庫有|有货|現貨|有庫存|재고\s?있음|متوفر|متاح|במלאי"
        r"|còn hàng|tersedia|มีสินค้า",
    ),
)  # fmt: skip
_PATTERNS = tuple((meaning, re.compile(words)) for meaning, words in _WORDS)
_MAX_WORDS = 300


def availability_in(text: str) -> Availability | None:
    """The availability in a short text of a shop, in the languages known here."""
    return _availability_in(text[:_MAX_WORDS].lower())


@lru_cache(maxsize=16_384)
def _availability_in(short: str) -> Availability | None:
    """Buttons and labels say the same on all pages of a shop."""
    # the patterns are in lower case: ignoring case would cost them ten times as much
    return next((meaning for meaning, words in _PATTERNS if words.search(short)), None)
