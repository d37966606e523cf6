"""A page's sections: a tree in pre-order, small enough to be stored and searched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forager.extract.markdown.blocks import HeadedText

MAX_SECTION_BYTES = 256 * 1024
# longer sections are split where anchors or paragraphs begin
LONG_SECTION = 16 * 1024
MAX_SECTIONS = 20_000
# the level of text that continues the section above it: deeper than any heading
CONTINUED = 7


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its text. Positions count from 0 in pre-order; the parent is a position."""

    heading: str
    # 1 to 6 as on the page; 0 for text before the first heading; CONTINUED for text of the section
    # above it (its parent, whose heading it repeats, and whose anchor unless it has its own)
    level: int
    anchor: str | None
    content: str  # markdown, without the heading and without the sections inside
    position: int
    parent: int | None
    anchors: tuple[str, ...] = ()  # further ones, of places in its text


def build_sections(parts: Sequence[HeadedText], title: str) -> tuple[tuple[Section, ...], bool]:
    """The sections of a page's parts, and whether parts were joined because there are too many."""
    sections: list[Section] = []
    path: list[tuple[HeadedText, Section]] = []  # the sections around the next one
    for part in _join_beyond(parts):
        content = part.content()
        if not content and not part.level:  # nothing before the first heading
            continue
        _leave(path, part)
        parent = path[-1][1].position if path else None
        pieces = split_part(part, content)
        heading = part.heading or title
        level = part.level if part.continues is None or parent is None else CONTINUED
        text, anchors = pieces[0]
        first = Section(heading, level, part.anchor, text, len(sections), parent, anchors)
        sections.append(first)
        if part.continues is None:
            path.append((part, first))
        sections.extend(_continued(first, pieces))
    return tuple(sections), len(parts) > MAX_SECTIONS


def _leave(path: list[tuple[HeadedText, Section]], part: HeadedText) -> None:
    """Drop the sections that do not contain the next one."""
    if part.continues is not None:
        while path and path[-1][0] is not part.continues:
            path.pop()
    else:
        while path and path[-1][0].level >= part.level:
            path.pop()


def _continued(first: Section, pieces: list[Piece]) -> Iterator[Section]:
    """The further pieces of a section that is too large: its children, to keep pre-order."""
    for number, (text, anchors) in enumerate(pieces[1:], start=1):
        yield Section(
            first.heading,
            CONTINUED,
            anchors[0] if anchors else first.anchor,
            text,
            first.position + number,
            first.position,
            anchors[1:],
        )


def _join_beyond(parts: Sequence[HeadedText]) -> Sequence[HeadedText]:
    if len(parts) <= MAX_SECTIONS:
        return parts
    last = parts[MAX_SECTIONS - 1]
    text = join_parts([HeadedText(0, blocks=last.blocks), *parts[MAX_SECTIONS:]])
    joined = HeadedText(last.level, last.heading, last.markdown_heading, last.anchor, [text])
    joined.anchors = [(0, name) for part in parts[MAX_SECTIONS - 1 :] for name in _names(part)]
    return [*parts[: MAX_SECTIONS - 1], joined]


def without_labels(parts: Sequence[HeadedText]) -> tuple[list[HeadedText], list[str]]:
    """The parts without headings that read like labels and have nothing below them; and these."""
    kept: list[HeadedText] = []
    labels: list[str] = []
    following = 0  # the level of the heading after this one, which is below it if it is deeper
    for part in reversed(parts):
        if not part.label or part.blocks or following > part.level:
            kept.append(part)
            following = part.level or following
        else:
            labels.append(part.heading)
    kept.reverse()
    return kept, labels


def join_parts(parts: Sequence[HeadedText]) -> str:
    """The markdown of all parts, with their headings."""
    pieces = []
    for part in parts:
        if part.level:
            pieces.append(f"{'#' * part.level} {part.markdown_heading}")
        if part.blocks:
            pieces.append(part.content())
    return "\n\n".join(pieces)


