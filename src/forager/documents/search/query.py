"""What a person typed, taken apart: words, phrases, identifiers, what must not be there, `or`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from unicodedata import normalize

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
