"""Search vectors of PostgreSQL as they are sent to the engine.

Words were taken apart, stemmed and counted when a row was written. The engine gets them as they
are, so that both find the same, in every language, and identifiers are found as they are typed.
Places of words that were too common to be kept are closed up: who asks for words in a row allows
for that.
"""

from __future__ import annotations

import re

SEPARATOR = "\n"
# what an engine keeps of one word
LONGEST = 200

# PostgreSQL counts up to here: words from there on all have this place
_LAST_PLACE = 16_383
_LAST = str(_LAST_PLACE)
_PLACES = [str(place) for place in range(_LAST_PLACE)]

_ENTRY = re.compile(r"'([^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+)'(?::([\d,]++))?", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)


def words_of(vector: str) -> str:
    """The words of a tsvector without weights, one per line; those without a place at the end.

    Half of what telling an engine costs is spent here. So places stay texts, and little is done
    for each word.
    """
    placed: dict[str, str] = {}
    others: list[str] = []
    is_odd = "\\" in vector or "''" in vector
    for written, places in _ENTRY.findall(vector):
        word = unescaped(written) if is_odd else written
        if len(word) > LONGEST:
            word = cut(word)
        if "," in places:
            placed.update(dict.fromkeys(places.split(","), word))
        else:
            placed[places] = word
        if not places or places.endswith(_LAST):
            others.append(word)
    placed.pop("", None)
    last = max(map(int, placed), default=0)
    at = placed.get
    line = [word for place in _PLACES[1 : last + 1] if (word := at(place)) is not None]
    return SEPARATOR.join(line + others)


def unescaped(written: str) -> str:
    """A lexeme as it is, from how PostgreSQL writes it between quotes."""
    return _ESCAPED.sub(lambda match: match[1] or "'", written)


def cut(word: str) -> str:
    return word[:LONGEST]
