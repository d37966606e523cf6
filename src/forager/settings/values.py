"""Types of values shared by settings, options and the API."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from forager.amounts import parse_duration
from forager.errors import InvalidInput

DAY = 86400.0
LARGEST_INT = 2**31 - 1
LARGEST_BIGINT = 2**63 - 1
A_YEAR = 365 * DAY

# Finite: a wait without end would outlive every lease, and PostgreSQL has no such interval.
Seconds = Annotated[float, Field(gt=0, le=A_YEAR, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, Field(ge=0, le=A_YEAR, allow_inf_nan=False)]


_SCHEME = r"^([a-z][a-z0-9+.-]*://"


def masked_url(url: str) -> str:
    """The URL without its credentials; the rest stays readable."""
    # up to the last @: people forget to escape the @ and / of a password
    shown = re.sub(rf"{_SCHEME}[^:/@]*):.*@", r"\1:***@", url, flags=re.DOTALL | re.IGNORECASE)
    # a token may be given as the name; that of a PostgreSQL user is no secret
    shown = re.sub(rf"(?!postgres){_SCHEME})[^:/@]+@", r"\1***@", shown, flags=re.IGNORECASE)
    # parameters may hold a password too
    base = re.split(r"[?#]", shown, maxsplit=1)
    return base[0] + ("?***" if len(base) > 1 else "")


def masked_secret(text: str, *, is_url: bool) -> str:
    """A secret as it may be shown: of a URL, what is not secret, and nothing of other texts."""
    has_scheme = re.match(rf"{_SCHEME})", text, flags=re.IGNORECASE)
    return masked_url(text) if is_url and has_scheme else "***"


def _split_commas(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]


def length_or_off(value: object) -> object:
    """A bare number is refused where it is text: it would be taken for days."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() == "off":
        return None
    try:
        return parse_duration(value).total_seconds()
    except InvalidInput:
        raise ValueError("expected a duration such as 180d, or off") from None


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueError("contains a lone surrogate")
    return text


# text that PostgreSQL can store; use it for every text that comes from outside
PlainText = Annotated[str, AfterValidator(_plain)]

_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_header_value(text: str) -> bool:
    """Whether a text can be sent as the value of a header: it has no line breaks, for example."""
    return _NOT_IN_A_HEADER.search(text) is None


def _header_value(text: str) -> str:
    if not is_header_value(text):
        raise ValueError("contains a line break or another control character")
    return text


HeaderValue = Annotated[PlainText, AfterValidator(_header_value)]
