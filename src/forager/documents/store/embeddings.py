"""SQL of embeddings. Their table depends on pgvector and the model: it is created on first use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack
from typing import LiteralString

from psycopg import sql

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values

# vectors that are worth an index: reading as many takes some 20 ms
MANY = 50_000


# of a page `m` in a generation
_HAS_SECTIONS: LiteralString = "EXISTS (SELECT FROM sections c WHERE c.document_id = m.document_id)"
_HAS_NO_VECTORS: LiteralString = (
    "NOT EXISTS (SELECT FROM section_vectors v WHERE v.document_id = m.document_id)"
)


@dataclass(frozen=True, slots=True)
class SectionText:
    """The texts of a section that are embedded."""

    document_id: int
    position: int
    title: str
    heading: str
    beginning: str


async def has_pgvector(connection: Connection) -> bool:
    """Whether the server can install the extension for vectors."""
    return await Tuples(connection).exists(
        "SELECT FROM pg_available_extensions WHERE name = 'vector'"
    )


async def select_model(connection: Connection) -> str | None:
    """The model whose vectors are stored."""
    # to_regclass() may not see a table that was created while this transaction waited for a lock
    return await Values(connection).first(
        """
        SELECT obj_description(oid, 'pg_class')
          FROM pg_class
         WHERE relname = 'section_vectors' AND pg_table_is_visible(oid)
        """
    )


async def lock_vectors(connection: Connection) -> None:
    """Wait for the transactions of other workers that store vectors."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('section_vectors'))")


async def create_vectors(connection: Connection, model: str, dimensions: int) -> None:
    """Make an empty table for a model; vectors of another model are dropped."""
    await connection.execute(
        "UPDATE generations SET embedded_at = NULL WHERE embedded_at IS NOT NULL"
    )
    await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    await connection.execute("DROP TABLE IF EXISTS section_vectors")
    await connection.execute(
        sql.SQL(
            """
            CREATE TABLE section_vectors (
                document_id bigint NOT NULL,
                position    integer NOT NULL,
                embedding   halfvec({}) NOT NULL,
                PRIMARY KEY (document_id, position)
            )
            """
        ).format(sql.Literal(dimensions))
    )
    await connection.execute(
        sql.SQL("COMMENT ON TABLE section_vectors IS {}").format(sql.Literal(model))
    )


async def select_unembedded(
    connection: Connection, documents: int, *, after: int, is_empty: bool = False
) -> list[SectionText]:
    """Sections of some published documents that have no vectors; of any, if there is no table.

    In the order of documents, `after` one of them: to find the next ones, those before it are not
    read again.
    """
    complete: LiteralString = "" if is_empty else "WHERE g.embedded_at IS NULL"
    missing: LiteralString = "" if is_empty else f"AND {_HAS_NO_VECTORS}"
    return await Rows(connection, SectionText).all(
        f"""
        SELECT c.document_id, c.position, coalesce(d.title, '') AS title, c.heading,
               left(c.content, 2000) AS beginning
          FROM (SELECT m.document_id
                  FROM generation_documents m
                 WHERE m.document_id > %(after)s
                   AND m.generation_id IN (
                        SELECT g.id
                          FROM sources s
                          JOIN generations g ON g.id = s.published_generation
                          {complete})
                   AND {_HAS_SECTIONS}
                   {missing}
                 ORDER BY m.document_id
                 LIMIT %(documents)s) k
          JOIN documents d ON d.id = k.document_id
          JOIN sections c ON c.document_id = k.document_id
         ORDER BY c.document_id, c.position
        """,
        {"documents": documents, "after": after},
    )


async def mark_embedded(connection: Connection) -> None:
    """Remember the published generations without missing vectors, so as not to look again."""
    await connection.execute(
        f"""
        UPDATE generations g
           SET embedded_at = now()
          FROM sources s
         WHERE s.published_generation = g.id
           AND g.embedded_at IS NULL
           AND NOT EXISTS (
                SELECT FROM generation_documents m
                 WHERE m.generation_id = g.id AND {_HAS_SECTIONS} AND {_HAS_NO_VECTORS})
        """
    )


async def can_be_embedded(connection: Connection) -> bool:
    """Whether published sections may lack vectors, which this PostgreSQL can store."""
    is_missing = await Tuples(connection).exists(
        """
        SELECT FROM sources s
          JOIN generations g ON g.id = s.published_generation
         WHERE g.embedded_at IS NULL
        """
    )
    return is_missing and await has_pgvector(connection)


async def count_unembedded(
    connection: Connection, generations: Sequence[int], *, is_empty: bool
) -> tuple[int, int]:
    """The pages of these generations that have no vectors, and all of their pages."""
    missing: LiteralString = "" if is_empty else f"AND {_HAS_NO_VECTORS}"
    ids = list(generations)
    pending = await Values(connection).all(
        "SELECT id FROM generations WHERE id = ANY(%s) AND (embedded_at IS NULL OR %s)",
        (ids, is_empty),
    )
    if not pending:
        return 0, 0
    cursor = await connection.execute(
        f"""
        SELECT count(*) FILTER (
                WHERE m.generation_id = ANY(%s) AND {_HAS_SECTIONS} {missing}), count(*)
          FROM generation_documents m
         WHERE m.generation_id = ANY(%s)
        """,
        (pending, ids),
    )
    [(count, total)] = await cursor.fetchall()
    return count, total


