"""Small corpora to search in, written by the statements of a crawl, generation by generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from built_site import WHEN
from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.documents import publication
from forager.documents.names import new_sections, section_names
from forager.documents.page import IndexedDocument, ManifestPage, NewPage
from forager.documents.store import building, removal, words
from forager.documents.store.words import count_words
from forager.extract.keys import url_key
from forager.extract.sections import Section

# heading and text
Sections = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a test site; its default title is the first heading."""

    sections: Sections
    title: str | None = None
    anchor: str = "part"
    language: str | None = None

    def document(self) -> IndexedDocument:
        title = self.title or self.sections[0][0]
        # text before the first heading has the title as heading
        sections = [
            Section(heading or title, int(heading != ""), f"{self.anchor}-{n}", content, n, None)
            for n, (heading, content) in enumerate(self.sections)
        ]
        digest = sha256(repr((title, self.sections)).encode()).digest()
        names = section_names(title, sections)
        return IndexedDocument(title, self.language, sections, digest, "1", names)


Pages = Mapping[str, Page] | Mapping[str, Sections]


class Corpus:
    """A database to which generations of sources are added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def publish(
        self, source_id: str, pages: Pages, *, config: str = "english", owner: UUID | None = None
    ) -> int:
        """Build a generation and let readers see it; its id."""
        generation_id = await self.build(source_id, pages, config=config, owner=owner)
        async with self._database.connection() as connection:
            await connection.execute(
                "UPDATE generations SET state = 'retired' WHERE id = %s", (generation_id,)
            )
            await count_words(connection, generation_id)
        await publication.publish(self._database, source_id, force=True)
        return generation_id

    async def build(
        self, source_id: str, pages: Pages, *, config: str = "english", owner: UUID | None = None
    ) -> int:
        """Build a generation that readers do not see yet."""
        listed = [
            ManifestPage(_new_page(f"https://{source_id}{path}", page), None)
            for path, page in pages.items()
        ]
        async with self._database.transaction() as connection:
            number = await _source(connection, source_id, owner)
            await building.set_config(connection, source_id, config)
            generation_id = await building.insert_generation(connection, source_id, new_id(), None)
            new = [line.page for line in listed]
            sections = [new_sections(page) for page in new]
            await words.insert_documents(connection, source_id, number, config, new, sections)
            await building.list_pages(connection, source_id, generation_id, listed)
            await connection.execute(
                "UPDATE generations SET pages = %s WHERE id = %s", (len(listed), generation_id)
            )
        return generation_id

    async def delete(self, source_id: str) -> None:
        async with self._database.connection() as connection:
            await removal.hide_source(connection, source_id)


async def _source(connection: Connection, source_id: str, owner: UUID | None) -> int:
    source = await building.upsert_source(
        connection,
        source_id,
        base_url=f"https://{source_id}/",
        user_id=owner,
        kind="selftest",
        payload={},
    )
    return source.number


def _new_page(url: str, page: Page | Sections) -> NewPage:
    page = page if isinstance(page, Page) else Page(page)
    return NewPage(url=url, key=url_key(url), document=page.document(), fetched_at=WHEN)
