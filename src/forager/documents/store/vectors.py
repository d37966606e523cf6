"""What search finds a section by: two SQL expressions over the columns of a section.

`%(config)s` is the source's text search configuration, `%(mark)s` its lexeme.
"""

from __future__ import annotations

from typing import LiteralString

# PostgreSQL's parser never makes a word that begins with it
SOURCE_MARK = "§"

_CONFIG: LiteralString = "%(config)s::text::regconfig"
_SOURCE: LiteralString = "array_to_tsvector(%(mark)s::text[])"
_LEXEMES: LiteralString = "array_to_tsvector(string_to_array(lexemes, E'\\n'))"

HEAD_VECTOR: LiteralString = f"to_tsvector({_CONFIG}, heading) || {_SOURCE}"
SECTION_VECTOR: LiteralString = f"""
    setweight(to_tsvector({_CONFIG}, heading), 'A') || to_tsvector({_CONFIG}, content)
    || {_LEXEMES} || {_SOURCE}
"""


def source_lexeme(source_number: int) -> str:
    """The word that is in every search row of a source, and in no other."""
    return f"{SOURCE_MARK}{source_number}"
