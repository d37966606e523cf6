"""SQL of search. Generations are resolved once; every other statement gets them as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class SearchedGeneration:
    """A generation to look in, and how its source is indexed."""

    id: int
    source_id: str
    source_number: int
    config: str
    # as readers know it: 1, 2, 3 of its source
    number: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A section that matches; `live` counts those that were ranked together with it."""

    document_id: int
    position: int
    score: float
    live: int


@dataclass(frozen=True, slots=True)
class FoundSection:
    """What a hit shows, as it was crawled."""

    document_id: int
    position: int
    section_id: UUID
    source_id: str
    url: str
    title: str | None
    heading: str
    anchor: str | None
    content: str
    generation: int
    fetched_at: datetime


async def begin_reading(connection: Connection) -> None:
    """Let all statements of a transaction see the same rows."""
    await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


# --- where to look -----------------------------------------------------------------------------

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
    cursor = connection.cursor(row_factory=class_row(SearchedGeneration))
    await cursor.execute(
        f"{_GENERATIONS} AND g.id = s.published_generation ORDER BY g.id",
        {"source": source_id, "user_id": user_id},
    )
    return await cursor.fetchall()


async def select_once_published(
    connection: Connection, ids: Sequence[int], source_id: str | None, user_id: UUID | None
) -> list[SearchedGeneration]:
    """Those of the given generations that readers see or saw."""
    cursor = connection.cursor(row_factory=class_row(SearchedGeneration))
    await cursor.execute(
        f"""
        {_GENERATIONS}
           AND g.id = ANY(%(ids)s)
           AND g.state IN ('published', 'retired')
           AND g.published_at IS NOT NULL
         ORDER BY g.id
        """,
        {"ids": list(ids), "source": source_id, "user_id": user_id},
    )
    return await cursor.fetchall()


async def source_exists(connection: Connection, source_id: str, user_id: UUID | None) -> bool:
    cursor = await connection.execute(
        """
        SELECT FROM sources
         WHERE (id = %(source)s OR starts_with(id, %(source)s || '@'))
           AND deleted_at IS NULL
           AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
        """,
        {"source": source_id, "user_id": user_id},
    )
    return await cursor.fetchone() is not None


# --- what to look for --------------------------------------------------------------------------


async def select_term_queries(
    connection: Connection, configs: Sequence[str], texts: Sequence[str]
) -> dict[str, list[str]]:
    """For each configuration, each text as the tsquery of its words one after the other."""
    cursor = await connection.execute(
        """
        SELECT config, array_agg(phraseto_tsquery(config::regconfig, term)::text ORDER BY place)
          FROM unnest(%s::text[]) AS c (config),
               unnest(%s::text[]) WITH ORDINALITY AS t (term, place)
         GROUP BY config
        """,
        (list(configs), list(texts)),
    )
    return {row[0]: row[1] for row in await cursor.fetchall()}


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
# 1: long texts count a little less. 32: a rank is between 0 and 1, so the tiers cannot overlap.
_PAGE: LiteralString = """
    SELECT document_id, position, score, live
      FROM (SELECT document_id, position, score, count(*) OVER () AS live FROM ranked) counted
     WHERE score < %(score)s
        OR (score = %(score)s AND (document_id, position) > (%(document)s, %(position)s))
     ORDER BY score DESC, document_id, position
     LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Among:
    """Where to look: at these sections, the most promising first, and at whole documents."""

    sections: Sequence[tuple[int, int]]
    documents: Sequence[int]


@dataclass(frozen=True, slots=True)
class Tier:
    """What a tier is asked: `match` finds, `rank` (the same without the source) orders."""

    match: str
    rank: str
    generations: Sequence[int]
    path: str | None
    cap: int
    after: tuple[float, int, int]
    limit: int
    # everywhere if it is None
    among: Among | None = None


_EVERYWHERE: LiteralString = "section_search"
# OFFSET keeps conditions out of it: they would lead to the index of all words
_AMONG: LiteralString = """
    (SELECT c.document_id, c.position, c.head_tsv, c.tsv
       FROM (SELECT document_id, position, min(place) AS place
               FROM (SELECT document_id, position, place
                       FROM unnest(%(documents)s::bigint[], %(positions)s::bigint[])
                            WITH ORDINALITY AS offered (document_id, position, place)
                      UNION ALL
                     SELECT document_id, position, 0
                       FROM section_search
                      WHERE document_id = ANY(%(whole)s::bigint[])) e
              GROUP BY document_id, position) k
       JOIN section_search c USING (document_id, position)
      ORDER BY k.place
     OFFSET 0)
