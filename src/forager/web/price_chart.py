"""The price of a product over time: a line of steps, and its availability below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from markupsafe import Markup

from forager.products.price_history import PriceEntry
from forager.web.charts import WIDTH, column, figure, grid, legend, short, spans
from forager.web.formats import humanize, local_time, moment, money

HEIGHT = 150
STRIP = 10
# the line keeps away from the edges
MARGIN = 6

TONES = {
    "in_stock": "a",
    "limited": "c",
    "preorder": "b",
    "backorder": "b",
    "in_store_only": "e",
    "out_of_stock": "d",
    "discontinued": "d",
    "on_request": "e",
}
UNKNOWN = "f"


@dataclass(frozen=True, slots=True)
class PriceStep:
    """An offer, from one moment to the next; a price in another currency is not drawn."""

    entry: PriceEntry
    start: float
    end: float
    price: float | None

    @property
    def tone(self) -> str:
        return TONES.get(self.entry.availability or "", UNKNOWN)

    @property
    def width(self) -> str:
        return short(max(0.5, self.end - self.start))


@dataclass(frozen=True, slots=True)
class Scale:
    """Prices as heights in a chart."""

    low: float
    high: float

    def y(self, price: float) -> float:
        share = (price - self.low) / (self.high - self.low)
        return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)


def price_chart(newest_first: Sequence[PriceEntry], until: datetime) -> Markup:
    """`until` is when the product was last seen; later prices are unknown."""
    entries = list(reversed(newest_first))
    if not entries:
        return Markup("")
    until = max(until, entries[-1].recorded_at)
    currency = next((each.currency for each in newest_first if each.price is not None), None)
    steps = _steps(entries, until, currency)
    scale = _scale([step.price for step in steps if step.price is not None])
    return figure(
        "chart prices",
        _summary(entries, currency),
        grid(MARGIN, HEIGHT // 2, HEIGHT - MARGIN)
        + _lines(steps, scale)
        + _strip(steps)
        + _hover(steps),
        y=_axis(scale, currency),
        x=_times(entries[0].recorded_at, until),
        legend=_legend(steps),
        height=HEIGHT + STRIP,
    )


def _steps(entries: Sequence[PriceEntry], until: datetime, currency: str | None) -> list[PriceStep]:
    first = entries[0].recorded_at
    span = (until - first).total_seconds() or 1.0
    starts = [WIDTH * (each.recorded_at - first).total_seconds() / span for each in entries]
    return [
        PriceStep(each, start, end, _price(each, currency))
        for each, start, end in zip(entries, starts, [*starts[1:], float(WIDTH)], strict=True)
    ]


def _price(entry: PriceEntry, currency: str | None) -> float | None:
    if entry.price is None or entry.currency != currency:
        return None
    return float(entry.price)


def _scale(prices: Sequence[float]) -> Scale:
    """Two steps of a round size that hold all prices, so that each label is a round number."""
    low, high = min(prices, default=0.0), max(prices, default=0.0)
    least = (high - low) / 2 or high / 10 or 0.5
    power = 10.0 ** math.floor(math.log10(least))
    steps = (size * scale * power for scale in (1, 10) for size in (1, 2, 2.5, 5))
    for step in (each for each in steps if each >= least):
        # a single price is in the middle
        start = math.floor(max(0.0, low - (step / 2 if low == high else 0)) / step) * step
        if high <= start + 2 * step:
            return Scale(start, start + 2 * step)
    return Scale(low, high + 1)


def _lines(steps: Sequence[PriceStep], scale: Scale) -> Markup:
    """One line for each unbroken run of prices."""
    runs: list[list[str]] = [[]]
    for step in steps:
        if step.price is None:
            runs.append([])
            continue
        level = short(scale.y(step.price))
        runs[-1] += [f"{short(step.start)},{level}", f"{short(step.end)},{level}"]
    line = Markup('<polyline class="line-a" points="{}"/>')
    return Markup("").join(line.format(" ".join(run)) for run in runs if run)


def _strip(steps: Sequence[PriceStep]) -> Markup:
    part = Markup('<rect class="fill-{}" x="{}" y="{}" width="{}" height="{}"/>')
    return Markup("").join(
        part.format(step.tone, short(step.start), HEIGHT + 2, step.width, STRIP - 2)
        for step in steps
    )


def _hover(steps: Sequence[PriceStep]) -> Markup:
    return Markup("").join(
        column(
            step.start,
            step.width,
            HEIGHT + STRIP,
            _tooltip(step.entry),
            at=step.entry.recorded_at.isoformat(),
        )
        for step in steps
    )


def _tooltip(entry: PriceEntry) -> str:
    price = money(entry.price, entry.currency) if entry.price is not None else "no price"
    return f"From {moment(entry.recorded_at)}: {price}, {humanize(entry.availability or 'unknown')}"


def _axis(scale: Scale, currency: str | None) -> Markup:
    levels = (scale.high, (scale.high + scale.low) / 2, scale.low)
    return spans([money(Decimal(f"{level:.2f}"), currency) for level in levels])


def _legend(steps: Sequence[PriceStep]) -> Markup:
    seen = {
        humanize(each.entry.availability or "availability unknown"): each.tone for each in steps
    }
    return legend(list(seen.items()))


def _summary(entries: Sequence[PriceEntry], currency: str | None) -> str:
    prices = [e.price for e in entries if e.price is not None and e.currency == currency]
    if not prices:
        return "Price over time: no price recorded"
    return (
        f"Price over time: now {money(prices[-1], currency)}, at least"
        f" {money(min(prices), currency)}, at most {money(max(prices), currency)}"
    )


def _times(first: datetime, last: datetime) -> Markup:
    """The beginning, the middle and the end: days, or minutes where the days are few."""
    length = len("2026-11-16") if last - first > timedelta(days=2) else len("2026-11-16 08:30")
    times = (first + (last - first) * share for share in (0, 0.5, 1))
    return spans(local_time(at, length) for at in times)
