"""What a person typed, taken apart: words, phrases, identifiers, what must not be there, `or`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from unicodedata import normalize

from forager.db.database import Connection
from forager.documents.store import words
from forager.extract.identifiers import identifier_lexemes
from forager.extract.text import storable

# what goes beyond is left out, and said; no person types more
MAX_CHARACTERS = 1_000
MAX_TERMS = 32

# a phrase in any of the quotes that keyboards and word processors make, or a run of characters
_PIECE = re.compile(r'(-?)["“”„«»]([^"“”„«»]*)["“”„«»]?|(\S+)')
_QUOTES = '"“”„«»'
_BRACKETS = "()[]{}<>,;!?"


class Kind(Enum):
    WORDS = "words"
    PHRASE = "phrase"
    # to be found as typed
    IDENTIFIER = "identifier"


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for, or to stay away from."""

    kind: Kind
    text: str
    negated: bool = False
    # of an identifier: the lexeme that sections have for it
    lexeme: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """Alternatives, each a list of terms that must all hold."""

    alternatives: tuple[tuple[Term, ...], ...]
    shortened: bool = False

    @property
    def terms(self) -> list[Term]:
        return [term for alternative in self.alternatives for term in alternative]


def parse_query(text: str) -> Query:
    """Read a query as web searches do. Nothing a person can type is an error."""
    text = normalize("NFC", storable(text)).strip()
    pieces = list(_pieces(text[:MAX_CHARACTERS]))
    shortened = len(text) > MAX_CHARACTERS or len(pieces) > MAX_TERMS
    alternatives: list[list[Term]] = [[]]
    for piece in pieces[:MAX_TERMS]:
        if piece is None:
            alternatives.append([])
        else:
            alternatives[-1].append(piece)
    return Query(tuple(tuple(terms) for terms in alternatives if terms), shortened)


def _pieces(text: str) -> Iterator[Term | None]:
    """The terms in their order; None for an `or`."""
    for minus, phrase, word in _PIECE.findall(text):
        if word.lower() == "or":
            yield None
        elif word:
            # a quote may begin in the middle of a run: what comes before it is a word of its own
            yield from _split_at_quote(word)
        elif phrase.strip():
            yield _phrase(phrase.strip(), negated=bool(minus))


def _split_at_quote(word: str) -> Iterator[Term]:
    bare = word.strip(_QUOTES)
    if any(quote in bare for quote in _QUOTES):
        for part in re.split(f"[{_QUOTES}]", bare):
            if part:
                yield _word(part)
    elif bare:
        yield _word(bare)


def _phrase(text: str, *, negated: bool) -> Term:
    return _identifier(text, negated=negated) or Term(Kind.PHRASE, text, negated)


def _word(word: str) -> Term:
    # `--no-verify` begins with what otherwise means "without"
    if word.startswith("--") and (term := _identifier(word)):
        return term
    bare = word.lstrip("-") if len(word) > 1 else word
    negated = bare != word
    return _identifier(bare, negated=negated) or Term(Kind.WORDS, bare, negated)


def _identifier(word: str, *, negated: bool = False) -> Term | None:
    """The word as an identifier, if the whole of it is one; the brackets of a call are none."""
    name = word if word.startswith("$<") else word.strip(_BRACKETS)
    lexemes = identifier_lexemes(name)
    if not lexemes or lexemes[0] != name.lower():
        return None
    return Term(Kind.IDENTIFIER, name, negated, lexemes[0])


_MIN_LENGTH = 4


async def suggest(
    connection: Connection, query: Query, text: str, generations: Sequence[int]
) -> str | None:
    """The text with words replaced that no section has; None if there is nothing to replace."""
    found = text
    for term in query.terms:
        word = term.text.lower()
        if term.negated or term.kind is Kind.PHRASE or len(word) < _MIN_LENGTH:
            continue
        similar = await words.select_similar(connection, generations, word)
        if word not in similar and (meant := closest(word, similar)):
            found = found.replace(term.text, meant)
    return found if found != text else None


def closest(word: str, similar: Mapping[str, int]) -> str | None:
    """The most common of the words that are fewest edits away: one, or two in a longer word."""
    allowed = 1 if len(word) <= 5 else 2
    near = [(distance(word, each), -count, each) for each, count in similar.items()]
    best = min(near, default=None)
    return best[2] if best is not None and best[0] <= allowed else None


def distance(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
