"""Search vectors of PostgreSQL as the engine is told them.

Words were taken apart, stemmed and counted when a row was written. The engine gets them as they
are, so that both find the same, in every language, and identifiers are found as they are typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR = "\n"
# in the place of words that are too common to be kept: neighbours stay neighbours, and others
# do not become them. No word of PostgreSQL begins with it.
GAP = "§"
# what an engine keeps of one word
LONGEST = 200

# PostgreSQL counts up to here: words from there on all have this place
_LAST_PLACE = 16_383
_LAST = str(_LAST_PLACE)
_PLACES = [str(place) for place in range(_LAST_PLACE + 1)]

_ENTRY = re.compile(r"'([^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+)'(?::([\d,]++))?", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)


def words_of(vector: str) -> str:
    """The words of a tsvector without weights, one per line; those without a place at the end.

    Half of what telling an engine costs is spent here. So places stay texts, and little is done
    for each word.
    """
    placed: dict[str, str] = {}
    apart: list[str] = []
    is_odd = "\\" in vector or "''" in vector
    for written, places in _ENTRY.findall(vector):
        word = unescaped(written) if is_odd else written
        if len(word) > LONGEST:
            word = cut(word)
        if not places:
            apart += (GAP, word)
        elif "," in places:
            placed.update(dict.fromkeys(places.split(","), word))
        else:
            placed[places] = word
        if places.endswith(_LAST):
            apart.append(word)
    last = max(map(int, placed), default=0)
    at = placed.get
    return SEPARATOR.join([at(place, GAP) for place in _PLACES[1 : last + 1]] + apart)


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
