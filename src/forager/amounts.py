"""Durations, times, sizes and amounts of money as text: 30d, 10GB, 512MiB, 49.90."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from forager.errors import InvalidInput

_AMOUNT = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]*)\s*", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_A_CENTURY = 100 * 366 * 86400.0
# of visits
SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(days=3660)


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as 30d."""
    seconds = _parse(text, _SECONDS, "a duration", "30s, 90min, 12h, 1d or 1w")
    if seconds > _A_CENTURY:
        raise InvalidInput(f"{text} is longer than a century")
    return timedelta(seconds=seconds)


def parse_every(text: str) -> timedelta:
    """Parse the interval between two visits."""
    return checked_interval(parse_duration(text))


def checked_interval(every: timedelta) -> timedelta:
    """An interval from a second to ten years; raises InvalidInput."""
    if not SHORTEST_INTERVAL <= every <= LONGEST_INTERVAL:
        raise InvalidInput("an interval must be from 1s to 10 years")
    return every


def parse_size(text: str) -> int:
    """Parse a number of bytes such as 10GB."""
    return int(_parse(text, _BYTES, "a size", "10GB, 500MB or 512MiB"))


def size_text(size: int) -> str:
    """Format bytes in the largest unit that leaves a number above one."""
    for unit, length in (
        ("PB", 10**15),
        ("TB", 10**12),
        ("GB", 10**9),
        ("MB", 10**6),
        ("kB", 10**3),
    ):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} B"


def duration_text(seconds: float) -> str:
    """A length of time in its largest unit and the one below it: 4020 as 1 h 7 min."""
    remaining, parts = round(seconds), []
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, remaining = divmod(remaining, length)
        if amount:
            parts.append(f"{amount} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def time_text(at: datetime) -> str:
    """A time in UTC as JSON has it: 2026-01-31T12:00:00Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def amount_text(value: Decimal) -> str:
    """An amount without the zeros that only its column adds: 49.90 of 49.9000, 5 of 5.0000."""
    text = f"{value:f}"
    if "." not in text:
        return text
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals.ljust(2, '0')}" if decimals else whole


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 page`, `2 pages`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Sequence[object], most: int = 20) -> str:
    """The first items, and the number of others."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def price_text(amount: Decimal, currency: str | None) -> str:
    """1299.5 EUR as EUR 1,299.50; more than two decimals only if they are not zero."""
    digits = f"{amount:,.4f}"
    shown = digits[:-2] if digits.endswith("00") else digits.rstrip("0")
    return f"{currency} {shown}" if currency else shown


def _parse(text: str, units: Mapping[str, int], what: str, examples: str) -> float:
    match = _AMOUNT.fullmatch(text)
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise InvalidInput(f"{text[:40]!r} is not {what}", hint=f"Write it as {examples}.")
    return float(match[1]) * factor


def rounded_time(seconds: float) -> str:
    """A length of time for people, in one unit: `40 min`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h"
