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


def masked_url(url: str) -> str:
    """The URL without its credentials; the rest stays readable."""
    # up to the last @: people forget to escape the @ and / of a password
    shown = re.sub(r"^(\w+://[^:/@]*):.*@", r"\1:***@", url, flags=re.DOTALL)
    # a token may be given as the name
    shown = re.sub(r"^(https?://)[^:/@]+@", r"\1***@", shown)
    base, mark, _ = shown.partition("?")  # parameters may hold a password too
    return base + ("?***" if mark else "")


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
