"""How often a task is crawled, as people write it: 30m, 6h, 1d, 1w."""

from __future__ import annotations

import re
from datetime import timedelta

from forager.errors import InvalidInput
from forager.fetch.domains.service import LONGEST_INTERVAL, SHORTEST_INTERVAL

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_INTERVAL = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|min|h|d|w)\s*", re.ASCII | re.IGNORECASE)


def parse_every(text: str) -> timedelta:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text[:40]!r} is not a length of time", hint="Write it as 30m, 6h, 1d or 1w."
        )
    return checked(timedelta(seconds=float(match[1]) * _SECONDS[match[2].lower()]))


def checked(every: timedelta) -> timedelta:
    if not SHORTEST_INTERVAL <= every <= LONGEST_INTERVAL:
        raise InvalidInput("an interval must be from 1s to 10 years")
    return every
