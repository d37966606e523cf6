"""Duplicates that lead to no page: redirects in a loop, canonical URLs that cannot be had.

Seen only when a crawl is over, because what a URL leads to is often settled after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

REDIRECT = "redirect"
CANONICAL = "canonical"
CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A settled duplicate that points to a URL which is not itself a page."""

    key: bytes
    reason: str
    target: bytes
    # the outcome of the target; None if it was never settled
    outcome: str | None
    # the target failed because it redirects in a loop
    is_loop: bool = False


class _LoopEnd(Enum):
    PAGE = auto()
    NOTHING = auto()
    LOOP = auto()


def resolve(pointers: Sequence[Pointer]) -> tuple[list[bytes], list[bytes]]:
    """Follow every pointer to its end, each only once.

    The keys of duplicates that must be pages themselves, and of redirects that never end.
    """
    found = {pointer.key: pointer for pointer in pointers}
    ends: dict[bytes, _LoopEnd] = {}
    pages: list[bytes] = []
    for key in found:
        _settle_path(_path(key, found, ends), found, ends, pages)
    return pages, [key for key in found if ends[key] is _LoopEnd.LOOP]


def _path(
    start: bytes, found: Mapping[bytes, Pointer], ends: Mapping[bytes, _LoopEnd]
) -> list[Pointer]:
    path: dict[bytes, Pointer] = {}
    place = start
    while place in found and place not in ends and place not in path:
        path[place] = found[place]
        place = found[place].target
    return list(path.values())


def _settle_path(
    path: list[Pointer],
    found: Mapping[bytes, Pointer],
    ends: dict[bytes, _LoopEnd],
    pages: list[bytes],
) -> None:
    if not path:
        return
    end = _end_of(path, found, ends, pages)
    for pointer in reversed(path):
        if end is not _LoopEnd.PAGE and pointer.reason == CANONICAL:
            # the last page before nothing has to stand for itself, and for all before it
            pages.append(pointer.key)
            end = _LoopEnd.PAGE
        ends[pointer.key] = end


def _end_of(
    path: list[Pointer], found: Mapping[bytes, Pointer], ends: Mapping[bytes, _LoopEnd],
    pages: list[bytes],
) -> _LoopEnd:  # fmt: skip
    last = path[-1]
    if last.target in ends:
        return ends[last.target]
    if last.is_loop:
        return _LoopEnd.LOOP
    if last.target not in found:
        # a duplicate that points to no duplicate points to a page
        return _LoopEnd.PAGE if last.outcome == "duplicate" else _LoopEnd.NOTHING
    start = next(place for place, pointer in enumerate(path) if pointer.key == last.target)
    canonical = [pointer.key for pointer in path[start:] if pointer.reason == CANONICAL]
    if not canonical:
        return _LoopEnd.LOOP
    # two pages that name each other: one of them is the page
    pages.append(min(canonical))
    return _LoopEnd.PAGE
