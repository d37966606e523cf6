# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Currencies: ISO 4217 codes, symbols, and the currency that an ambiguous symbol means."""

from __future__ import annotations

import re
from collections.abc import Iterable

# the active codes that goods are sold in: no funds, metals or testing codes
ISO_CODES = frozenset(
    ["AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT",
     "BGN", "BHD", "BIF", "BMD", "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD",
     "CDF", "CHF", "CLP", "CNY", "COP", "CRC", "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD",
     "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GNF", "GTQ",
     "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD", "JOD",
     "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR",
     "LRD", "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR",
     "MWK", "MXN", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN",
     "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR",
     "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB",
     "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS",
     "VES", "VND", "VUV", "WST", "XAF", "XCD", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG"]
)  # fmt: skip
# prices in these have no decimals, so that 5.000 is five thousand
WHOLE_CURRENCIES = frozenset(
    ["CLP", "COP", "IDR", "ISK", "JPY", "KRW", "PYG", "VND", "HUF", "UGX", "XAF", "XOF", "IRR"]
)
THREE_DECIMALS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])

# old codes and habits that pages still use
_ALIASES = {"RUR": "RUB", "NTD": "TWD", "RMB": "CNY", "CNH": "CNY", "UKP": "GBP", "STG": "GBP"}

_SYMBOLS = {
    "€": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP", "us$": "USD", "us $": "USD",
    "u$s": "USD", "usd$": "USD", "c$": "CAD", "ca$": "CAD", "c $": "CAD", "cdn$": "CAD",
    "a$": "AUD", "au$": "AUD", "au $": "AUD", "nz$": "NZD", "hk$": "HKD", "nt$": "TWD",
    "nt $": "TWD", "s$": "SGD", "sg$": "SGD", "r$": "BRL", "mx$": "MXN", "mex$": "MXN",
    "clp$": "CLP", "cop$": "COP", "ar$": "ARS", "₹": "INR", "rs.": "INR", "₽": "RUB",
    "руб": "RUB", "руб.": "RUB", "р.": "RUB", "zł": "PLN", "zl": "PLN", "kč": "CZK", "ft": "HUF",
    "lei": "RON", "лв": "BGN", "лв.": "BGN", "₺": "TRY", "tl": "TRY", "₪": "ILS", "₩": "KRW",
    "원": "KRW", "円": "JPY", "元": "CNY", "฿": "THB", "บาท": "THB", "₫": "VND", "đ": "VND",
    "rp": "IDR", "rp.": "IDR", "rm": "MYR", "₱": "PHP", "₴": "UAH", "грн": "UAH", "₸": "KZT",
    "тг": "KZT", "ر.س": "SAR", "ر.س.": "SAR", "ريال": "SAR", "د.إ": "AED", "د.إ.": "AED",
    "درهم": "AED", "ج.م": "EGP", "د.ك": "KWD", "fr.": "CHF", "sfr.": "CHF", "₦": "NGN",
    "₡": "CRC", "s/": "PEN", "s/.": "PEN", "q": "GTQ", "din": "RSD", "ден": "MKD", "₾": "GEL",
    "৳": "BDT", "₭": "LAK", "៛": "KHR", "₮": "MNT", "￦": "KRW", "＄": "$", "￥": "¥", "kr.": "kr",
    ",-kr": "kr", "kd": "KWD", "bd": "BHD", "jd": "JOD", "dt": "TND", "د.ب": "BHD", "د.أ": "JOD",
    "ر.ع": "OMR", "د.ت": "TND",
}  # fmt: skip

# words of other languages as well: they mean money only in their own country
_LOCAL = frozenset(
    ["ft", "tl", "rm", "rp", "rp.", "lei", "din", "s/", "s/.", "zl", "fr", "fr.", "rs", "rs.", "kr",
     "kr.", "р.", "q", "r", "р", "kd", "bd", "jd", "dt"]
)  # fmt: skip
_WORDS = frozenset(
    ["ALL", "TOP", "CUP", "TRY", "MOP", "PEN", "GEL", "BAM", "COP", "MAD", "SOS", "LAK", "ANG"]
)
_DOLLARS = frozenset(
    ["USD", "CAD", "AUD", "NZD", "MXN", "CLP", "ARS", "COP", "SGD", "HKD", "TWD", "UYU", "DOP",
     "JMD", "TTD", "BBD", "BSD", "FJD", "BMD", "XCD"]
)  # fmt: skip
# symbols that several countries use, and what they mean in each of them
_SHARED = {
    "$": _DOLLARS,
    "¥": frozenset(["JPY", "CNY"]),
    "kr": frozenset(["SEK", "NOK", "DKK", "ISK"]),
    "元": frozenset(["CNY", "TWD", "HKD"]),
    "£": frozenset(["GBP", "EGP", "GIP", "FKP"]),
    "rs.": frozenset(["INR", "PKR", "LKR", "NPR", "MUR"]),
    "rs": frozenset(["INR", "PKR", "LKR", "NPR", "MUR"]),
    "lei": frozenset(["RON", "MDL"]),
    "ريال": frozenset(["SAR", "QAR", "OMR", "YER"]),
    "r": frozenset(["ZAR"]),
    "р": frozenset(["RUB"]),
    "fr": frozenset(["CHF", "XAF", "XOF"]),
}