async def insert_vectors(
    connection: Connection, keys: Sequence[tuple[int, int]], vectors: Sequence[Sequence[float]]
) -> None:
    """Store the vectors of sections, unless another worker has stored those of their document."""
    known = set(
        await Values(connection).all(
            "SELECT document_id FROM section_vectors WHERE document_id = ANY(%s)",
            ([key[0] for key in keys],),
        )
    )
    async with connection.cursor().copy("COPY section_vectors FROM STDIN (FORMAT binary)") as copy:
        await copy.write(
            _COPY_HEADER
            + b"".join(
                _copied_row(*key, vector)
                for key, vector in zip(keys, vectors, strict=True)
                if key[0] not in known
            )
            + _COPY_END
        )


# PostgreSQL's binary format, with pgvector's of half-precision vectors: their text takes ten times
# as long to read
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"


def _copied_row(document_id: int, position: int, vector: Sequence[float]) -> bytes:
    size = len(vector)
    return pack(f">hiqiiihh{size}e", 3, 8, document_id, 4, position, 4 + 2 * size, size, 0, *vector)


async def delete_orphaned_vectors(connection: Connection, limit: int) -> None:
    """Delete vectors of documents that are gone, at most `limit` documents at a time."""
    await connection.execute(
        """
        DELETE FROM section_vectors
         WHERE document_id IN (
            SELECT v.document_id
              FROM section_vectors v
             WHERE v.position = 0
               AND NOT EXISTS (SELECT FROM documents d WHERE d.id = v.document_id)
             LIMIT %s
         )
        """,
        (limit,),
    )


async def create_index_if_large(connection: Connection) -> None:
    """Index the vectors once reading all of them takes too long; at once, which is faster."""
    is_large = await Values(connection).one(
        """
        SELECT count(*) >= %s AND to_regclass('section_vectors_idx') IS NULL
          FROM (SELECT FROM section_vectors LIMIT %s) v
        """,
        (MANY, MANY),
    )
    if is_large:
        # an index that is given up after a minute would be started again, without end
        await connection.execute(
            "SELECT set_config(name, '0', true) FROM pg_settings"
            " WHERE name IN ('statement_timeout', 'transaction_timeout')"
        )
        await connection.execute(
            "CREATE INDEX section_vectors_idx ON section_vectors"
            " USING hnsw (embedding halfvec_cosine_ops)"
        )


# pages whose sections are compared without the index
FEW_PAGES = 2_000
_EXACT: LiteralString = """
    SELECT v.document_id, v.position, 1 - (v.embedding <=> %(vector)s::halfvec)
      FROM (SELECT DISTINCT m.document_id
              FROM generation_documents m
              JOIN documents d ON d.id = m.document_id
             WHERE m.generation_id = ANY(%(generations)s) AND starts_with(d.path, %(path)s)) m
      JOIN section_vectors v USING (document_id)
     ORDER BY v.embedding <=> %(vector)s::halfvec
     LIMIT %(limit)s
"""
# the index offers the nearest, and each is looked up in the manifest
_INDEXED: LiteralString = """
    SELECT v.document_id, v.position, 1 - (v.embedding <=> %(vector)s::halfvec)
      FROM section_vectors v
     WHERE (SELECT true
              FROM generation_documents m
              JOIN documents d ON d.id = m.document_id
             WHERE m.document_id = v.document_id
               AND m.generation_id + 0 = ANY(%(generations)s)
               AND starts_with(d.path, %(path)s)
             LIMIT 1)
     ORDER BY v.embedding <=> %(vector)s::halfvec
     LIMIT %(limit)s
"""


async def select_nearest(
    connection: Connection,
    vector: Sequence[float],
    generations: Sequence[int],
    path: str | None,
    limit: int,
) -> dict[tuple[int, int], float]:
    """The sections of these generations that are nearest to a vector, and their similarity.

    Few pages are compared one by one: the index offers the nearest of all sources, among which
    those of a small source may be missing.
    """
    is_indexed = await Values(connection).one(
        """
        SELECT to_regclass('section_vectors_idx') IS NOT NULL
               AND (SELECT count(*) > %(few)s
                      FROM (SELECT FROM generation_documents
                             WHERE generation_id = ANY(%(generations)s)
                             LIMIT %(few)s + 1) m),
               set_config('hnsw.iterative_scan', 'relaxed_order', true),
               set_config('hnsw.ef_search', '100', true)
        """,
        {"generations": list(generations), "few": FEW_PAGES},
    )
    cursor = await connection.execute(
        _INDEXED if is_indexed else _EXACT,
        {
            "generations": list(generations),
            "path": path or "/",
            "vector": str(list(vector)),
            "limit": limit,
        },
        prepare=False,
    )
    return {(document, position): nearness async for document, position, nearness in cursor}
