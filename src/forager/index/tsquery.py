"""Search vectors and queries of PostgreSQL as the engine gets them.

Words were split, stemmed and counted when a row was written. The engine gets them as they are, so
that both find the same, in every language. Positions of words that were too common to be kept are
closed up; queries for words in a row allow for that. PostgreSQL checks all results of the engine:
a query that cannot be translated exactly matches more, and never less.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_TOKEN = re.compile(r"'((?:[^'\\]|''|\\.)*)'(:[*ABCD]+)?|<(-|\d+)>|([&|!()])", re.DOTALL)
EVERYTHING: Json = {"match_all": {}}


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Operands in a row, each with its distance to the one before it."""

    operands: tuple[tuple[int, Node], ...]


@dataclass(frozen=True, slots=True)
class All:
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


Node = Word | Row | All | Either | Not


def engine_query(tsquery: str, field: str) -> Json:
    """The query of an engine that finds at least what PostgreSQL finds in the same words."""
    return _asked(parse(tsquery), field)


# --- asking ------------------------------------------------------------------------------------


def _asked(node: Node, field: str) -> Json:
    match node:
        case Word(text, is_prefix):
            return {"prefix" if is_prefix else "term": {field: cut(text)}}
        case Row(operands):
            return _row(operands, field)
        case Either(operands):
            ways = [_asked(operand, field) for operand in operands]
            return {"bool": {"should": ways, "minimum_should_match": 1}}
        case All(operands):
            return _all(operands, field)
        case Not():
            return _all((node,), field)


def _row(operands: tuple[tuple[int, Node], ...], field: str) -> Json:
    words = [
        cut(node.text) for _, node in operands if isinstance(node, Word) and not node.is_prefix
    ]
    if len(words) < len(operands):
        return _all(tuple(node for _, node in operands), field)
    # between two words may be as many as PostgreSQL allows there, or fewer: see `words_of`
    between = sum(distance - 1 for distance, _ in operands[1:])
    return {"match_phrase": {field: {"query": SEPARATOR.join(words), "slop": between}}}


def _all(operands: tuple[Node, ...], field: str) -> Json:
    wanted = [_asked(node, field) for node in operands if not isinstance(node, Not)]
    # only what is said exactly may exclude
    unwanted = [
        _asked(node.operand, field)
        for node in operands
        if isinstance(node, Not) and _is_whole(node.operand)
    ]
    return {"bool": {"must": wanted or [EVERYTHING], "must_not": unwanted}}


def _is_whole(node: Node) -> bool:
    return isinstance(node, Word) and not node.is_prefix and len(node.text) <= LONGEST


# --- reading -----------------------------------------------------------------------------------


def parse(tsquery: str) -> Node:
    """Read a query as PostgreSQL writes one: `!` binds most, then `<->`, `&` and `|`."""
    reader = _Reader(tsquery)
    node = reader.either()
    if reader.token is not None:
        raise ValueError("not the text of a query")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.finditer(text)
        self.token: re.Match[str] | None = next(self._tokens, None)

    def either(self) -> Node:
        operands = [self._all()]
        while self._took("|"):
            operands.append(self._all())
        return operands[0] if len(operands) == 1 else Either(tuple(operands))

    def _all(self) -> Node:
        operands = [self._row()]
        while self._took("&"):
            operands.append(self._row())
        return operands[0] if len(operands) == 1 else All(tuple(operands))

    def _row(self) -> Node:
        operands = [(1, self._one())]
        while self.token is not None and self.token[3]:
            distance = 1 if self.token[3] == "-" else int(self.token[3])
            self._next()
            operands.append((distance, self._one()))
        return operands[0][1] if len(operands) == 1 else Row(tuple(operands))

    def _one(self) -> Node:
        if self._took("!"):
            return Not(self._one())
        if self._took("("):
            node = self.either()
            if not self._took(")"):
                raise ValueError("a bracket is not closed")
            return node
        if self.token is None or self.token[1] is None:
            raise ValueError("a word is missing")
        word = Word(unescaped(self.token[1]), "*" in (self.token[2] or ""))
        self._next()
        return word

    def _took(self, sign: str) -> bool:
        if self.token is None or self.token[4] != sign:
            return False
        self._next()
        return True

    def _next(self) -> None:
        self.token = next(self._tokens, None)


SEPARATOR = "\n"
# characters of a word that the engine stores
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
