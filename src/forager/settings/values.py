"""Kinds of values that settings have."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

DAY = 86400.0
A_YEAR = 365 * DAY
LENGTHS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY, "w": 7 * DAY}

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


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_commas)]


def length_or_off(value: object) -> object:
    """A bare number is refused where it is text: it would be taken for days."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() == "off":
        return None
    length = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw])\s*", value.lower(), re.ASCII)
    if length is None:
        raise ValueError("expected a length of time, as 180d, or off")
    return float(length[1]) * LENGTHS[length[2]]
