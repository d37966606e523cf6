"""What search finds a section by: one SQL expression, used wherever search rows are written."""

from __future__ import annotations

from typing import LiteralString

# PostgreSQL's parser never makes a word that begins with it
SOURCE_MARK = "§"

# Search rows of a relation `section`. `%(config)s` is the source's text search configuration,
# `%(mark)s` its lexeme; names are identifiers as they are typed, one per line. OFFSET keeps the
# planner from making the vector of a heading twice.
SEARCH_ROWS: LiteralString = """
    SELECT document_id, position,
           head_tsv || array_to_tsvector(string_to_array(head_names, E'\\n')) || source,
           setweight(head_tsv, 'A') || to_tsvector(config, content)
               || array_to_tsvector(string_to_array(names, E'\\n')) || source
      FROM section,
           LATERAL (SELECT %(config)s::text::regconfig AS config) c,
           LATERAL (SELECT to_tsvector(config, head) AS head_tsv,
                           array_to_tsvector(%(mark)s::text[]) AS source
                    OFFSET 0) v
"""


def source_lexeme(source_number: int) -> str:
    """The word that is in every search row of a source, and in no other."""
    return f"{SOURCE_MARK}{source_number}"
