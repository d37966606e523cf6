"""Words of shops around prices: names of elements, and text before or after an amount."""

from __future__ import annotations

import re

CURRENT_NAME = re.compile(
    r"(?:current|sale|selling|special|final|now|actual|our|buy|main|offer|deal|promo|discounted"
    r"|display"
    r"|product|detail|pdp|item|big|new|aktuell|actuel|attuale|prc)-?_?\w{0,12}-?_?pri[cx]e"
    r"|pri[cx]e-?_?\w{0,8}"
    r"-?_?(?:current|sale|now|final|special|new|main|value|big|discount|our)|buyingprice"
    r"|pricetopay|itemprice"
)
FORMER_NAME = re.compile(
    r"\bold|old-?_?pri|was-?_?pri|pri[cx]e-?_?was|\bwas\b|regular|\blist-?_?pri|pri[cx]e-?_?list"
    r"|rrp|msrp"
    r"|strike|crossed|line-?through|before|original|\buvp\b|retail|compare|previous|former"
    r"|standard-?_?pri"
    r"|barr[eé]|ancien|tachado|normal-?_?pri|pri[cx]e-?_?(?:old|normal|regular|original|before"
    r"|base)|full-?pri"
)
NOT_PRICE = re.compile(
    r"sav(?:e|ing)|discount-?_?(?:per|amount|val|rate|badge)|shipping|deliver|postage|per-?_?unit"
    r"|unit-?_?pri"
    r"|pri[cx]e-?_?(?:per|unit|range|filter|slider|label|info|alert|match|guarantee|history)"
    r"|base-?_?price-?_?unit"
    r"|instal|monthly|month|financ|credit|loyal|point|reward|coupon|voucher|\btax|\bvat\b|subtotal"
    r"|cart-?_?total"
    r"|basket|deposit|trade-?in|gift|afterpay|klarna|minimum|filter|quantity|amount-?_?(?:input"
    r"|select)|lowest"
    r"|estimat|wasprice-?label|swatch|used-?price|rent|\bmember|subscri(?:be|ption)|omnibus"
)
FORMER_WORDS = re.compile(
    r"(?:\bwas|\brrp|\bmsrp|list price|regular|original|instead of|\bold|\bbefore|statt|uvp"
    r"|ehemals|vorher"
    r"|au lieu de|prix (?:conseillé|barré)|anzi ?ché|invece di|listino|antes|precio (?:normal"
    r"|lista|regular)"
    r"|\bde\b|původn|pôvodn|bežn|zamiast|цена без|старая|定價|原價|市價|原价|参考価格|정가|\bpvp\b"
    r"|normal"
    r"|adviesprijs"
    r"|ord\.?|v[eé]ase)\W{0,6}\w{0,12}\W{0,4}$",
    re.IGNORECASE,
)
OTHER_WORDS = re.compile(
    r"(?:save|you save|sparen|ersparnis|économi\w*|risparmi\w*|ahorr\w*|ušetr\w*|shipping|postage"
    r"|delivery"
    r"|versand\w*|livraison|spedizione|envío|doprava|from only|per month|deposit|over|above"
    r"|orders?|up to|bis zu"
    r"|minimum|min\.?|tax|vat|iva|tva|mwst|punkte|points|cuotas?|rate[ns]?|x"
    r"|approx(?:imately|\.)?)\W{0,8}(?:von|de|di|of|a|from|ab|at|for|costs?|kostet|:)?\W{0,3}$"
    r"|\bfree(?: \w{1,12})? (?:from|over|above|ab)\W{0,3}$",
    re.IGNORECASE,
)
# the same in a separate element
OTHER_LABEL = re.compile(
    r"\W*(?:you save|sie sparen|approx(?:imately|\.)?"
    # what is bought with the product
    r"|(?:\w+\W+){0,3}(?:shipping|delivery|postage|versand(?:kosten)?|lieferung|livraison|spedizione"
    r"|envío|doprava|verzending|frakt|warranty|garantie(?:verlängerung)?|protection(?: plan)?"
    r"|insurance|gift[ -]?wrap(?:ping)?|installation|assembly)(?: (?:costs?|fees?|charges?))?)\W*",
    re.IGNORECASE,
)
# after the amount: a price for a month, a share, a kilo or a number of instalments
PER = re.compile(
    r"^\W{0,3}(?:/|per\b|pro\b|par\b|al\b|each month|a month|p/m|pm\b|monthly|mtl|x \d|\bkg\b"
    r"|/?100 ?(?:g|ml)"
    r"|off\b|discount|%|rabat|back\b|cuotas|mesi|mois|monat|shipping|postage|delivery"
    r"|de (?:livraison|frais)"
    r"|spedizione|versand|points?|pkt|reviews?|ratings?|stars?|kus(?:ov)?\b|left|x\b)",
    re.IGNORECASE,
)
# before or after an amount that only some buyers pay, or without the tax
CONDITION = re.compile(
    r"(?:\b(?:members?|mitglieder|subscribe(?:rs)?|subscription)\W{0,4}(?:\w{1,5}\W{0,3}){0,2}$)"
    r"|^\W{0,3}ex(?:cl(?:uding|\.)?)?\W{1,2}(?:of )?(?:vat|tax(?:es)?|gst|mwst|btw|iva|tva|moms)\b",
    re.IGNORECASE,
)
# the price that shops in the EU must name beside a reduced one: the lowest of 30 days
LOWEST = re.compile(
    r"(?:lowest|niedrigster|günstigster|plus bas|najniższa|nejnižší|najnižšia|più basso|más bajo"
    r"|mais baixo|laagste|lägsta|laveste|alin hinta|legalacsonyabb|cel mai mic)\b.{1,30}\b30\b",
    re.IGNORECASE,
)
