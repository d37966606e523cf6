"""SQL of sections: their rows and search vectors, how common their words are, their spelling.

Counts are of a sample where a generation is large: only the order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, LiteralString
from urllib.parse import urlsplit

from psycopg.rows import dict_row

from forager.db.database import Connection
from forager.db.rows import RowArrays, Tuples, Values
from forager.db.text_search import readable_words
from forager.documents.names import NewSection
from forager.documents.page import NewPage, indexed_document
from forager.extract.languages import primary_language
from forager.index.store import enqueue_changes

# sections whose words are counted
SAMPLE = 5_000
# sections whose headings are read for spelling
HEADINGS = 200_000
# words that a misspelled one is compared with
MAX_SIMILAR = 10_000
# a word in fewer sections is rare, and need not be counted
_MIN_SECTIONS = 3

# as a separate query, because `ts_stat` reads one
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


def _words_of(text: LiteralString) -> LiteralString:
    return f"tsvector_to_array(to_tsvector('simple', {readable_words(text)}))"


# Names have no positions in a vector; its other lexemes are stems, which no one types. OFFSET keeps
# the planner from testing each occurrence of a word.
_SPELL: LiteralString = f"""
    INSERT INTO search_words (generation_id, is_spelled, word, sections)
    WITH document AS MATERIALIZED (
        SELECT document_id
          FROM generation_documents
         WHERE generation_id = %(generation)s AND hashint8(document_id) & 1023 < %(share)s
    )
    SELECT %(generation)s, true, word, sections
      FROM (SELECT word, count(*) AS sections
              FROM (SELECT w.lexeme AS word
                      FROM document JOIN section_search s USING (document_id),
                           unnest(s.head_tsv) w
                     WHERE w.positions IS NULL
                     UNION ALL
                    SELECT unnest({_words_of("s.heading")})
                      FROM document JOIN sections s USING (document_id)
                     UNION ALL
                    SELECT unnest({_words_of("d.title")})
                      FROM document JOIN documents d ON d.id = document_id) spelled
             GROUP BY word
            OFFSET 0) counted
     WHERE length(word) BETWEEN 4 AND 40 AND word ~ '^[^§0-9]'
"""


async def count_words(connection: Connection, generation_id: int) -> None:
    """Count the words of a generation; again, if they were counted before."""
    await delete_derived(connection, generation_id, "search_words")
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
    return await Values(connection, int).one(
        """
        SELECT count(*)
          FROM generation_documents m
          JOIN section_search s ON s.document_id = m.document_id
         WHERE m.generation_id = %s
        """,
        (generation_id,),
    )


# tables that are computed from the pages of a complete generation
Derived = Literal["search_words", "inbound_links", "near_duplicates"]


async def delete_derived(connection: Connection, generation_id: int, table: Derived) -> None:
    """Delete the rows of a generation from a table that was computed from its pages."""
    await connection.execute(f"DELETE FROM {table} WHERE generation_id = %s", (generation_id,))


async def select_similar(
    connection: Connection, generations: Sequence[int], word: str
) -> dict[str, int]:
    """Words of about this length with the same first letter, and how many headings have them."""
    return await Tuples(connection).as_dict(
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


# PostgreSQL's parser never makes a word that begins with it
MARK = "§"

# Search rows of a relation `section`. `%(config)s` is the source's text search configuration;
# names are identifiers as they are typed and marks are what filters go by, one per line. Weights:
# A for the heading, B for the context (the title of the page and the headings above), D for the
# text. OFFSET keeps the planner from making the vector of a heading twice.
_SEARCH_ROWS: LiteralString = f"""
    SELECT document_id, position,
           head_tsv || array_to_tsvector(string_to_array(head_names, E'\\n')) || marks_tsv,
           setweight(head_tsv, 'A')
               || setweight(to_tsvector(config, {readable_words("context")}), 'B')
               || to_tsvector(config, {readable_words("content")})
               || array_to_tsvector(string_to_array(names, E'\\n')) || marks_tsv
      FROM section,
           LATERAL (SELECT %(config)s::text::regconfig AS config) c,
           LATERAL (SELECT to_tsvector(config, {readable_words("head")}) AS head_tsv,
                           array_to_tsvector(string_to_array(marks, E'\\n')) AS marks_tsv
                    OFFSET 0) v
