"""Identifiers of code as typed, so that `asyncio.gather` is found as one word."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_IDENTIFIERS = 1_000  # of one section
MAX_LENGTH = 100
_MAX_TEXT = 256 * 1024

# Only what a plain word search would take apart. Every loop is bounded by what it may stand on.
_IDENTIFIER = re.compile(
    r"""
      (?<![\w-]) --? [A-Za-z][\w]*+ (?:-[\w]++)*+           # --no-verify, -Wall
    | @?[A-Za-z_$][\w$]*+ (?: (?: \.|::|->|\# ) ~?[A-Za-z_$][\w$]*+ )++
                                                             # asyncio.gather, std::vector, a->b
    | @ [A-Za-z_][\w]*+                                      # @dataclass
    | \$ [A-Za-z_][\w]*+                                     # $HOME
    | [A-Za-z][A-Za-z0-9]*+ (?:-[A-Za-z0-9]++)++             # X-Header-Name, multi-part words
    | [A-Za-z0-9]*_[\w]*+                                    # snake_case, __init__
    | [a-z]++[A-Z][\w]*+ | [A-Z][a-z0-9]++[A-Z][\w]*+        # camelCase, PascalCase
    | [A-Za-z][A-Za-z0-9]*+(?=\(\))                          # call()
    """,
    re.VERBOSE,
)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)|https?://[^\s)>\]]+")
_PARTS = re.compile(r"\.|::|->|#")
_PUNCTUATION = ".,;:!?`*\"'"
_MAX_WORD = 200  # characters of a word that is remembered
_MAX_READ = 1_000  # of one that is looked at: what has no blanks for longer is no text


def identifier_lexemes(markdown: str) -> list[str]:
    """Identifiers in lower case, each once, in order; a dotted one is followed by its last part."""
    text = _LINK_TARGET.sub("]", markdown[:_MAX_TEXT]).replace("\\_", "_")
    found: dict[str, None] = {}
    for word in dict.fromkeys(text.split()):
        bare = word.strip(_PUNCTUATION)
        if bare.isalpha() and bare[1:].islower():  # a word of prose, as most are
            continue
        lexemes = _remembered(word) if len(word) <= _MAX_WORD else _lexemes_of(word[:_MAX_READ])
        if lexemes:
            found.update(dict.fromkeys(lexemes))
            if len(found) >= MAX_IDENTIFIERS:
                break
    return list(found)[:MAX_IDENTIFIERS]


def _lexemes_of(word: str) -> tuple[str, ...]:
    """The lexemes of all identifiers in what stands between two blanks."""
    return tuple(
        lexeme
        for match in _IDENTIFIER.finditer(word)
        for lexeme in _lexemes(match[0].lower().rstrip("-."))
    )


# a site's pages repeat their words
_remembered = lru_cache(maxsize=32_768)(_lexemes_of)


def _lexemes(identifier: str) -> list[str]:
    if not 2 <= len(identifier) <= MAX_LENGTH or not any(map(str.isalpha, identifier)):
        return []
    parts = _PARTS.split(identifier)
    if len(parts) > 1 and max(map(len, parts)) == 1:  # e.g, i.e, U.S
        return []
    last = parts[-1]
    return [identifier, last] if len(parts) > 1 and len(last) > 1 else [identifier]
