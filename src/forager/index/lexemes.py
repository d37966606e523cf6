"""Search vectors of PostgreSQL as the engine is told them.

Words were taken apart, stemmed and counted when a row was written. The engine gets them as they
are, so that both find the same, in every language, and identifiers are found as they are typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SEPARATOR = "\n"
# in the place of words that are too common to be kept: neighbours stay neighbours, and others
# do not become them. No word of PostgreSQL begins with it.
GAP = "§"
# what an engine keeps of one word
LONGEST = 200

_ENTRY = re.compile(r"'((?:[^'\\]|''|\\.)*)'(?::([\dA-D,]+))?", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_WEIGHTS = str.maketrans("", "", "ABCD")


def words_of(vector: str) -> str:
    """The words of a tsvector in their order, one per line; those that have no place at the end."""
    placed: list[tuple[int, str]] = []
    bare: list[str] = []
    for written, places in _ENTRY.findall(vector):
        word = cut(unescaped(written))
        if places:
            placed += [(int(place), word) for place in places.translate(_WEIGHTS).split(",")]
        else:
            bare.append(word)
    placed.sort()
    return SEPARATOR.join([*_in_line(placed), *_apart(bare)])


def in_a_row(words: Sequence[tuple[int, str]]) -> str:
    """Words for a phrase, each so many places after the one before it."""
    line: list[str] = []
    for distance, word in words:
        line += [GAP] * (distance - 1 if line else 0)
        line.append(cut(word))
    return SEPARATOR.join(line)


def unescaped(written: str) -> str:
    """A lexeme as it is, from how PostgreSQL writes it between quotes."""
    if "'" not in written and "\\" not in written:
        return written
    return _ESCAPED.sub(lambda match: match[1] or "'", written)


def cut(word: str) -> str:
    return word[:LONGEST]


def _in_line(placed: Iterable[tuple[int, str]]) -> Iterable[str]:
    last = 0
    for place, word in placed:
        for _ in range(place - last - 1):
            yield GAP
        yield word
        last = place


def _apart(words: Iterable[str]) -> Iterable[str]:
    """None of them is anybody's neighbour."""
    for word in words:
        yield GAP
        yield word
