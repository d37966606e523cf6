"""Backoff: how long to wait after failures in a row. Nothing else computes such a wait."""

from __future__ import annotations

import random
from typing import LiteralString

# doublings after which a wait stays the same: 2 ^ 1000 is an error in PostgreSQL
MAX_DOUBLINGS = 30


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after a number of failures: doubling up to `longest`, with jitter."""
    return jittered(min(first * 2.0 ** min(max(failures - 1, 0), MAX_DOUBLINGS), longest))


def jittered(seconds: float) -> float:
    """Half to all of a wait, so that what failed or started together does not repeat together."""
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret


def backoff_sql(
    before: LiteralString, first: LiteralString, longest: LiteralString
) -> LiteralString:
    """The same wait as an SQL interval; `before` is the number of failures before this one."""
    return f"""
        least({longest}, {first} * 2 ^ least({before}, {MAX_DOUBLINGS}))
            * (0.5 + random() / 2) * interval '1 second'
    """
