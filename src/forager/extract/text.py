"""Text that PostgreSQL accepts, and readable text."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
# control characters that terminals interpret, without line breaks and tabs
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")


def scalar_values(text: str) -> str:
    """Pair up surrogates and replace the lone ones by U+FFFD, as browsers do."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable(text: str) -> str:
    """The text without NUL and lone surrogates, which PostgreSQL refuses."""
    if "\0" in text:
        text = text.replace("\0", "")
    return scalar_values(text)


def storable_message(text: str, length: int) -> str:
    """A message of at most this length, with a mark for each character that PostgreSQL refuses."""
    marked = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return marked.encode("utf-8", "replace").decode("utf-8")[:length]


def readable(text: str) -> str:
    """The storable text, with a space for every control character."""
    text = storable(text)
    return text if text.isprintable() else _CONTROL.sub(" ", text)


def collapse(text: str) -> str:
    """The text with every run of white space as one space, and none at the ends."""
    return " ".join(text.split())


def clip(text: str, limit: int) -> tuple[str, bool]:
    """The first `limit` characters, and whether anything was cut off."""
    return (text, False) if len(text) <= limit else (text[:limit], True)


def name_set(text: str) -> frozenset[str]:
    """A set of names that is written as one line of text."""
    return frozenset(text.split())
