"""Markdown in pieces of bounded size."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})(.*)$", re.MULTILINE)


def split_markdown(markdown: str, max_bytes: int) -> list[str]:
    """Pieces of at most so many bytes of UTF-8, cut between blocks, else lines, else characters."""
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
        # at most four bytes per character, so this many surely fit; then as many more as do
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
