"""The parsed query as PostgreSQL's own: one text for finding, one for marking what matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from forager.documents.search.query import Kind, Query, Term
from forager.documents.store.vectors import source_lexeme

_LEXEME = re.compile(r"'((?:[^'\\]|''|\\.)*)'")


@dataclass(frozen=True, slots=True)
class TsQuery:
    """A query under one text search configuration; empty if nothing in it can be looked for."""

    match: str
    # what to mark, without what must not be there
    positive: str

    @property
    def lexemes(self) -> list[str]:
        return [
            re.sub(r"''|\\(.)", lambda m: m[1] or "'", x) for x in _LEXEME.findall(self.positive)
        ]

    def within(self, source_numbers: Sequence[int]) -> str:
        """The query for some sources only, which every search row names."""
        marks = " | ".join(_quoted(source_lexeme(number)) for number in source_numbers)
        return f"({self.match}) & ({marks})"


def build(query: Query, words: Sequence[str], *, as_typed: bool = True) -> TsQuery:
    """Put a query together; `words` are its terms as PostgreSQL reads them, in their order.

    Identifiers are looked for as they were typed, or by the words they are made of.
    """
    rest = iter(words)
    alternatives, positive = [], []
    for terms in query.alternatives:
        read = [(term, _term(term, next(rest), as_typed=as_typed)) for term in terms]
        wanted = [part for term, part in read if part and not term.negated]
        unwanted = [f"!({part})" for term, part in read if part and term.negated]
        # "everything but" would be nearly everything
        if wanted:
            alternatives.append(" & ".join([*wanted, *unwanted]))
            positive += wanted
    return TsQuery(_either(alternatives), _either(positive))


def _term(term: Term, words: str, *, as_typed: bool) -> str:
    if term.kind is not Kind.IDENTIFIER:
        return f"({words})" if words else ""
    name = _quoted(term.lexeme)
    # pg_stat in pg_stat_activity is two words in a row; GitHub is a word, and written as one too
    also = words not in ("", name) and (term.lexeme.isalnum() or not as_typed)
    return f"({name} | ({words}))" if also else name


def _either(parts: Iterable[str]) -> str:
    return " | ".join(f"({part})" for part in dict.fromkeys(parts))


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
