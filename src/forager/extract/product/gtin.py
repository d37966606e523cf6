# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Global trade item numbers, and the book numbers that became them."""

from __future__ import annotations

import re

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
