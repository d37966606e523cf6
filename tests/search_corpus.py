"""Small corpora in the real tables, built and published generation by generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlsplit
from uuid import UUID

from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.documents import publication
from forager.documents.search.indexing import SectionToIndex, index_sections

# heading and text
Sections = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a test site; its title is the first heading unless it has one of its own."""

    sections: Sections
    title: str | None = None
    anchor: str | None = "part"


class Corpus:
    """A database to which generations of sources are added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def publish(
        self, source_id: str, pages: Mapping[str, Page | Sections], **options: str | UUID
    ) -> int:
        """Build a generation and let readers see it; its id."""
        generation_id = await self.build(source_id, pages, **options)
        async with self._database.connection() as connection:
            await _complete(connection, generation_id)
        await publication.publish(self._database, source_id)
        return generation_id

    async def build(
        self,
        source_id: str,
        pages: Mapping[str, Page | Sections],
        *,
        config: str | UUID = "english",
        owner: str | UUID | None = None,
    ) -> int:
        """Build a generation that readers do not see yet. A path is the page's whole URL or not."""
        async with self._database.transaction() as connection:
            number = await _upsert_source(connection, source_id, config, owner)
            generation_id = await _insert_generation(connection, source_id)
            for path, page in pages.items():
                page = page if isinstance(page, Page) else Page(page)
                url = path if "//" in path else f"https://{source_id}{path}"
                await _insert_page(
                    connection, source_id, number, str(config), generation_id, url, page
                )
        return generation_id

    async def delete(self, source_id: str) -> None:
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE sources SET deleted_at = now() WHERE id = %s", (source_id,)
            )


async def _upsert_source(
    connection: Connection, source_id: str, config: object, owner: object
) -> int:
    cursor = await connection.execute(
        """
        INSERT INTO sources (id, base_url, kind, payload, text_config, user_id)
        VALUES (%s, %s, 'crawl', '{}', %s, %s)
        ON CONFLICT (id) DO UPDATE SET updated_at = now()
        RETURNING number
        """,
        (source_id, f"https://{source_id}/", config, owner),
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def _insert_generation(connection: Connection, source_id: str) -> int:
    cursor = await connection.execute(
        """
        INSERT INTO generations (source_id, number, job_id)
        SELECT %(id)s, coalesce(max(number), 0) + 1, %(job)s
          FROM generations WHERE source_id = %(id)s
        RETURNING id
        """,
        {"id": source_id, "job": new_id()},
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def _complete(connection: Connection, generation_id: int) -> None:
    await connection.execute(
        "UPDATE generations SET state = 'retired' WHERE id = %s", (generation_id,)
    )


async def _insert_page(
    connection: Connection,
    source_id: str,
    source_number: int,
    config: str,
    generation_id: int,
    url: str,
    page: Page,
) -> None:
    title = page.title or page.sections[0][0]
    key = sha256(url.encode()).digest()
    content_hash = sha256(repr((title, page.sections)).encode()).digest()
    cursor = await connection.execute(
        """
        INSERT INTO documents (source_id, url_hash, content_hash, extractor_version, url, path,
                               title)
        VALUES (%s, %s, %s, '1', %s, %s, %s)
        ON CONFLICT DO NOTHING
        RETURNING id
        """,
        (source_id, key, content_hash, url, urlsplit(url).path, title),
    )
    if (row := await cursor.fetchone()) is not None:
        await _insert_sections(connection, row[0], page, title)
        await index_sections(
            connection,
            source_number,
            config,
            [
                SectionToIndex(row[0], position, heading, content, title)
                for position, (heading, content) in enumerate(page.sections)
            ],
        )
    await connection.execute(
        """
        INSERT INTO generation_documents (generation_id, url_hash, document_id, fetched_at)
        SELECT %s, url_hash, id, now()
          FROM documents
         WHERE source_id = %s AND url_hash = %s AND content_hash = %s
        """,
        (generation_id, source_id, key, content_hash),
    )


async def _insert_sections(
    connection: Connection, document_id: int, page: Page, title: str
) -> None:
    for position, (heading, content) in enumerate(page.sections):
        anchor = page.anchor and f"{page.anchor}-{position}"
        await connection.execute(
            """
            INSERT INTO sections (id, document_id, heading, level, anchor, content, position)
            VALUES (%s, %s, %s, 1, %s, %s, %s)
            """,
            (new_id(), document_id, heading, anchor, content, position),
        )
