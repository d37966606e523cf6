"""SQL of the sections that a search engine is told of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.rows import class_row, scalar_row

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class IndexedSection:
    """A section with the words that PostgreSQL finds it by."""

    document_id: int
    position: int
    source: str
    source_number: int
    config: str
    path: str
    url: str
    title: str | None
    heading: str
    head_words: str
    words: str


async def select_sizes(connection: Connection, document_ids: Sequence[int]) -> dict[int, int]:
    """About how many bytes the sections of each document are; those that are gone are left out."""
    cursor = await connection.execute(
        """
        SELECT d.id, coalesce(sum(pg_column_size(s.tsv) + 500), 0)::bigint
          FROM documents d
          LEFT JOIN section_search s ON s.document_id = d.id
         WHERE d.id = ANY(%s)
         GROUP BY d.id
         ORDER BY d.id
        """,
        (list(document_ids),),
    )
    return dict(await cursor.fetchall())


async def select_indexed(
    connection: Connection, document_ids: Sequence[int]
) -> list[IndexedSection]:
    cursor = connection.cursor(row_factory=class_row(IndexedSection))
    await cursor.execute(
        """
        SELECT s.document_id, s.position, d.source_id AS source, o.number AS source_number,
               coalesce(o.text_config, 'simple') AS config, d.path, d.url, d.title, c.heading,
               setweight(s.head_tsv, 'D')::text AS head_words,
               setweight(s.tsv, 'D')::text AS words
          FROM section_search s
          JOIN sections c USING (document_id, position)
          JOIN documents d ON d.id = s.document_id
          JOIN sources o ON o.id = d.source_id
         WHERE s.document_id = ANY(%s)
         ORDER BY s.document_id, s.position
        """,
        (list(document_ids),),
    )
    return await cursor.fetchall()


async def select_next_ids(connection: Connection, after: int, limit: int) -> list[int]:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        "SELECT id FROM documents WHERE id > %s ORDER BY id LIMIT %s", (after, limit)
    )
    return await cursor.fetchall()


async def count_after(connection: Connection, after: int) -> int:
    cursor = await connection.execute("SELECT count(*) FROM documents WHERE id > %s", (after,))
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])
