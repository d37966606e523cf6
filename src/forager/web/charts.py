"""Charts, drawn as SVG by the server: numbers in, markup out.

The drawing stretches with the page; text is outside of it, so that it keeps its size. Colors are
classes, because the content security policy forbids inline styles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from forager.web.formats import moment, number, percent, short_number

WIDTH = 600
HEIGHT = 120
SPARK_HEIGHT = 28
# smaller values are drawn as zero: their powers of ten are not distinct floats
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart. `tone` is the class that colors it; None breaks the line."""

    name: str
    values: Sequence[float | None]
    tone: str = "a"


@dataclass(frozen=True, slots=True)
class BarPart:
    """One part of a bar."""

    name: str
    value: int
    tone: str


def sparkline(values: Sequence[float | None], label: str) -> Markup:
    """A small line without axes."""
    top = max((value for value in values if value is not None), default=0) or 1
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" preserveAspectRatio="none" role="img"'
        ' aria-label="{label}">{line}</svg>'
    ).format(w=WIDTH, h=SPARK_HEIGHT, label=label, line=_line(values, top, SPARK_HEIGHT, "a"))


def trend_line(values: Sequence[float], label: str) -> Markup:
    """A small line whose axis begins at the lowest value."""
    low, high = min(values), max(values)
    spread = (high - low) or 1
    return sparkline([0.05 + (value - low) / spread for value in values], label)


def line_chart(
    series: Sequence[Series],
    ticks: Sequence[str],
    label: str,
    *,
    names: Sequence[str] = (),
    times: Sequence[datetime] = (),
    unit: str = "",
) -> Markup:
    """Lines over time with an axis at the left and below.

    `ticks` are labels under the chart. The tooltip of a point has its name, or its time, which the
    script shows as local time with the offset.
    """
    top = nice_top(value for each in series for value in each.values if value is not None)
    lines = Markup("").join(
        _area(each.values, top, each.tone) + _line(each.values, top, HEIGHT, each.tone)
        for each in series
    )
    return figure(
        "chart",
        f"{label}: {_summary(series)}",
        grid(1, HEIGHT // 2, HEIGHT - 1)
        + lines
        + _hover(series, names or [moment(at) for at in times], times, unit),
        y=spans(short_number(top * share) for share in (1, 0.5, 0)),
        x=spans(ticks),
        legend=legend([(each.name, each.tone) for each in series]) if len(series) > 1 else "",
    )


def figure(
    kind: str,
    label: str,
    drawing: Markup,
    *,
    y: Markup,
    x: Markup,
    legend: str,
    height: int = HEIGHT,
) -> Markup:
    """A drawing with labels at its left and below, and a legend."""
    return Markup(
        '<figure class="{kind}"><div class="chart-y" aria-hidden="true">{y}</div>'
        '<svg viewBox="0 0 {w} {h}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '{drawing}</svg><div class="chart-x" aria-hidden="true">{x}</div>{legend}</figure>'
    ).format(kind=kind, label=label, drawing=drawing, y=y, x=x, legend=legend, w=WIDTH, h=height)


def stacked_bar(parts: Sequence[BarPart], label: str) -> Markup:
    """One bar of several parts, with a legend that names their numbers."""
    return Markup('<figure class="bar">{}{}</figure>').format(
        mini_bar(parts, label),
        legend([(f"{p.name} {number(p.value)}", p.tone) for p in parts if p.value]),
    )


def mini_bar(parts: Sequence[BarPart], label: str) -> Markup:
    """One bar of several parts without a legend."""
    description = ", ".join(f"{part.name} {number(part.value)}" for part in parts if part.value)
    return Markup(
        '<svg viewBox="0 0 {w} 16" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<rect class="bar-back" width="{w}" height="16"/>{rects}</svg>'
    ).format(
        w=WIDTH,
        label=f"{label}: {description or 'nothing yet'}",
        rects=_rects(parts, sum(part.value for part in parts)),
    )


def bar_series(bars: Sequence[BarPart], label: str) -> Markup:
    """Small bars beside each other, as high as their values."""
    top = max((bar.value for bar in bars), default=0) or 1
    shape = Markup(
        '<rect class="fill-{}" x="{}" y="{}" width="8" height="{}"><title>{}</title></rect>'
    )
    drawn = Markup("").join(
        shape.format(bar.tone, 10 * index, short(SPARK_HEIGHT - height), short(height), bar.name)
        for index, bar in enumerate(bars)
        for height in (max(2.0, SPARK_HEIGHT * bar.value / top),)
    )
    return Markup(
        '<svg class="spark bars" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img"'
        ' aria-label="{label}">{drawn}</svg>'
    ).format(w=max(1, 10 * len(bars) - 2), h=SPARK_HEIGHT, label=label, drawn=drawn)


def share_bar(share: float, label: str, tone: str = "a") -> Markup:
    """A bar filled to a share."""
    return Markup(
        '<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"'
        ' aria-label="{label}"><rect class="bar-back" width="100" height="8"/>'
        '<rect class="fill-{tone}" width="{width}" height="8"/></svg>'
    ).format(
        label=f"{label}: {percent(share)}", tone=tone, width=short(100 * min(1.0, max(0.0, share)))
    )


def nice_top(values: Iterable[float]) -> float:
    """The end of an axis: the next of 1, 2, 4, 6, 8, 10 times a power of ten.

    Half of it is a round number as well, and a whole one where all values are whole.
    """
    known = list(values)
    least = 2 if all(value % 1 == 0 for value in known) else 0
    largest = max([*known, least])
    if not SMALLEST < largest < math.inf:
        return 1
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= largest * 0.999)