_EURO = "ad at be cy de ee es fi fr gr hr ie it lt lu lv mc me mt nl pt si sk sm va xk bg"
_BY_COUNTRY = {
    **dict.fromkeys(_EURO.split(), "EUR"),
    "us": "USD", "gb": "GBP", "uk": "GBP", "ca": "CAD", "au": "AUD", "nz": "NZD", "mx": "MXN",
    "cl": "CLP", "ar": "ARS", "co": "COP", "sg": "SGD", "hk": "HKD", "tw": "TWD", "uy": "UYU",
    "do": "DOP", "jm": "JMD", "tt": "TTD", "jp": "JPY", "cn": "CNY", "se": "SEK", "no": "NOK",
    "dk": "DKK", "is": "ISK", "in": "INR", "pk": "PKR", "lk": "LKR", "np": "NPR", "ch": "CHF",
    "li": "CHF", "pl": "PLN", "cz": "CZK", "hu": "HUF", "ro": "RON", "md": "MDL", "tr": "TRY",
    "il": "ILS", "kr": "KRW", "th": "THB", "vn": "VND", "id": "IDR", "my": "MYR", "ph": "PHP",
    "ua": "UAH", "ru": "RUB", "kz": "KZT", "by": "BYN", "sa": "SAR", "ae": "AED", "qa": "QAR",
    "om": "OMR", "kw": "KWD", "bh": "BHD", "eg": "EGP", "jo": "JOD", "ma": "MAD", "tn": "TND",
    "za": "ZAR", "ng": "NGN", "ke": "KES", "gh": "GHS", "br": "BRL", "pe": "PEN", "ec": "USD",
    "bo": "BOB", "py": "PYG", "cr": "CRC", "gt": "GTQ", "pa": "USD", "sv": "USD", "rs": "RSD",
    "mk": "MKD", "ba": "BAM", "al": "ALL", "ge": "GEL", "am": "AMD", "az": "AZN", "uz": "UZS",
    "bd": "BDT", "kh": "KHR", "la": "LAK", "mn": "MNT", "mu": "MUR",
}  # fmt: skip
# languages that one country alone makes likely
_BY_LANGUAGE = {
    "ja": "jp", "ko": "kr", "cs": "cz", "sv": "se", "nb": "no", "nn": "no", "da": "dk", "pl": "pl",
    "hu": "hu", "he": "il", "th": "th", "vi": "vn", "id": "id", "uk": "ua", "ru": "ru", "tr": "tr",
    "is": "is",
}  # fmt: skip
# top level domains that are in use worldwide, and so indicate no country
_GENERIC_CCTLD = frozenset(["co", "me", "tv", "io", "cc", "la", "ws", "fm", "am", "ai", "is", "to"])

MAX_SYMBOL = max(map(len, {*_SYMBOLS, *_SHARED}))
SYMBOL_PATTERN = "|".join(
    re.escape(symbol)
    for symbol in sorted({*_SYMBOLS, *_SHARED} - {"q", "r", "р"}, key=len, reverse=True)
)


def iso_code(value: str) -> str | None:
    """The ISO 4217 code that a machine-readable place names, if it is one."""
    code = value.strip().upper()
    code = _ALIASES.get(code, code)
    return code if code in ISO_CODES else None


def currency_of(written: str, hints: Iterable[str] = ()) -> str | None:
    """The currency of a symbol or code. One that several countries share needs a hint."""
    text = written.strip()
    if code := iso_code(text):
        return code
    symbol = text.lower()
    symbol = _SYMBOLS.get(symbol, symbol) if _SYMBOLS.get(symbol) in _SHARED else symbol
    if shared := _SHARED.get(symbol):
        likely = next((hint for hint in hints if hint in shared), None)
        return likely or (next(iter(shared)) if len(shared) == 1 else _default(symbol))
    return _SYMBOLS.get(symbol)


def share_sign(one: str, other: str) -> bool:
    """Whether a sign is used for both currencies, such as $ for USD and CAD."""
    return any(one in codes and other in codes for codes in _SHARED.values())


def is_sign(written: str, hints: tuple[str, ...]) -> bool:
    """Whether letters beside a number are a currency there, and not some other word."""
    if written.lower() in _LOCAL:
        return currency_of(written, hints) in hints
    if len(written) == 3 and written.isascii() and written.isalpha():
        code = iso_code(written) if written.isupper() else None
        return code is not None and (code not in _WORDS or code in hints)
    return True


def _default(symbol: str) -> str | None:
    # the usual meaning of these; a dollar, a yen and a crown are ambiguous
    return {"£": "GBP", "lei": "RON", "fr": "CHF"}.get(symbol)


def country_hints(host: str, path: str, language: str | None) -> tuple[str, ...]:
    """The currencies of the countries that a URL and a language indicate, best first."""
    top = host.rsplit(".", 1)[-1]
    region = (language or "").rpartition("-")[2] if "-" in (language or "") else ""
    countries = [top if top not in _GENERIC_CCTLD else "", *_countries_in_path(path), region]
    countries.append(_BY_LANGUAGE.get((language or "").partition("-")[0], ""))
    found = (_BY_COUNTRY.get(country) for country in countries)
    return tuple(dict.fromkeys(code for code in found if code))


_PATH_COUNTRY = re.compile(r"/(?:([a-z]{2})[-_/])?([a-zA-Z]{2})(?=/)")


def _countries_in_path(path: str) -> list[str]:
    """/en-gb/, /gb/en/ and /uk/ at the start of a path."""
    found = _PATH_COUNTRY.match(path)
    return [part.lower() for part in found.groups() if part] if found else []
