"""Growth curves as SVG files: numbers in, markup out, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 84, 56
# distinguishable with color blindness: blue, orange, green, purple
TONES = (("#0b62c4", "#6cb0ff"), ("#b54708", "#f5a35c"), ("#0f7a4d", "#5fd39b"),
         ("#7a3db8", "#c79bf2"))  # fmt: skip
DASHES = ("", "7 4", "2 4", "10 3 2 3")

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Curve:
    """A chart with a logarithmic horizontal axis."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]

    def svg(self) -> str:
        lines = [line for line in self.lines if line.points][: len(TONES)]
        xs = [x for line in lines for x, _ in line.points]
        frame = _Frame(min(xs), max(xs), nice_top(y for line in lines for _, y in line.points))
        parts = [
            f'<text class="title" x="{LEFT}" y="28">{escape(self.title)}</text>',
            *_legend(lines),
            *_grid(frame),
            *_sizes(frame, sorted(set(xs))),
            f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 12}"'
            f' text-anchor="middle">{escape(self.x_label)}</text>',
            f'<text class="axis" transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2:g})'
            f' rotate(-90)" text-anchor="middle">{escape(self.y_label)}</text>',
            *(part for number, line in enumerate(lines) for part in _drawn(frame, number, line)),
        ]
        return _document(self.title, _described(lines), parts)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Coordinates of numbers in the drawing."""

    low: float
    high: float
    top: float

    def x(self, value: float) -> float:
        span = math.log10(self.high / self.low) if self.high > self.low else 1.0
        share = math.log10(value / self.low) / span
        return round(LEFT + 12 + share * (WIDTH - LEFT - RIGHT - 24), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM), 1)


def nice_top(values: Iterable[float]) -> float:
    """The end of an axis: the next of 1, 2, 4, 5, 10 times a power of ten."""
    largest = max(values, default=0.0)
    if not 0 < largest < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= largest * 0.999)


def short(value: float) -> str:
    """1,000,000 as 1M, 30,000 as 30k."""
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def _drawn(frame: _Frame, number: int, line: Line) -> list[str]:
    places = [(frame.x(x), frame.y(y)) for x, y in sorted(line.points)]
    path = " ".join(f"{x:g},{y:g}" for x, y in places)
    dots = [
        f'<circle class="dot t{number}" cx="{x:g}" cy="{y:g}" r="3.5"><title>'
        f"{escape(line.name)}: {value:,.6g} at {size:,.0f}</title></circle>"
        for (x, y), (size, value) in zip(places, sorted(line.points), strict=True)
    ]
    return [f'<polyline class="line t{number}" points="{path}"/>', *dots]


def _legend(lines: Sequence[Line]) -> list[str]:
    parts, x = [], float(LEFT)
    for number, line in enumerate(lines):
        parts.append(f'<line class="line t{number}" x1="{x:g}" y1="52" x2="{x + 26:g}" y2="52"/>')
        parts.append(f'<text class="axis" x="{x + 33:g}" y="56">{escape(line.name)}</text>')
        x += 60 + 6.6 * len(line.name)
    return parts


def _grid(frame: _Frame) -> list[str]:
    parts = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = frame.y(frame.top * share)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:g}" x2="{WIDTH - RIGHT}" y2="{y:g}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end">'
            f"{short(frame.top * share)}</text>"
        )
    return parts


def _sizes(frame: _Frame, sizes: Sequence[float]) -> list[str]:
    return [
        f'<text class="tick" x="{frame.x(size):g}" y="{HEIGHT - BOTTOM + 20}"'
        f' text-anchor="middle">{short(size)}</text>'
        for size in sizes
    ]


def _described(lines: Sequence[Line]) -> str:
    return "; ".join(
        f"{line.name}: " + ", ".join(f"{y:,.6g} at {x:,.0f}" for x, y in sorted(line.points))
        for line in lines
    )


def _document(title: str, description: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-labelledby="t d">'
    )
    return "\n".join(
        [
            head,
            f'<title id="t">{escape(title)}</title>',
            f'<desc id="d">{escape(description)}</desc>',
            f"<style>{_style()}</style>",
            f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _style() -> str:
    """A separate background, because the color of the page is unknown."""
    tones = "".join(
        f".t{n}{{stroke:{light};stroke-dasharray:{DASHES[n] or 'none'}}}"
        f".dot.t{n}{{fill:{light};stroke-dasharray:none}}"
        for n, (light, _) in enumerate(TONES)
    )
    dark = "".join(
        f".t{n}{{stroke:{tone}}}.dot.t{n}{{fill:{tone}}}" for n, (_, tone) in enumerate(TONES)
    )
    return (
        "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}"
        ".tick{font-size:12px;fill:#59636e}.back{fill:#fff}.grid{stroke:#d1d9e0}"
        ".line{fill:none;stroke-width:2.5;stroke-linejoin:round}"
        f"{tones}"
        "@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.tick{fill:#b7bdc8}"
        f".back{{fill:#0d1117}}.grid{{stroke:#3d444d}}{dark}}}"
    )
