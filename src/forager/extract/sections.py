"""A page's sections: a tree in pre-order, small enough to be stored and searched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forager.extract.markdown.blocks import Part

MAX_SECTION_BYTES = 256 * 1024
MAX_SECTIONS = 20_000
# the level of text that continues the section above it: deeper than any heading
CONTINUED = 7


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its text. Positions count from 0 in pre-order; the parent is a position."""

    heading: str
    # 1 to 6 as on the page; 0 for text before the first heading; CONTINUED for text of the section
    # above it (its parent, whose heading and anchor it repeats)
    level: int
    anchor: str | None
    content: str  # markdown, without the heading and without the sections inside
    position: int
    parent: int | None


def build_sections(parts: Sequence[Part], title: str) -> tuple[tuple[Section, ...], bool]:
    """The sections of a page's parts, and whether parts were joined because there are too many."""
    sections: list[Section] = []
    path: list[tuple[Part, Section]] = []  # the sections around the next one
    for part in _join_beyond(parts):
        content = part.content()
        if not content and not part.level:  # nothing before the first heading
            continue
        _leave(path, part)
        parent = path[-1][1].position if path else None
        pieces = split_markdown(content, MAX_SECTION_BYTES)
        heading = part.heading or title
        level = part.level if part.continues is None or parent is None else CONTINUED
        first = Section(heading, level, part.anchor, pieces[0], len(sections), parent)
        sections.append(first)
        if part.continues is None:
            path.append((part, first))
        sections.extend(_continued(first, pieces))
    return tuple(sections), len(parts) > MAX_SECTIONS


def _leave(path: list[tuple[Part, Section]], part: Part) -> None:
    """Drop the sections that do not contain the next one."""
    if part.continues is not None:
        while path and path[-1][0] is not part.continues:
            path.pop()
    else:
        while path and path[-1][0].level >= part.level:
            path.pop()


def _continued(first: Section, pieces: list[str]) -> Iterator[Section]:
    """The further pieces of a section that is too large: its children, to keep pre-order."""
    for number, piece in enumerate(pieces[1:], start=1):
        position = first.position + number
        yield Section(first.heading, CONTINUED, first.anchor, piece, position, first.position)


def _join_beyond(parts: Sequence[Part]) -> Sequence[Part]:
    if len(parts) <= MAX_SECTIONS:
        return parts
    last = parts[MAX_SECTIONS - 1]
    text = join_parts([Part(0, blocks=last.blocks), *parts[MAX_SECTIONS:]])
    joined = Part(last.level, last.heading, last.markdown_heading, last.anchor, [text])
    return [*parts[: MAX_SECTIONS - 1], joined]


def without_labels(parts: Sequence[Part]) -> list[Part]:
    """The parts without headings that read like labels of controls and have nothing below them."""
    kept: list[Part] = []
    following = 0  # the level of the heading after this one, which is below it if it is deeper
    for part in reversed(parts):
        if not part.label or part.blocks or following > part.level:
            kept.append(part)
            following = part.level or following
    kept.reverse()
    return kept


def join_parts(parts: Sequence[Part]) -> str:
    """The markdown of all parts, with their headings."""
    pieces = []
    for part in parts:
        if part.level:
            pieces.append(f"{'#' * part.level} {part.markdown_heading}")
        if part.blocks:
            pieces.append(part.content())
    return "\n\n".join(pieces)


_FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})(.*)$", re.MULTILINE)


def split_markdown(markdown: str, max_bytes: int) -> list[str]:
    """Pieces of at most `max_bytes` of UTF-8, cut between blocks, else lines, else characters."""
    if len(markdown) * 4 <= max_bytes or len(markdown.encode()) <= max_bytes:
        return [markdown]
    pieces: list[str] = []
    opened = ""  # the fence that the piece before left open
    # room for a fence to be closed in one piece and opened in the next
    room = max_bytes - 2 * _MAX_FENCE
    for piece in _cut(markdown, room):
        text = f"{opened}\n{piece}" if opened else piece
        opened = _open_fence(text)
        pieces.append(f"{text}\n{_mark(opened)}" if opened else text)
    return pieces


_MAX_FENCE = 200


def _cut(markdown: str, room: int) -> list[str]:
    pieces = []
    start = 0
    while start < len(markdown):
        # as many characters as fit
        end = start + len(markdown[start : start + room].encode()[:room].decode(errors="ignore"))
        if end < len(markdown):
            end = _boundary(markdown, start, end)
        pieces.append(markdown[start:end].strip("\n"))
        start = end
    return [piece for piece in pieces if piece.strip()] or [""]


def _boundary(markdown: str, start: int, end: int) -> int:
    """The last good place to cut, not before the middle."""
    middle = (start + end) // 2
    for gap in ("\n\n", "\n", " "):
        at = markdown.rfind(gap, middle, end)
        if at > start:
            return at + len(gap)
    return end


def _open_fence(text: str) -> str:
    opened = ""
    for fence in _FENCE.finditer(text):
        if not opened:
            opened = fence[0][: _MAX_FENCE - 10].lstrip(" >")
        elif not fence[2].strip() and fence[1].startswith(_mark(opened)):
            opened = ""
    return opened


def _mark(fence: str) -> str:
    found = _FENCE.match(fence)
    return found[1] if found else ""
