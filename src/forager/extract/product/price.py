# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Amounts of money as people and machines write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from forager.extract.product.currency import (
    MAX_SYMBOL,
    SYMBOL_PATTERN,
    THREE_DECIMALS,
    WHOLE_CURRENCIES,
    currency_of,
    is_sign,
    iso_code,
)

# the limit of the column of products
MAX_PRICE = Decimal(10) ** 10
# the limit of machine-readable amounts: wrong ones are kept, so that they can be reported
_MAX_STATED = Decimal(10) ** 30
_BLANK = " \u00a0\u202f\u2009"
_GROUPED = (
    rf"\d{{1,3}}(?P<sep>[.,'’{_BLANK}])\d{{3}}(?:(?P=sep)\d{{3}})*(?!\d)"
    r"(?:[.,]\d{1,2}(?!\d)|(?!(?P=sep))[.,]\d{3}(?![\d.,]))?"
)
_INDIAN = r"\d{1,2}(?:,\d{2})+,\d{3}(?!\d)(?:\.\d{1,2}(?!\d))?"
# a number in small type after the whole part is the cents: "12 99"; a longer number is no amount,
# and neither is its beginning
_PLAIN = (
    rf"\d{{1,10}}(?!\d)(?:[{_BLANK}]?[.,]\d{{1,4}}(?!\d)|[{_BLANK}]?[.][{_BLANK}]\d{{2}}(?!\d)"
    rf"|[{_BLANK}],[{_BLANK}]\d{{2}}(?!\d)|,[{_BLANK}]\d{{2}}(?=[{_BLANK}]?(?:[€£$]|zł|Kč))"
    rf"|[{_BLANK}]\d{{2}}(?![\d.,%]))?"
)
_NUMBER = rf"(?:{_GROUPED}|{_INDIAN}|{_PLAIN}|[.]\d{{2}}(?![\d.]))"
# the cents behind the sign: 35€99, and 35€ 99 where nothing follows
_SPLIT = rf"\d{{1,6}}[{_BLANK}]?(?P<sign>[€£$]|zł|Kč)(?:\d{{2}}(?![\w.,%])|[{_BLANK}]\d{{2}}\s*$)"
_CODE = r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])"
_SIGN = rf"(?:{SYMBOL_PATTERN}|{_CODE})"
_MONEY = re.compile(
    rf"(?P<before>{_SIGN})?[{_BLANK}:]{{0,3}}(?<![\d.,])(?:(?P<split>{_SPLIT})|(?P<amount>{_NUMBER}))"
    rf"(?P<dash>[.,:][-–—]{{1,2}})?[{_BLANK}]{{0,3}}(?P<after>{_SIGN}(?![a-zà-ÿ0-9]))?",
    re.IGNORECASE,
)
# as much as may stand between the start of a sign and its amount
_MAX_BEFORE = MAX_SYMBOL + 3
_DIGIT = re.compile(r"\d")
_SPACE = re.compile(r"[\s\u00a0\u202f\u2009]")
_MACHINE = re.compile(r"[+]?\d{1,30}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a text; `symbol` is the currency as written beside it."""

    amount: Decimal
    symbol: str | None
    currency: str | None
    start: int
    end: int


def money_in(text: str, hints: Iterable[str] = ()) -> Iterator[Money]:
    """Every amount in a text, with and without a currency."""
    hints = tuple(hints)
    for found in _amounts_in(text):
        symbol, currency = _currency_beside(found, hints)
        written = found["amount"] or found["split"].replace(found["sign"], " ")
        amount = amount_of(" ".join(written.split()) if found["sign"] else written, currency)
        if amount is not None:
            yield Money(amount, symbol, currency, *_span(found))


def _amounts_in(text: str) -> Iterator[re.Match[str]]:
    """The matches of `finditer`, searched only from shortly before the next digit."""
    end = 0
    while digit := _DIGIT.search(text, end):
        found = _MONEY.search(text, max(end, digit.start() - _MAX_BEFORE))
        if found is None:
            return
        yield found
        end = found.end()


def _currency_beside(found: re.Match[str], hints: tuple[str, ...]) -> tuple[str | None, str | None]:
    written = (found["before"], found["sign"], found["after"])
    signs = [each for each in written if each and is_sign(each, hints)]
    if not signs and found["dash"]:
        # 18 534:- is a price in the currency of the country
        return found["dash"], next(iter(hints), None)
    if not signs:
        return None, None
    # a code beside a symbol says which of its currencies is meant: $89.90 CAD
    code = next((code for each in signs if (code := iso_code(each))), None)
    return signs[0], code or currency_of(signs[0], hints)


# words of three letters beside an amount, which look like codes of currencies
_WORDS_BESIDE = frozenset(["per", "off", "was", "rrp"])


def _span(found: re.Match[str]) -> tuple[int, int]:
    """The amount with its signs, without a word beside it that says which amount it is."""
    before, after = (found["before"] or "").lower(), (found["after"] or "").lower()
    return (
        found.start("amount") if before in _WORDS_BESIDE else found.start(),
        found.start("after") if after in _WORDS_BESIDE else found.end(),
    )


def amount_of(written: str, currency: str | None = None) -> Decimal | None:
    """A number with the separators of any country; None if it is not one, or too large."""
    text = "".join(written.replace("’", "'").split())
    if len(text) != len(written):
        parts = _SPACE.split(written.strip())
        if len(parts) == 2 and len(parts[1]) == 2 and all(map(str.isdecimal, parts)):
            text = f"{parts[0]}.{parts[1]}"  # the cents were in small type
    return _bounded(_plain_number(text.replace("'", ""), currency))


def _plain_number(text: str, currency: str | None) -> str:
    last = max(text.rfind("."), text.rfind(","))
    if last < 0:
        return text
    whole, fraction = text[:last], text[last + 1 :]
    if _is_grouping(text, whole, fraction, currency):
        return re.sub(r"[.,]", "", text)
    return re.sub(r"[.,]", "", whole) + "." + fraction


def _is_grouping(text: str, whole: str, fraction: str, currency: str | None) -> bool:
    if len(fraction) != 3:
        return False
    mark = text[len(whole)]
    if mark in whole:
        return True
    other = "," if mark == "." else "."
    if other in whole or whole in ("", "0"):
        return False
    return currency not in THREE_DECIMALS or len(whole) > 3


def _bounded(number: str, limit: Decimal = MAX_PRICE) -> Decimal | None:
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value < limit else None


def machine_amount(value: Any, currency: str | None = None) -> Decimal | None:
    """The amount of a machine-readable value: a dot is the decimal point, unless it cannot be.

    It may be larger than the maximum of a price.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _bounded(str(value), _MAX_STATED)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _MACHINE.fullmatch(text):
        if currency in WHOLE_CURRENCIES and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", text):
            return _bounded(text.replace(".", ""))
        return _bounded(text, _MAX_STATED)
    first = next(money_in(text[:200]), None)
    return first.amount if first else None
