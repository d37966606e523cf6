"""A price over time as a few lines of text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from forager.products.export import amount_text
from forager.products.price_history import PriceEntry

WIDTH = 60
HEIGHT = 6
_BLOCKS = " ▁▂▃▄▅▆▇█"
_STEPS = len(_BLOCKS) - 1


def chart(entries: Sequence[PriceEntry], *, now: datetime | None = None) -> list[str]:
    """The prices in the newest currency, from the oldest entry until now; nothing for one price."""
    known = [entry for entry in entries if entry.price is not None]
    shown = [entry for entry in known if entry.currency == known[-1].currency] if known else []
    amounts = [entry.price for entry in shown if entry.price is not None]
    if len(set(amounts)) < 2:
        return []
    end = max(now or datetime.now(UTC), shown[-1].recorded_at)
    levels = [_level(price, min(amounts), max(amounts)) for price in _sampled(shown, end)]
    return [*_lines(levels, min(amounts), max(amounts)), _axis(shown[0].recorded_at, end)]


def _sampled(entries: Sequence[PriceEntry], end: datetime) -> Iterator[Decimal]:
    """The price at evenly spaced moments; at each, the last one that was known."""
    times = [entry.recorded_at for entry in entries]
    span = (end - times[0]) / (WIDTH - 1)
    for column in range(WIDTH):
        place = max(bisect_right(times, times[0] + span * column), 1)
        price = entries[place - 1].price
        assert price is not None
        yield price


def _level(price: Decimal, low: Decimal, high: Decimal) -> int:
    """How many eighths of a line high the column is; the lowest price is one."""
    return 1 + round((price - low) / (high - low) * (HEIGHT * _STEPS - 1))


def _lines(levels: Sequence[int], low: Decimal, high: Decimal) -> Iterator[str]:
    labels = {HEIGHT - 1: amount_text(high), 0: amount_text(low)}
    width = max(map(len, labels.values()))
    for line in reversed(range(HEIGHT)):
        blocks = (_BLOCKS[min(max(level - line * _STEPS, 0), _STEPS)] for level in levels)
        yield f"{labels.get(line, ''):>{width}} {''.join(blocks)}".rstrip()


def _axis(start: datetime, end: datetime) -> str:
    first, last = (f"{at.astimezone():%Y-%m-%d}" for at in (start, end))
    return f"{first} to {last}"
