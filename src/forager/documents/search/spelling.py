"""Spelling: what a word that is nowhere may have been meant to be, among words of headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forager.db.database import Connection
from forager.documents.search.query import Kind, Query
from forager.documents.store import words

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
