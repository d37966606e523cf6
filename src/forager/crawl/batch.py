"""A batch: visits that are settled together, in one transaction. A commit is the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import psycopg

from forager.archive import store as archive_store
from forager.archive.inventory import growth_of
from forager.archive.segment import ArchiveRef
from forager.archive.writer import ArchiveWriter
from forager.crawl import store
from forager.crawl.discovery import Discovered, Discovery
from forager.crawl.ledger import OUT_OF_SCOPE, REMARKS
from forager.crawl.options import CrawlOptions
from forager.crawl.settlement import Outcome, Postponed, Settlement
from forager.crawl.state import CrawlState
from forager.db.database import Connection
from forager.errors import ForagerError
from forager.jobs.context import JobContext


class BatchRefused(ForagerError):
    """PostgreSQL refused something in a batch; `culprits` are the keys of its pages."""

    def __init__(self, culprits: dict[bytes, str]) -> None:
        super().__init__(f"PostgreSQL refused {len(culprits)} pages")
        self.culprits = culprits


@dataclass(slots=True)
class Batch:
    """What one commit writes."""

    settled: list[Settlement] = field(default_factory=list)
    postponed: list[Postponed] = field(default_factory=list)
    discovered: Discovered = field(default_factory=Discovered)


class Committer:
    """Makes batches of visits, and commits them behind the lease."""

    def __init__(
        self,
        context: JobContext,
        options: CrawlOptions,
        state: CrawlState,
        discovery: Discovery,
        archive: ArchiveWriter,
    ) -> None:
        self._context = context
        self._options = options
        self._state = state
        self._discovery = discovery
        self._archive = archive

    def assemble(self, visits: Sequence[Settlement | Postponed]) -> Batch:
        """Enter visits into the ledger and judge what they found. Nothing is written yet."""
        batch = Batch()
        for visit in visits:
            if isinstance(visit, Postponed):
                batch.postponed.append(visit)
            else:
                self._enter(visit, batch)
        self._state.next_seq = self._discovery.next_seq
        return batch

    def _enter(self, settled: Settlement, batch: Batch) -> None:
        ledger = self._state.ledger
        ledger.settle(settled.outcome, settled.reason)
        ledger.bytes_fetched += settled.size or 0
        for reason, links in settled.out_of_scope.items():
            ledger.note(OUT_OF_SCOPE, reason, links)
        for remark in settled.remarks:
            ledger.note(REMARKS, remark)
        self._state.depth = max(self._state.depth, settled.entry.depth)
        batch.settled.append(settled)
        if self._options.follows_links_at(settled.entry.depth):
            self._discovery.follow(settled.entry, settled.links, batch.discovered)
        if settled.found:
            self._discovery.meet(settled.found, batch.discovered)

    async def write(self, batch: Batch) -> None:
        """Archive first, then everything else in one transaction, in one round trip."""
        refs = await self._write_archive(batch.settled)
        try:
            async with self._context.commit() as connection:
                await self._write_rows(connection, batch, refs)
        except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, UnicodeError) as error:
            culprits = await self._find_culprits(batch)
            if not culprits:
                raise
            raise BatchRefused(culprits) from error

    async def _write_archive(self, settled: Sequence[Settlement]) -> list[ArchiveRef | None]:
        written = iter(await self._archive.write([s.frame for s in settled if s.frame]))
        return [next(written) if s.frame else None for s in settled]

    async def _write_rows(
        self, connection: Connection, batch: Batch, refs: Sequence[ArchiveRef | None]
    ) -> None:
        job_id = self._context.lease.job_id
        found = batch.discovered
        if found.revived:
            await store.delete_visited(connection, job_id, found.revived)
        if batch.settled or found.excluded:
            settled = [*batch.settled, *found.excluded]
            await store.insert_visited(
                connection, job_id, settled, [*refs, *(None for _ in found.excluded)]
            )
        if batch.settled:
            await store.delete_entries(connection, job_id, [s.entry for s in batch.settled])
        if batch.postponed:
            await store.postpone_entries(connection, job_id, batch.postponed)
        if found.entries:
            await store.insert_entries(connection, job_id, found.entries)
        if growth := growth_of(ref for ref in refs if ref is not None):
            await archive_store.grow_segments(connection, growth)
        await self._write_state(connection, job_id)

    async def _write_state(self, connection: Connection, job_id: UUID) -> None:
        await store.update_state(connection, job_id, self._state.values())
        percentage = self._state.ledger.percentage(self._options.max_pages)
        await store.update_progress(connection, job_id, percentage)

    async def _find_culprits(self, batch: Batch) -> dict[bytes, str]:
        """Try the pages one by one, and take everything back: only the guilty are wanted."""
        job_id = self._context.lease.job_id
        culprits: dict[bytes, str] = {}
        async with self._context.database.transaction() as connection:
            for settled in batch.settled:
                entries = [e for e in batch.discovered.entries if e.parent == settled.entry.key]
                excluded = [
                    s for s in batch.discovered.excluded if s.entry.parent == settled.entry.key
                ]
                try:
                    async with connection.transaction(force_rollback=True):
                        rows = [settled, *excluded]
                        await store.insert_visited(connection, job_id, rows, [None] * len(rows))
                        if entries:
                            await store.insert_entries(connection, job_id, entries)
                except (psycopg.Error, UnicodeError) as error:
                    culprits[settled.entry.key] = str(error).strip()
        return culprits

    # --- the end of a crawl ------------------------------------------------------------------

    async def fail_redirect_loops(self, keys: Sequence[bytes]) -> None:
        """URLs that only redirect to each other lead to no page at all."""
        if not keys:
            return
        for _ in keys:
            self._state.ledger.resettle(
                Outcome.DUPLICATE, Outcome.FAILED, "redirect", "redirect_loop"
            )
        job_id = self._context.lease.job_id
        async with self._context.commit() as connection:
            await store.fail_visited(
                connection, job_id, keys, reason="redirect_loop", detail="redirects in a loop"
            )
            await self._write_state(connection, job_id)
