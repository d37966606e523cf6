"""Lists of names, written as words."""

from __future__ import annotations


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())
