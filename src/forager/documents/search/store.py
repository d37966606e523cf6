"""SQL of search. Generations are resolved once; all other statements get their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples, Values, encode_array
from forager.documents.names import LISTING
from forager.documents.search.score import Candidate, SectionPlace
from forager.documents.store.words import kind_lexeme

# document and position of a section
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SearchedGeneration:
    """A generation to search, and how its source is indexed."""

    id: int
    source_id: str
    source_number: int
    config: str
    # as readers know it: 1, 2, 3 of its source
    number: int


@dataclass(frozen=True, slots=True)
class FoundSection:
    """The stored section of a hit."""

    document_id: int
    position: int
    section_id: UUID
    source_id: str
    url: str
    title: str | None
    language: str | None
    heading: str
    anchor: str | None
    content: str
    generation: int
    fetched_at: datetime


async def begin_reading(connection: Connection) -> None:
    """Let all statements of a transaction see the same rows."""
    await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


# --- generations -------------------------------------------------------------------------------

_GENERATIONS: LiteralString = """
    SELECT g.id, s.id AS source_id, s.number AS source_number,
           coalesce(s.text_config, 'simple') AS config, g.number
      FROM sources s
      JOIN generations g ON g.source_id = s.id
     WHERE s.deleted_at IS NULL
       AND (%(source)s::text IS NULL OR s.id = %(source)s
            OR starts_with(s.id, %(source)s || '@'))
       AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
"""


async def select_published(
    connection: Connection, source_id: str | None, user_id: UUID | None
) -> list[SearchedGeneration]:
    """The published generations; `python` also stands for `python@3.12` and `python@3.13`."""
    return await Rows(connection, SearchedGeneration).all(
        f"{_GENERATIONS} AND g.id = s.published_generation ORDER BY g.id",
        {"source": source_id, "user_id": user_id},
    )


async def select_once_published(
    connection: Connection, ids: Sequence[int], source_id: str | None, user_id: UUID | None
) -> list[SearchedGeneration]:
    """The given generations, without those that readers never saw."""
    return await Rows(connection, SearchedGeneration).all(
        f"""
        {_GENERATIONS}
           AND g.id = ANY(%(ids)s)
           AND g.state IN ('published', 'retired')
           AND g.published_at IS NOT NULL
         ORDER BY g.id
        """,
        {"ids": list(ids), "source": source_id, "user_id": user_id},
    )


async def source_exists(connection: Connection, source_id: str, user_id: UUID | None) -> bool:
    """Whether the owner has a source of this name, in any version."""
    return await Tuples(connection).exists(
        """
        SELECT FROM sources
         WHERE (id = %(source)s OR starts_with(id, %(source)s || '@'))
           AND deleted_at IS NULL
           AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
        """,
        {"source": source_id, "user_id": user_id},
    )


# --- terms of the query --------------------------------------------------------------------------


async def select_term_queries(
    connection: Connection, configs: Sequence[str], texts: Sequence[str]
) -> dict[str, list[str]]:
    """For each configuration, each text as the tsquery of its words one after the other."""
    return await Tuples(connection).as_dict(
        """
        SELECT config,
               array_agg(phraseto_tsquery(config::regconfig, translate(term, '<>', '  '))::text
                         ORDER BY place)
          FROM unnest(%s::text[]) AS c (config),
               unnest(%s::text[]) WITH ORDINALITY AS t (term, place)
         GROUP BY config
        """,
        (list(configs), list(texts)),
    )


# --- the two tiers -----------------------------------------------------------------------------

# A subquery with LIMIT in WHERE is not turned into a join: each match is looked up in the index
# of the manifest, and only as many as are needed. The sum keeps the planner from one descent per
# generation.
_LISTED: LiteralString = """
    (SELECT true
       FROM generation_documents m
      WHERE m.document_id = s.document_id
        AND m.generation_id + 0 = ANY(%(generations)s)
      LIMIT 1)
"""
_LISTED_BELOW: LiteralString = """
    (SELECT true
       FROM generation_documents m
       JOIN documents d ON d.id = m.document_id
      WHERE m.document_id = s.document_id
        AND m.generation_id + 0 = ANY(%(generations)s)
        AND starts_with(d.path, %(path)s)
      LIMIT 1)