def _points(values: Sequence[float | None], top: float, height: int) -> list[list[str]]:
    """The points of each unbroken piece of a line."""
    step = WIDTH / max(1, len(values) - 1)
    pieces: list[list[str]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            level = height - (height - 2) * min(1.0, value / top) - 1
            pieces[-1].append(f"{short(index * step)},{short(level)}")
    return [piece for piece in pieces if piece]


def _line(values: Sequence[float | None], top: float, height: int, tone: str) -> Markup:
    shape = Markup('<polyline class="line-{}" points="{}"/>')
    return Markup("").join(
        # a single point has no length: it is drawn to itself, and shows as a dot
        shape.format(tone, " ".join(piece if len(piece) > 1 else piece * 2))
        for piece in _points(values, top, height)
    )


def _area(values: Sequence[float | None], top: float, tone: str) -> Markup:
    shape = Markup('<polygon class="area-{}" points="{},{} {} {},{}"/>')
    return Markup("").join(
        shape.format(
            tone, piece[0].split(",")[0], HEIGHT, " ".join(piece), piece[-1].split(",")[0], HEIGHT
        )
        for piece in _points(values, top, HEIGHT)
    )


def grid(*levels: int) -> Markup:
    line = Markup('<line class="grid" x1="0" x2="{}" y1="{}" y2="{}"/>')
    return Markup("").join(line.format(WIDTH, y, y) for y in levels)


def _hover(
    series: Sequence[Series], names: Sequence[str], times: Sequence[datetime], unit: str
) -> Markup:
    """Invisible columns with a tooltip each."""
    width = WIDTH / max([1, len(names), *(len(each.values) for each in series)])
    return Markup("").join(
        column(
            index * width,
            short(width),
            HEIGHT,
            _tooltip(series, index, name, unit),
            times[index].isoformat(timespec="seconds") if times else "",
        )
        for index, name in enumerate(names)
    )


def column(x: float, width: str, height: int, title: str, at: str = "") -> Markup:
    """An invisible column with a tooltip; the script shows the time `at` in it as local time."""
    shape = Markup('<rect class="hover" x="{}" width="{}" height="{}"><title{}>{}</title></rect>')
    time = Markup(' data-at="{}"').format(at) if at else ""
    return shape.format(short(x), width, height, time, title)


def _tooltip(series: Sequence[Series], index: int, name: str, unit: str) -> str:
    values = [
        f"{each.name} {number(value)}{unit}"
        for each in series
        if index < len(each.values) and (value := each.values[index]) is not None
    ]
    return f"{name}: {', '.join(values) or 'nothing'}"


def _rects(parts: Sequence[BarPart], total: int) -> Markup:
    rect = Markup('<rect class="fill-{}" x="{}" width="{}" height="16"><title>{}</title></rect>')
    drawn, at = [], 0.0
    for part in parts:
        width = WIDTH * part.value / total if total else 0.0
        if width:
            title = f"{part.name} {number(part.value)} ({percent(part.value / total)})"
            drawn.append(rect.format(part.tone, short(at), short(width), title))
        at += width
    return Markup("").join(drawn)


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    entry = Markup(
        '<li><svg class="key" viewBox="0 0 10 10" aria-hidden="true">'
        '<rect class="fill-{}" width="10" height="10" rx="2"/></svg>{}</li>'
    )
    items = Markup("").join(entry.format(tone, name) for name, tone in entries)
    return Markup('<ul class="legend">{}</ul>').format(items)


def spans(texts: Iterable[str]) -> Markup:
    return Markup("").join(Markup("<span>{}</span>").format(text) for text in texts)


def _summary(series: Sequence[Series]) -> str:
    """The chart in words, for screen readers."""
    description = []
    for each in series:
        known = [value for value in each.values if value is not None]
        if known:
            description.append(f"{each.name} now {number(known[-1])}, at most {number(max(known))}")
    return "; ".join(description) or "nothing yet"


def short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


DRAWINGS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (sparkline, trend_line, line_chart, stacked_bar, mini_bar, bar_series, share_bar)
}
