"""What search finds a section by: one SQL expression, used wherever search rows are written."""

from __future__ import annotations

from typing import LiteralString

from forager.db.text_search import primary

# PostgreSQL's parser never makes a word that begins with it
MARK = "§"

# Search rows of a relation `section`. `%(config)s` is the source's text search configuration;
# names are identifiers as they are typed and marks are what filters go by, one per line. Weights:
# A for the heading, B for the context (the title of the page and the headings above), D for the
# text. OFFSET keeps the planner from making the vector of a heading twice.
SEARCH_ROWS: LiteralString = """
    SELECT document_id, position,
           head_tsv || array_to_tsvector(string_to_array(head_names, E'\\n')) || marks_tsv,
           setweight(head_tsv, 'A') || setweight(to_tsvector(config, context), 'B')
               || to_tsvector(config, content)
               || array_to_tsvector(string_to_array(names, E'\\n')) || marks_tsv
      FROM section,
           LATERAL (SELECT %(config)s::text::regconfig AS config) c,
           LATERAL (SELECT to_tsvector(config, head) AS head_tsv,
                           array_to_tsvector(string_to_array(marks, E'\\n')) AS marks_tsv
                    OFFSET 0) v
"""


def source_lexeme(source_number: int) -> str:
    """The word that is in every search row of a source, and in no other."""
    return f"{MARK}{source_number}"


def kind_lexeme(kind: str) -> str:
    return f"{MARK}{kind}"


def language_lexeme(language: str) -> str:
    """The mark of a language, by its primary subtag: `en` for `en-US`."""
    return f"{MARK}language:{primary(language)}"