# --- long sections --------------------------------------------------------------------------------

Piece = tuple[str, tuple[str, ...]]  # a text, and the anchors in it


def split_part(part: HeadedText, content: str) -> list[Piece]:
    """The text of a part in pieces, cut where anchors begin, else paragraphs, else list items."""
    names = [(at, name) for at, name in part.anchors if name != part.anchor]
    if len(content) <= LONG_SECTION:
        return [(content, tuple(dict.fromkeys(name for _, name in names)))]
    blocks, places = _with_short_tables(part.blocks)
    placed = [(places[min(at, len(places) - 1)], name) for at, name in names]
    pieces: list[Piece] = []
    for start, end in pairwise(_cuts(blocks, {at for at, _ in placed})):
        text = _dedented("".join(blocks[start:end]).lstrip("\n"))
        inside = dict.fromkeys(name for at, name in placed if start <= at < end)
        # one block of code or of broken lines; a row of a table stays whole
        is_long = len(text) > _MAX_BLOCK and not _is_table(text)
        first, *others = split_markdown(text, LONG_SECTION if is_long else MAX_SECTION_BYTES)
        pieces.append((first, tuple(inside)))
        pieces.extend((text, ()) for text in others)
    return pieces


def _cuts(blocks: Sequence[str], anchored: set[int]) -> list[int]:
    """The numbers of the blocks with which pieces begin, and the end."""
    cuts, size, at = [0], 0, 0
    best = (0, 0)  # how good the best place since the last cut is, and the place
    while at < len(blocks):
        block = blocks[at]
        quality = _quality(block, at in anchored) if at > cuts[-1] else 0
        if quality and (size >= LONG_SECTION // 4 or len(block) > LONG_SECTION // 2):
            best = max(best, (quality, at))
        size += len(block)
        at += 1
        if size > LONG_SECTION and best[0]:
            cuts.append(best[1])
            size, at, best = 0, best[1], (0, 0)
    return [*cuts, len(blocks)]


_MAX_BLOCK = 5 * LONG_SECTION // 4  # a longer text is cut inside of a block
_ITEM = re.compile(r"\n( *)(?:[-*] |\d{1,9}\. )")


def _quality(block: str, anchored: bool) -> int:
    """How good a cut before a block is; 0 if it would separate a block from its container."""
    if block.startswith("\n\n") and not block[2:3].isspace() and block[2:3] != ">":
        return 6 if anchored else 5
    if item := _ITEM.match(block):
        return (1 if item[1] else 3) + anchored
    return 0


def _dedented(text: str) -> str:
    """A text that begins inside of a list, up to the end of that list, without its indentation."""
    indent = len(text) - len(text.lstrip(" "))
    if not indent:
        return text
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line and line[:indent].strip(" "):
            break
        lines[at] = line[indent:]
    return "\n".join(lines)


def _with_short_tables(blocks: Sequence[str]) -> tuple[list[str], list[int]]:
    """The blocks with long tables in pieces, and the new number of each block."""
    found: list[str] = []
    places = []
    for block in blocks:
        places.append(len(found))
        if len(block) > LONG_SECTION and _is_table(block):
            found += _short_tables(block)
        else:
            found.append(block)
    return found, places


def _is_table(block: str) -> bool:
    lines = block.lstrip("\n").split("\n", 2)
    return len(lines) == 3 and all(line.startswith("|") for line in lines)


def _short_tables(table: str) -> Iterator[str]:
    """A table as several, each with its first row."""
    head, rule, *rows = table.lstrip("\n").split("\n")
    piece: list[str] = []
    size = 0
    for row in rows:
        if piece and size + len(row) > LONG_SECTION // 2:
            yield "\n".join(["\n", head, rule, *piece])
            piece, size = [], 0
        piece.append(row)
        size += len(row)
    yield "\n".join(["\n", head, rule, *piece])


def _names(part: HeadedText) -> Iterator[str]:
    if part.anchor:
        yield part.anchor
    yield from (name for _, name in part.anchors)


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