"""


def source_lexeme(source_number: int) -> str:
    """The word that is in every search row of a source, and in no other."""
    return f"{MARK}{source_number}"


def kind_lexeme(kind: str) -> str:
    """The lexeme that marks sections of a kind in the search column."""
    return f"{MARK}{kind}"


def language_lexeme(language: str) -> str:
    """The mark of a language, by its primary subtag: `en` for `en-US`."""
    return f"{MARK}language:{primary_language(language)}"


async def select_sizes(connection: Connection, document_ids: Sequence[int]) -> dict[int, int]:
    """About how many bytes the sections of each document are; those that are gone are left out."""
    return await Tuples(connection).as_dict(
        """
        SELECT d.id, coalesce(sum(octet_length(s.content) + 500), 0)::bigint
          FROM documents d
          LEFT JOIN sections s ON s.document_id = d.id
         WHERE d.id = ANY(%s)
         GROUP BY d.id
         ORDER BY d.id
        """,
        (list(document_ids),),
    )


async def select_indexed(
    connection: Connection, document_ids: Sequence[int]
) -> list[dict[str, Any]]:
    """Sections with their texts."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(
        """
        SELECT s.document_id, s.position, d.source_id AS source, o.number AS source_number,
               d.path, d.url, d.title, s.heading, s.content
          FROM sections s
          JOIN documents d ON d.id = s.document_id
          JOIN sources o ON o.id = d.source_id
         WHERE s.document_id = ANY(%s)
         ORDER BY s.document_id, s.position
        """,
        (list(document_ids),),
    )
    return await cursor.fetchall()


async def insert_documents(
    connection: Connection,
    source_id: str,
    source_number: int,
    config: str,
    pages: Sequence[NewPage],
    sections: Sequence[Sequence[NewSection]],
) -> None:
    """Write documents with the sections of each, and search rows; those that exist stay."""
    await connection.execute(
        _INSERT_DOCUMENTS,
        {
            "source": source_id,
            "config": config,
            **_document_columns(pages),
            **_section_columns(pages, sections, source_lexeme(source_number)),
        },
    )


_DOCUMENTS = RowArrays(
    "p", url_hash="bytea", content_hash="bytea", extractor_version="text", url="text",
    path="text", title="text", language="text", simhash="bigint",
)  # fmt: skip
_SECTIONS = RowArrays(
    "s", place="bigint", id="uuid", parent_id="uuid", heading="text", level="bigint",
    anchor="text", anchors="text", content="text", position="bigint", head="text", context="text",
    head_names="text", names="text", marks="text",
)  # fmt: skip

# A page may have had this very content before its base: then document and sections are there.
_INSERT_DOCUMENTS = f"""
    WITH page AS (
        SELECT *
          FROM {_DOCUMENTS.unnest} WITH ORDINALITY AS p ({_DOCUMENTS.columns}, place)
    ), written AS (
        INSERT INTO documents (source_id, {_DOCUMENTS.columns})
        SELECT %(source)s, {_DOCUMENTS.columns}
          FROM page
        ON CONFLICT (source_id, url_hash, content_hash, extractor_version) DO NOTHING
        RETURNING id, url_hash
    ), enqueued AS ({enqueue_changes("sections", "SELECT id, NULL::integer FROM written")}
    ), section AS MATERIALIZED (
        SELECT written.id AS document_id, s.*
          FROM {_SECTIONS}
          JOIN page USING (place)
          JOIN written USING (url_hash)
    ), kept AS (
        INSERT INTO sections (
            id, document_id, parent_id, heading, level, anchor, anchors, content, position
        )
        SELECT id, document_id, parent_id, heading, level, anchor, anchors, content, position
          FROM section
    )
    INSERT INTO section_search (document_id, position, head_tsv, tsv)
    {_SEARCH_ROWS}
"""


def _document_columns(pages: Sequence[NewPage]) -> dict[str, Any]:
    return _DOCUMENTS.values(
        pages,
        url_hash="key",
        content_hash="document.content_hash",
        extractor_version="document.extractor_version",
        path=[urlsplit(page.url).path or "/" for page in pages],
        title="document.title",
        language="document.language",
        simhash="document.simhash",
    )


def _section_columns(
    pages: Sequence[NewPage], sections: Sequence[Sequence[NewSection]], source_mark: str
) -> dict[str, Any]:
    places = [place for place, found in enumerate(sections, 1) for _ in found]
    flat = [section for found in sections for section in found]
    languages = [indexed_document(pages[place - 1]).language for place in places]
    return _SECTIONS.values(
        flat,
        place=places,
        anchors=["\n".join(section.anchors) or None for section in flat],
        head_names=["\n".join(section.names.heading) for section in flat],
        names=["\n".join(section.names.section) for section in flat],
        marks=[
            _marks(source_mark, language, section.names.kind)
            for language, section in zip(languages, flat, strict=True)
        ],
    )


def _marks(source_mark: str, language: str | None, kind: str | None) -> str:
    """The lexemes by which search filters sections."""
    lexemes = [source_mark]
    if language:
        lexemes.append(language_lexeme(language))
    if kind:
        lexemes.append(kind_lexeme(kind))
    return "\n".join(lexemes)
