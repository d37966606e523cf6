"""SQL of inbound links: how many pages of a generation link to each of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import zstandard

from forager.db.database import Connection
from forager.extract.keys import url_key

# link sets that are read; those of a larger site are a sample
SAMPLE = 20_000
# a set whose links are longer belongs to no page that people read
MAX_BYTES = 2**20


async def count_inbound_links(connection: Connection, generation_id: int) -> None:
    """Count the links between the pages of a generation; again, if they were counted before."""
    await delete_inbound_links(connection, generation_id)
    counts: Counter[str] = Counter()
    async for links, pages in _link_sets(connection, generation_id):
        for url in set(links.split("\n")):
            counts[url] += pages
    counts.pop("", None)
    await connection.execute(
        """
        INSERT INTO inbound_links (generation_id, document_id, pages)
        SELECT m.generation_id, m.document_id, max(c.pages)
          FROM unnest(%s::bytea[], %s::integer[]) AS c (url_hash, pages)
          JOIN generation_documents m ON m.generation_id = %s AND m.url_hash = c.url_hash
         GROUP BY m.generation_id, m.document_id
        """,
        ([url_key(url) for url in counts], list(counts.values()), generation_id),
    )


async def _link_sets(connection: Connection, generation_id: int) -> AsyncIterator[tuple[str, int]]:
    """Sets of links, and how many pages have each."""
    unpacker = zstandard.ZstdDecompressor()
    async with connection.cursor(name="link_sets") as cursor:
        await cursor.execute(
            """
            SELECT l.links, m.pages
              FROM (SELECT link_set, count(*)::int AS pages
                      FROM generation_documents
                     WHERE generation_id = %(generation)s AND link_set IS NOT NULL
                     GROUP BY link_set
                     ORDER BY link_set
                     LIMIT %(sample)s) m
              JOIN generations g ON g.id = %(generation)s
              JOIN link_sets l ON l.source_id = g.source_id AND l.hash = m.link_set
            """,
            {"generation": generation_id, "sample": SAMPLE},
        )
        async for packed, pages in cursor:
            try:
                text = unpacker.decompress(packed, max_output_size=MAX_BYTES).decode()
            except (zstandard.ZstdError, UnicodeDecodeError):
                continue
            yield text, pages


async def delete_inbound_links(connection: Connection, generation_id: int) -> None:
    await connection.execute("DELETE FROM inbound_links WHERE generation_id = %s", (generation_id,))
