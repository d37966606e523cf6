"""What a person typed, taken apart: words, phrases, identifiers, what must not be there, `or`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    # of an identifier: the lexemes that sections have for it
    lexemes: tuple[str, ...] = ()


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
    lexemes = () if " " in text else _identifier(text)
    kind = Kind.IDENTIFIER if lexemes else Kind.PHRASE
    return Term(kind, text, negated, tuple(lexemes))


def _word(word: str) -> Term:
    # `--no-verify` and `-x` as identifiers begin with what otherwise means "without"
    lexemes = _identifier(word) if not word.startswith("-") or word.startswith("--") else ()
    if lexemes:
        return Term(Kind.IDENTIFIER, word, lexemes=tuple(lexemes))
    negated = word.startswith("-") and len(word) > 1
    word = word.lstrip("-") if negated else word
    if negated and (lexemes := _identifier(word)):
        return Term(Kind.IDENTIFIER, word, negated=True, lexemes=tuple(lexemes))
    return Term(Kind.WORDS, word, negated)


def _identifier(word: str) -> Sequence[str]:
    """The lexemes of a word that is an identifier; of the brackets of a call there are none."""
    return list(identifier_lexemes(word.strip(_BRACKETS)))
