"""SQL of the words of a generation: how common they are, and how they are spelled.

Counts are of a sample where a generation is large: only the order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from forager.db.database import Connection

# sections whose words are counted
SAMPLE = 5_000
# sections whose headings are read for spelling
HEADINGS = 200_000
# words that a misspelled one is compared with
MAX_SIMILAR = 10_000
# a word in fewer sections is rare, and need not be counted
_MIN_SECTIONS = 3

# as a query of its own, because `ts_stat` reads one
_SAMPLED: LiteralString = """
    SELECT s.tsv
      FROM generation_documents m
      JOIN section_search s ON s.document_id = m.document_id
     WHERE m.generation_id = %s AND hashint8(m.document_id) & 1023 < %s
"""
_COUNT: LiteralString = """
    INSERT INTO search_words (generation_id, is_spelled, word, sections)
    SELECT %(generation)s, false, word, ndoc
      FROM ts_stat(format(%(sampled)s, %(generation)s, %(share)s))
     WHERE ndoc >= %(fewest)s
     UNION ALL
    SELECT %(generation)s, false, '', %(sections)s
"""
# Names have no positions in a vector; its other lexemes are stems, which no one types.
_SPELL: LiteralString = """
    INSERT INTO search_words (generation_id, is_spelled, word, sections)
    WITH document AS MATERIALIZED (
        SELECT document_id
          FROM generation_documents
         WHERE generation_id = %(generation)s AND hashint8(document_id) & 1023 < %(share)s
    )
    SELECT %(generation)s, true, word, count(*)
      FROM (SELECT w.lexeme AS word
              FROM document JOIN section_search s USING (document_id), unnest(s.head_tsv) w
             WHERE w.positions IS NULL
             UNION ALL
            SELECT w.lexeme
              FROM document JOIN sections s USING (document_id),
                   unnest(to_tsvector('simple', s.heading)) w
             UNION ALL
            SELECT w.lexeme
              FROM document JOIN documents d ON d.id = document_id,
                   unnest(to_tsvector('simple', coalesce(d.title, ''))) w) spelled
     WHERE length(word) BETWEEN 4 AND 40 AND word ~ '^[^§0-9]'
     GROUP BY word
"""


async def count_words(connection: Connection, generation_id: int) -> None:
    """Count the words of a generation; again, if they were counted before."""
    await delete_words(connection, generation_id)
    sections = await _count_sections(connection, generation_id)
    share = _share(SAMPLE, sections)
    await connection.execute(
        _COUNT,
        {
            "generation": generation_id,
            "sampled": _SAMPLED,
            "share": share,
            "fewest": _MIN_SECTIONS,
            "sections": sections * share // 1024,
        },
    )
    await connection.execute(
        _SPELL, {"generation": generation_id, "share": _share(HEADINGS, sections)}
    )


def _share(wanted: int, sections: int) -> int:
    """Of 1,024 documents, how many have about as many sections as wanted."""
    return max(1, min(1024, 1024 * wanted // max(1, sections)))


async def _count_sections(connection: Connection, generation_id: int) -> int:
    cursor = await connection.execute(
        """
        SELECT count(*)
          FROM generation_documents m
          JOIN section_search s ON s.document_id = m.document_id
         WHERE m.generation_id = %s
        """,
        (generation_id,),
    )
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


async def delete_words(connection: Connection, generation_id: int) -> None:
    await connection.execute("DELETE FROM search_words WHERE generation_id = %s", (generation_id,))


async def select_similar(
    connection: Connection, generations: Sequence[int], word: str
) -> dict[str, int]:
    """Words of about this length with the same first letter, and how many headings have them."""
    cursor = await connection.execute(
        """
        SELECT word, sum(sections)::int
          FROM search_words
         WHERE generation_id = ANY(%(generations)s)
           AND is_spelled
           AND word >= %(first)s AND word < %(next)s
           AND length(word) BETWEEN %(length)s - 2 AND %(length)s + 2
         GROUP BY word
         ORDER BY sum(sections) DESC, word
         LIMIT %(limit)s
        """,
        {
            "generations": list(generations),
            "first": word[0],
            "next": chr(ord(word[0]) + 1),
            "length": len(word),
            "limit": MAX_SIMILAR,
        },
    )
    return dict(await cursor.fetchall())
