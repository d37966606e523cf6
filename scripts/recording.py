# /// script
# dependencies = ["pyte==0.8.2"]
# ///
"""Record `make crawl` in a terminal as an animated picture, docs/images/crawl.svg.

`uv run scripts/recording.py` runs it with an empty home folder. Each frame is what the terminal
showed, for as long as it showed it, at most LONGEST. Readers who prefer no motion see the last.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import tempfile
import time
from html import escape
from itertools import groupby
from pathlib import Path

import pyte

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "crawl.svg"
COLUMNS, ROWS = 104, 21
WIDTH, HEIGHT, MARGIN = 8.2, 18, 16  # of a character, of a line, around the text
# seconds: the first and the last frame, the longest between them; shorter ones are joined
TYPED, LAST, LONGEST, SHORTEST = 1.0, 10.0, 3.0, 0.12
COLORS = {"default": "#d7dae0", "cyan": "#56b6c2", "brown": "#e5c07b", "5faf00": "#98c379"}

Frame = tuple[float, list[str]]  # how long it was shown, and its lines as SVG


def record(command: list[str], environment: dict[str, str]) -> list[Frame]:
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    stream.feed(b"\x1b[1m$ " + " ".join(command).encode() + b"\x1b[0m\r\n")
    frames: list[Frame] = [(TYPED, drawn(screen))]
    master, terminal = pty.openpty()
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=ROOT, env=environment):
        os.close(terminal)
        before = time.monotonic()
        while (output := _read(master)) is not None:
            now = time.monotonic()
            if now - before > SHORTEST:
                frames.append((min(now - before, LONGEST), drawn(screen)))
                before = now
            stream.feed(output)
    frames.append((LAST, drawn(screen)))
    return [
        (sum(seconds for seconds, _ in same), lines)
        for lines, same in groupby(frames, key=lambda frame: frame[1])
    ]


def _read(master: int) -> bytes | None:
    select.select([master], [], [])
    try:
        return os.read(master, 65536)
    except OSError:  # the command ended
        return None


def drawn(screen: pyte.Screen) -> list[str]:
    """The lines of the screen: runs of characters that look the same, each at its column."""
    lines = []
    for row in range(ROWS):
        cells = [(column, screen.buffer[row][column]) for column in range(COLUMNS)]
        for look, run in groupby(cells, key=lambda cell: (cell[1].fg, cell[1].bold)):
            found = list(run)
            text = "".join(cell.data for _, cell in found)
            if text.strip():
                lines.append(_text(row, found[0][0], text.rstrip(), *look))
    return lines


def _text(row: int, column: int, text: str, color: str, bold: bool) -> str:
    x, y = MARGIN + column * WIDTH, MARGIN + 40 + row * HEIGHT
    weight = ' font-weight="bold"' if bold else ""
    fill = COLORS.get(color, f"#{color}" if len(color) == 6 else COLORS["default"])
    width = f'textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y}" fill="{fill}"{weight} {width}>{escape(text)}</text>'


def animated(frames: list[Frame]) -> str:
    total = sum(seconds for seconds, _ in frames)
    styles, groups, start = [], [], 0.0
    for number, (seconds, lines) in enumerate(frames):
        begin, end = 100 * start / total, 100 * (start + seconds) / total
        shown = f"{begin:.2f}%,{end - 0.01:.2f}%{{opacity:1}}"
        hidden = f"0%,{max(begin - 0.01, 0):.2f}%,{min(end, 100):.2f}%,100%{{opacity:0}}"
        styles.append(f"@keyframes f{number}{{{hidden}{shown}}}")
        styles.append(f"#f{number}{{animation:f{number} {total:.1f}s step-end infinite}}")
        last = number == len(frames) - 1
        groups.append(f'<g id="f{number}" opacity="{int(last)}">{"".join(lines)}</g>')
        start += seconds
    width, height = 2 * MARGIN + COLUMNS * WIDTH, 2 * MARGIN + 30 + ROWS * HEIGHT
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 20 * n}" cy="20" r="6" fill="{color}"/>'
        for n, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        "<title>make crawl: the bundled site is crawled, accounted for and searched</title>"
        f"<style>text{{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13.5px;white-space:pre}}"
        f"@media(prefers-reduced-motion:no-preference){{{''.join(styles)}}}</style>"
        f'<rect width="100%" height="100%" rx="10" fill="#1e2127"/>{dots}{"".join(groups)}</svg>\n'
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="forager-") as home:
        settings = {"FORAGER_HOME": home, "FORAGER_DATABASE_LINGER_SECONDS": "0"}
        size = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        frames = record(["make", "crawl"], os.environ | settings | size)
    PICTURE.write_text(animated(frames), encoding="utf-8")


if __name__ == "__main__":
    main()
