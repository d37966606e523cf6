"""The calls of the library that are about sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forager.archive.options import archive_options
from forager.checks import Report, Topic, checks_in, run_checks
from forager.crawl.declared import AppliedSource, apply_plan, declared_sources, plan_sources
from forager.db.database import Database
from forager.documents import checks, publication, sources
from forager.documents.export import export_folder, open_export
from forager.documents.generation import Generation, Source
from forager.settings import Settings


class SourceCalls:
    """Sources: what there is, what readers see, and files of sources."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    async def sources(self) -> list[Source]:
        """All sources, by name."""
        page = await sources.list_sources(self._database)
        found = page.items
        while page.next_cursor is not None:
            page = await sources.list_sources(self._database, cursor=page.next_cursor)
            found += page.items
        return found

    async def publish(
        self, source: str, number: int | None = None, *, force: bool = False
    ) -> Generation:
        """Publish a generation (default: the newest); one that was refused needs force.

        Readers see it at once. Raises NotAllowed for a generation that the quality gate held back.
        """
        name = await self._only_version(source)
        return await publication.publish(self._database, name, number, force=force)

    async def _only_version(self, source: str) -> str:
        return (await sources.get_source(self._database, source)).id

    async def roll_back(self, source: str, number: int | None = None) -> Generation:
        """Publish an older generation again (default: the one before).

        The next refresh publishes as usual. Raises NotAllowed if no older generation is kept.
        """
        name = await self._only_version(source)
        return await publication.roll_back(self._database, name, number)

    async def apply(self, declared: Path | str | Sequence[dict[str, Any]]) -> list[AppliedSource]:
        """Create or update the sources of a file (YAML, TOML, JSON) or a list, and enqueue crawls.

        Applying the same again changes nothing:

            store.apply([{"name": "flask", "version": "3.1", "url": "https://flask.example/3.1/"}])
        """
        planned = await plan_sources(self._database, self._settings, declared_sources(declared))
        return await apply_plan(self._database, self._settings, planned)

    async def export(
        self, source: str, folder: Path | str, *, number: int | None = None, replace: bool = False
    ) -> int:
        """Write a markdown file for each page of a source into a new folder; return how many."""
        wanted = await open_export(self._database, await self._only_version(source), number)
        return await export_folder(self._database, wanted, Path(folder), replace=replace)

    async def check(self, source: str) -> Report:
        """Compare published pages with their archived responses to find lost content."""
        storage = archive_options(self._settings).open()
        pages = await checks.read_source(self._database, storage, source)
        return await run_checks(checks_in(checks, topic=Topic.SOURCES), pages)
