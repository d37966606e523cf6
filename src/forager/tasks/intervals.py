"""Recrawl intervals of tasks: 30m, 6h, 1d, 1w."""

from __future__ import annotations

from datetime import timedelta

from forager.amounts import parse_duration
from forager.errors import InvalidInput
from forager.fetch.domains.service import LONGEST_INTERVAL, SHORTEST_INTERVAL


def parse_every(text: str) -> timedelta:
    return checked(parse_duration(text))


def checked(every: timedelta) -> timedelta:
    if not SHORTEST_INTERVAL <= every <= LONGEST_INTERVAL:
        raise InvalidInput("an interval must be from 1s to 10 years")
    return every
