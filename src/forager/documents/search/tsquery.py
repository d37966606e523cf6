"""The parsed query as PostgreSQL's own: one text for finding, one for marking what matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from forager.documents.names import DEFINES, bigrams
from forager.documents.search.query import Kind, Query, Term

_LEXEME = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
# as many words of a query are weighed against each other; further ones must match
_MAX_OPTIONAL = 7
_MIN_STEM = 4


class Reading(StrEnum):
    """How the terms of a query are looked for."""

    TYPED = "typed"
    # identifiers by the words that they are made of
    WORDS = "words"
    # names and the last word as beginnings
    PREFIX = "prefix"
    # words without their endings
    STEM = "stem"


@dataclass(frozen=True, slots=True)
class TsTerm:
    """A term that must match, as it was typed and as PostgreSQL looks for it."""

    text: str
    query: str
    # for sections that define what it names
    defined: str
    is_name: bool

    @property
    def lexemes(self) -> list[str]:
        return lexemes_of(self.query)


@dataclass(frozen=True, slots=True)
class TsQuery:
    """A query under one text search configuration; empty if nothing in it can be looked for."""

    match: str
    # what to mark, without what must not be there
    positive: str
    terms: tuple[TsTerm, ...] = ()
    # what must not be there, if there are no alternatives
    unwanted: tuple[str, ...] = ()
    is_simple: bool = True
    # all words as they were typed
    typed: str = ""

    @property
    def lexemes(self) -> list[str]:
        return lexemes_of(self.positive)

    def relaxed(self, rarity: Sequence[float], share: float) -> str:
        """The query for sections that have most of the words: those that tell `share` of it."""
        order = sorted(range(len(self.terms)), key=lambda n: -rarity[n])[:_MAX_OPTIONAL]
        # of two words, the rarer one
        needed = min(share * sum(rarity[n] for n in order), sum(rarity[n] for n in order[:-1]))
        chosen: list[tuple[int, ...]] = []
        for size in range(1, len(order) + 1):
            for subset in combinations(order, size):
                told = sum(rarity[n] for n in subset)
                if told >= needed and not any(set(few) <= set(subset) for few in chosen):
                    chosen.append(subset)
        ways = [" & ".join(self.terms[n].query for n in subset) for subset in chosen]
        return " & ".join([f"({_either(ways)})", *self.unwanted]) if ways else ""


EMPTY = TsQuery("", "")


def any_of(lexemes: Iterable[str]) -> str:
    """A query for rows that have one of some lexemes."""
    return f"({' | '.join(map(quoted, lexemes))})"


def build(query: Query, words: Sequence[str], reading: Reading = Reading.TYPED) -> TsQuery:
    """Put a query together; `words` are its terms as PostgreSQL reads them, in their order."""
    rest = iter(words)
    alternatives: list[str] = []
    found: dict[str, TsTerm] = {}
    unwanted: list[str] = []
    for terms in query.alternatives:
        last = terms[-1]
        read = [(term, _term(term, next(rest), reading, is_last=term is last)) for term in terms]
        wanted = [
            TsTerm(term.text, part, _defined(term, reading), term.kind is Kind.IDENTIFIER)
            for term, part in read
            if part and not term.negated
        ]
        excluded = [f"!({part})" for term, part in read if part and term.negated]
        # "everything but" would be nearly everything
        if wanted:
            alternatives.append(" & ".join([*(term.query for term in wanted), *excluded]))
            found.update((term.query, term) for term in wanted)
            unwanted += excluded
    return TsQuery(
        match=_either(alternatives),
        positive=_either(found),
        terms=tuple(found.values()),
        unwanted=tuple(unwanted),
        is_simple=len(query.alternatives) == 1,
        typed=" ".join(term.text for term in query.terms if not term.negated),
    )


def _term(term: Term, words: str, reading: Reading, *, is_last: bool) -> str:
    if term.kind is Kind.IDENTIFIER:
        return _identifier(term, words, reading)
    pairs = bigrams(term.text)
    ways = [words] if words else []
    if pairs:
        ways.append(" & ".join(map(quoted, dict.fromkeys(pairs))))
    if term.kind is Kind.WORDS and (beginning := _beginning(term.text, reading, is_last=is_last)):
        ways.append(f"{quoted(beginning)}:*")
    return f"({_either(ways)})" if len(ways) > 1 else f"({ways[0]})" if ways else ""


def _defined(term: Term, reading: Reading) -> str:
    name = term.lexeme or term.text.lower()
    is_prefix = reading is Reading.PREFIX
    return f"{quoted(DEFINES + name)}{':*' if is_prefix else ''}" if " " not in name else ""


def _identifier(term: Term, words: str, reading: Reading) -> str:
    name = quoted(term.lexeme)
    if reading in (Reading.PREFIX, Reading.STEM):
        return f"{name}:*"
    # pg_stat in pg_stat_activity is two words in a row; GitHub is a word, and written as one too
    also = words not in ("", name) and (term.lexeme.isalnum() or reading is Reading.WORDS)
    return f"({name} | ({words}))" if also else name


def _beginning(word: str, reading: Reading, *, is_last: bool) -> str:
    if reading is Reading.PREFIX and is_last:
        return word.lower()
    if reading is Reading.STEM and len(word) > _MIN_STEM:
        return word.lower()[: max(_MIN_STEM, len(word) - 3)]
    return ""


def _either(parts: Iterable[str]) -> str:
    return " | ".join(f"({part})" for part in dict.fromkeys(parts))


def lexemes_of(query: str) -> list[str]:
    return [re.sub(r"''|\\(.)", lambda m: m[1] or "'", x) for x in _LEXEME.findall(query)]


def quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