"""


_IN_HEADINGS: LiteralString = "s.head_tsv @@ %(match)s::tsquery"
_IN_TEXTS: LiteralString = "s.tsv @@ %(match)s::tsquery AND NOT s.head_tsv @@ %(match)s::tsquery"
# Nothing is changed by setting no weights: a large vector is read from its file once, not for every
# term. Each term has its own expression: a subquery over all of them takes several times as long.
_CANDIDATES: LiteralString = """
    WITH found AS MATERIALIZED (
        SELECT s.document_id, s.position, s.head_tsv,
               setweight(s.tsv, 'A', '{{}}'::text[]) AS tsv
          FROM section_search s
         WHERE {matches} AND {listed}
         LIMIT %(cap)s
    )
    SELECT f.document_id, f.position,
           ARRAY[{ranks}]::real[],
           ARRAY[{heads}]::boolean[],
           length(f.tsv),
           ARRAY[{defines}]::boolean[],
           f.head_tsv @@ %(listing)s::tsquery,
           ts_rank_cd('{{0.3, 0.3, 0.5, 1}}', f.tsv, %(all)s::tsquery)
      FROM found f
"""
_RANK: LiteralString = "ts_rank('{{0.2, 0.3, 0.5, 1}}', f.tsv, (%(terms)s::text[])[{}]::tsquery)"
_HEAD: LiteralString = "f.head_tsv @@ (%(terms)s::text[])[{}]::tsquery"
_DEFINES: LiteralString = "f.head_tsv @@ (%(defined)s::text[])[{}]::tsquery"


async def select_candidates(
    connection: Connection,
    match: str,
    generations: Sequence[int],
    *,
    terms: Sequence[str],
    defined: Sequence[str],
    path: str | None,
    in_headings: bool,
    cap: int,
) -> list[Candidate]:
    """At most `cap` sections that match, with what they are scored by, in no particular order.

    They are ranked by each of the `terms`; `defined` are the queries for their definitions.
    """
    statement = _CANDIDATES.format(
        matches=_IN_HEADINGS if in_headings else _IN_TEXTS,
        listed=_LISTED if path is None else _LISTED_BELOW,
        ranks=_each(_RANK, len(terms)),
        heads=_each(_HEAD, len(terms)),
        defines=_each(_DEFINES, len(defined)),
    )
    # planned for each query: the best plan depends on how common its words are
    cursor = await connection.execute(
        statement,
        {
            "match": match,
            "terms": list(terms),
            "generations": list(generations),
            "path": path,
            "cap": cap,
            "defined": list(defined),
            "all": " & ".join(terms),
            "listing": f"'{kind_lexeme(LISTING)}'",
        },
        prepare=False,
    )
    return [Candidate(*row) for row in await cursor.fetchall()]


def _each(expression: LiteralString, count: int) -> LiteralString:
    """An expression for each place in an array."""
    places: list[LiteralString] = [expression.format(place + 1) for place in range(count)]
    return ", ".join(places)


async def select_visible(
    connection: Connection,
    keys: Sequence[Key],
    generations: Sequence[int],
    *,
    path: str | None,
    marks: str,
) -> set[Key]:
    """Those of the sections that readers of the generations see, below the path.

    `marks` is a query for the marks of their language and kind, or empty.
    """
    cursor = await connection.execute(
        f"""
        SELECT s.document_id, s.position
          FROM unnest(%(documents)s::bigint[], %(positions)s::integer[])
               AS k (document_id, position)
          JOIN section_search s USING (document_id, position)
         WHERE {_LISTED if path is None else _LISTED_BELOW}
           AND (%(marks)s = '' OR s.tsv @@ %(marks)s::tsquery)
        """,
        {
            "documents": [key[0] for key in keys],
            "positions": [key[1] for key in keys],
            "generations": list(generations),
            "path": path,
            "marks": marks,
        },
    )
    return {(document, position) for document, position in await cursor.fetchall()}


async def select_places(
    connection: Connection, keys: Sequence[Key], generations: Sequence[int]
) -> dict[Key, SectionPlace]:
    """The pages of sections, and how their texts begin."""
    found = await Made(connection, SectionPlace).all(
        """
        SELECT c.document_id, c.position, c.heading, c.level, left(c.content, 1000) AS beginning,
               d.source_id,
               coalesce(d.title, '') AS title, d.url, coalesce(d.language, '') AS language,
               (SELECT max(l.position) FROM sections l WHERE l.document_id = d.id) AS last_position,
               coalesce((SELECT max(i.pages)
                           FROM inbound_links i
                          WHERE i.document_id = d.id AND i.generation_id = ANY(%s)), 0) AS inlinks,
               coalesce(p.heading, '') AS parent
          FROM unnest(%s::bigint[], %s::integer[]) AS k (document_id, position)
          JOIN sections c USING (document_id, position)
          JOIN documents d ON d.id = c.document_id
          LEFT JOIN sections p ON p.id = c.parent_id
        """,
        (
            list(generations),
            encode_array("bigint", [key[0] for key in keys]),
            encode_array("int", [key[1] for key in keys]),
        ),
    )
    return {(row.document_id, row.position): row for row in found}


async def select_matched_terms(
    connection: Connection, keys: Sequence[Key], terms: Sequence[str]
) -> dict[Key, list[bool]]:
    """Which of the terms are in each section."""
    cursor = await connection.execute(
        """
        SELECT s.document_id, s.position,
               ARRAY(SELECT s.tsv @@ term::tsquery OR s.head_tsv @@ term::tsquery
                       FROM unnest(%s::text[]) WITH ORDINALITY AS t (term, place) ORDER BY place)
          FROM unnest(%s::bigint[], %s::integer[]) AS k (document_id, position)
          JOIN section_search s USING (document_id, position)
        """,
        (list(terms), [key[0] for key in keys], [key[1] for key in keys]),
    )
    return {(document, position): has for document, position, has in await cursor.fetchall()}


async def select_word_counts(
    connection: Connection, generations: Sequence[int], words: Sequence[str]
) -> dict[int, dict[str, int]]:
    """For each generation, the counted sections with each word; of all of them under ""."""
    cursor = await connection.execute(
        """
        SELECT generation_id, word, sections
          FROM search_words
         WHERE generation_id = ANY(%s) AND NOT is_spelled AND word = ANY(%s)
        """,
        (list(generations), ["", *words]),
    )
    counts: dict[int, dict[str, int]] = {}
    for generation, word, sections in await cursor.fetchall():
        counts.setdefault(generation, {})[word] = sections
    return counts


async def select_spelled(
    connection: Connection, generations: Sequence[int], words: Sequence[str]
) -> set[str]:
    """Those of the words that headings of the generations have."""
    found = await Values(connection).all(
        """
        SELECT DISTINCT word
          FROM search_words
         WHERE generation_id = ANY(%s) AND is_spelled AND word = ANY(%s)
        """,
        (list(generations), list(words)),
    )
    return set(found)


# --- hits ----------------------------------------------------------------------------------------


async def select_sections(
    connection: Connection, keys: Sequence[Key], generations: Sequence[int]
) -> dict[Key, FoundSection]:
    """Found sections by their key; those that are no longer readable are missing."""
    found = await Rows(connection, FoundSection).all(
        """
        SELECT c.document_id, c.position, c.id AS section_id, d.source_id, d.url, d.title,
               d.language, c.heading, c.anchor, c.content, g.number AS generation,
               m.fetched_at
          FROM unnest(%s::bigint[], %s::integer[]) AS k (document_id, position)
          JOIN sections c USING (document_id, position)
          JOIN documents d ON d.id = c.document_id
          JOIN generation_documents m ON m.document_id = d.id AND m.generation_id = ANY(%s)
          JOIN generations g ON g.id = m.generation_id
        """,
        ([key[0] for key in keys], [key[1] for key in keys], list(generations)),
    )
    return {(row.document_id, row.position): row for row in found}


async def mark_matches(
    connection: Connection,
    texts: Sequence[str],
    configs: Sequence[str],
    queries: Sequence[str],
    options: str,
) -> list[str]:
    """The texts with matches between the two marks that `options` names."""
    return await Values(connection).all(
        """
        SELECT ts_headline(config::regconfig, body, query::tsquery, %s)
          FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY
               AS t (config, body, query, place)
         ORDER BY place
        """,
        (options, list(configs), list(texts), list(queries)),
    )