"""


async def select_heading_hits(connection: Connection, tier: Tier) -> list[Ranked]:
    """Sections whose headings match."""
    listed = _LISTED if tier.path is None else _LISTED_BELOW
    rows = _EVERYWHERE if tier.among is None else _AMONG
    return await _select_tier(
        connection,
        tier,
        f"""
        WITH ranked AS (
            SELECT document_id, position,
                   1 + ts_rank(head_tsv, %(rank)s::tsquery, 33)::float8 AS score
              FROM (SELECT s.document_id, s.position, s.head_tsv
                      FROM {rows} s
                     WHERE s.head_tsv @@ %(match)s::tsquery AND {listed}
                     LIMIT %(cap)s) s
        )
        {_PAGE}
        """,
    )


async def select_text_hits(connection: Connection, tier: Tier) -> list[Ranked]:
    """Sections that match, but not by their headings alone."""
    listed = _LISTED if tier.path is None else _LISTED_BELOW
    rows = _EVERYWHERE if tier.among is None else _AMONG
    return await _select_tier(
        connection,
        tier,
        f"""
        WITH ranked AS (
            SELECT document_id, position, ts_rank(tsv, %(rank)s::tsquery, 33)::float8 AS score
              FROM (SELECT s.document_id, s.position, s.tsv
                      FROM {rows} s
                     WHERE s.tsv @@ %(match)s::tsquery
                       AND NOT s.head_tsv @@ %(match)s::tsquery
                       AND {listed}
                     LIMIT %(cap)s) s
        )
        {_PAGE}
        """,
    )


async def _select_tier(
    connection: Connection, tier: Tier, statement: LiteralString
) -> list[Ranked]:
    score, document, position = tier.after
    among = tier.among or Among((), ())
    cursor = connection.cursor(row_factory=class_row(Ranked))
    # planned anew for each query: how common its words are decides how it is best answered
    await cursor.execute(
        statement,
        {
            "match": tier.match,
            "rank": tier.rank,
            "generations": list(tier.generations),
            "path": tier.path,
            "cap": tier.cap,
            "score": score,
            "document": document,
            "position": position,
            "limit": tier.limit,
            "documents": [key[0] for key in among.sections],
            "positions": [key[1] for key in among.sections],
            "whole": list(among.documents),
        },
        prepare=False,
    )
    return await cursor.fetchall()


# --- what is shown -----------------------------------------------------------------------------


async def select_sections(
    connection: Connection, keys: Sequence[tuple[int, int]], generations: Sequence[int]
) -> dict[tuple[int, int], FoundSection]:
    cursor = connection.cursor(row_factory=class_row(FoundSection))
    await cursor.execute(
        """
        SELECT c.document_id, c.position, c.id AS section_id, d.source_id, d.url, d.title,
               c.heading, c.anchor, c.content, g.number AS generation, m.fetched_at
          FROM unnest(%s::bigint[], %s::integer[]) AS k (document_id, position)
          JOIN sections c USING (document_id, position)
          JOIN documents d ON d.id = c.document_id
          JOIN generation_documents m ON m.document_id = d.id AND m.generation_id = ANY(%s)
          JOIN generations g ON g.id = m.generation_id
        """,
        ([key[0] for key in keys], [key[1] for key in keys], list(generations)),
    )
    return {(row.document_id, row.position): row for row in await cursor.fetchall()}


async def mark_matches(
    connection: Connection,
    texts: Sequence[str],
    configs: Sequence[str],
    queries: Sequence[str],
    options: str,
) -> list[str]:
    """The texts with what matches between the two marks that `options` names."""
    cursor = await connection.execute(
        """
        SELECT ts_headline(config::regconfig, body, query::tsquery, %s)
          FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY
               AS t (config, body, query, place)
         ORDER BY place
        """,
        (options, list(configs), list(texts), list(queries)),
    )
    return [row[0] for row in await cursor.fetchall()]
