"""Clean-up of documents: old and abandoned generations go, with what only they needed.

It never races a running crawl: a source whose job is running waits for another time, and a job
that starts waits for the chunk that is being deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from forager.db.database import Connection, Database
from forager.documents.store import removal
from forager.logs import get_logger
from forager.services.service import Service, isolated

log = get_logger("documents")

INTERVAL = 600.0
FLUSH_INTERVAL = 20.0
CHUNK = 500
# readers may have a cursor into a retired generation for this long
READER_GRACE = 3600.0
# how long a failed job can be retried from its last commit
RETRY_WINDOW = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The numbers of deleted rows of one run."""

    generations: int = 0
    documents: int = 0
    sources: int = 0


class DocumentCleanup:
    """Deletes generations and documents that no reader can reach; it resumes after a crash."""

    def __init__(
        self, database: Database, *, reader_grace: float = READER_GRACE, chunk: int = CHUNK
    ) -> None:
        self._database = database
        self._reader_grace = reader_grace
        self._chunk = chunk

    def services(self) -> list[Service]:
        """The background services that delete rows of old generations."""
        return [
            Service(name="document cleanup", every=INTERVAL, step=self.run_once, first_within=20.0),
            Service(name="text search flush", every=FLUSH_INTERVAL, step=self.flush),
        ]

    async def flush(self) -> None:
        await self._database.run(removal.flush_pending_lists)

    async def run_once(self) -> CleanupResult:
        """Delete a part of what is abandoned; the answer says how much."""
        await self._abandon()
        removed = await self.delete_abandoned()
        if removed != CleanupResult():
            log.info(
                "old pages deleted",
                generations=removed.generations,
                documents=removed.documents,
                sources=removed.sources,
            )
        return removed

    async def _abandon(self) -> None:
        async with self._database.connection() as connection:
            await removal.cleanup_old_generations(connection, self._reader_grace)
            left_behind = await removal.select_left_behind(connection, RETRY_WINDOW)
        for generation_id, job_id in left_behind:
            with isolated(f"generation {generation_id}"):
                await self._abandon_left_behind(generation_id, job_id)

    async def _abandon_left_behind(self, generation_id: int, job_id: UUID) -> None:
        """The generation and what its job remembered go together, or a retry would mix them."""
        async with self._database.transaction() as connection:
            await removal.lock_job(connection, job_id)
            if await removal.abandon_left_behind(connection, generation_id, RETRY_WINDOW):
                await removal.forget_failed_crawl(connection, job_id)

    async def delete_abandoned(self, source_id: str | None = None) -> CleanupResult:
        """Delete what is abandoned, of one source or of all."""
        abandoned = await self._database.run(removal.select_abandoned, source_id)
        generations = documents = 0
        for generation_id, source in abandoned:
            with isolated(f"generation {generation_id} of {source}"):
                gone, deleted = await self._delete_generation(generation_id, source)
                generations += gone
                documents += deleted
        return CleanupResult(generations, documents, await self._delete_empty_sources())

    async def _delete_empty_sources(self) -> int:
        empty = await self._database.run(removal.select_empty_sources)
        deleted = 0
        for source_id in empty:
            async with self._database.transaction() as connection:
                if await removal.lock_idle_source(connection, source_id):
                    deleted += await removal.delete_empty_source(connection, source_id)
        return deleted

    async def _delete_generation(self, generation_id: int, source_id: str) -> tuple[bool, int]:
        """Whether it is gone, and how many documents went with it."""
        documents = 0
        while True:
            async with self._database.transaction() as connection:
                if not await removal.lock_idle_source(connection, source_id):
                    return False, documents
                lines = await removal.delete_lines(connection, generation_id, self._chunk)
                if not lines:
                    await removal.delete_generation(connection, generation_id)
                    return True, documents
                documents += await self._delete_unused(connection, source_id, lines)

    async def _delete_unused(
        self, connection: Connection, source_id: str, lines: list[tuple[int, bytes | None]]
    ) -> int:
        unused = await removal.delete_unused_documents(connection, [line[0] for line in lines])
        if unused:
            await removal.delete_sections(connection, unused)
        link_sets = {line[1] for line in lines if line[1] is not None}
        if link_sets:
            await removal.delete_unused_link_sets(connection, source_id, list(link_sets))
        return len(unused)
