"""A batch: visits that are settled together in one transaction, which is the checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from forager.archive.segment import ArchiveRef
from forager.archive.writer import ArchiveWriter, record_growth
from forager.crawl.frontier.discovery import Discovered, Discovery
from forager.crawl.frontier.entry import FrontierEntry
from forager.crawl.ledger import CARRIED_OVER, OUT_OF_SCOPE, REMARKS, RENDERED, CrawlState
from forager.crawl.options import CrawlOptions
from forager.crawl.pages import Pages
from forager.crawl.settlement import Outcome, Postponed, Settlement
from forager.crawl.store import frontier as frontier_rows
from forager.crawl.store import state as state_rows
from forager.crawl.store import visited as visited_rows
from forager.crawl.visit.outcomes import failed
from forager.db.database import Connection
from forager.db.refusals import REFUSALS, isolate_refused
from forager.errors import ErrorKind, GiveUp, StatementTimedOut, error_text
from forager.extract.urls import NormalizedUrl
from forager.jobs.context import JobContext
from forager.logs import get_logger
from forager.metrics.catalog import ERRORS, PAGE_BYTES, PAGES
from forager.render.stats import ShapeStats, upsert_shape_stats
from forager.tracing import span

log = get_logger("crawl")


# a crawl that starts at many places may be sent to many others, but the scope is read at each link
MAX_MORE_SEEDS = 1_000
# sections and characters of a page that may be too many for the time limit of a statement; 50 pages
# have 500 sections
MANY_SECTIONS = 1_000
MANY_CHARACTERS = 500_000


# the origin of one or several rows of a batch
_Part = Settlement | Postponed | FrontierEntry


@dataclass(slots=True)
class Batch:
    """The rows of one commit."""

    settled: list[Settlement] = field(default_factory=list)
    postponed: list[Postponed] = field(default_factory=list)
    discovered: Discovered = field(default_factory=Discovered)


@dataclass(frozen=True, slots=True)
class Committer:
    """Makes batches of visits, and commits them behind the lease."""

    context: JobContext
    options: CrawlOptions
    state: CrawlState
    discovery: Discovery
    archive: ArchiveWriter
    pages: Pages
    on_new_seed: Callable[[NormalizedUrl], None]
    # held during a commit: entries may be visited before they are in the table
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    # keys of entries that the frontier refused; they may be under way all the same
    _refused: set[bytes] = field(default_factory=set, init=False)

    def assemble(self, visits: Sequence[Settlement | Postponed]) -> Batch:
        """Enter visits into the ledger and check what they found. Nothing is written yet."""
        batch = Batch()
        for visit in visits:
            if visit.entry.key in self._refused:
                continue
            if isinstance(visit, Postponed):
                batch.postponed.append(visit)
            else:
                self._enter(visit, batch)
        self.state.next_seq = self.discovery.next_seq
        return batch

    def _enter(self, settled: Settlement, batch: Batch) -> None:
        ledger = self.state.ledger
        ledger.settle(settled.outcome, settled.reason)
        if settled.carried_over and settled.reason:
            ledger.note(CARRIED_OVER, settled.reason)
        if settled.rendered_for is not None:
            ledger.note(RENDERED, settled.rendered_for)
        ledger.bytes_fetched += (settled.size or 0) + settled.loaded_bytes
        for reason, links in settled.out_of_scope.items():
            ledger.note(OUT_OF_SCOPE, reason, links)
        for remark in settled.remarks:
            ledger.note(REMARKS, remark)
        self.state.depth = max(self.state.depth, settled.entry.depth)
        batch.settled.append(settled)
        if settled.new_seed is not None:
            self._add_seed(settled.new_seed)
        if settled.links is not None and self.options.follows_links_at(settled.entry.depth):
            self.discovery.follow(settled.entry, settled.links, batch.discovered)
        if settled.found:
            self.discovery.add(settled.found, batch.discovered)

    def _add_seed(self, seed: NormalizedUrl) -> None:
        scope, seeds = self.discovery.scope, self.state.more_seeds
        if scope.outside(seed) is None or len(seeds) >= MAX_MORE_SEEDS:
            return
        seeds.append(seed)
        scope.add_seed(seed)
        self.on_new_seed(seed)

    async def write(self, batch: Batch) -> None:
        """Archive first, then everything else in one transaction, in one round trip.

        A row that any statement refuses must not poison its batch: it fails, the others stay.
        """
        self.context.memory_mb = self.discovery.memory_mb
        with span("commit", attributes={"pages": len(batch.settled)}):
            async with self.writing:
                await self._write(batch)
        _record([*batch.settled, *batch.discovered.excluded])

    async def _write(self, batch: Batch) -> None:
        refs = await self._write_archive(batch.settled)
        try:
            await self._commit(batch, refs)
        except StatementTimedOut as error:
            large = [page for page in batch.settled if _is_large(page)]
            if not large:
                raise
            # without this, the crawl would fetch the pages again and again after its last commit
            urls = [page.entry.url for page in large]
            log.warning("pages take too long to store", urls=urls, reason=error.message)
            refusal = GiveUp("the page is too large to be stored in time")
            await self._commit(*self._without([(page, refusal) for page in large], batch, refs))
        except REFUSALS:
            refused = await self._find_refused(batch, refs)
            if not refused:
                raise
            log.warning("rows refused by the database", rows=len(refused))
            await self._commit(*self._without(refused, batch, refs))

    async def _commit(self, batch: Batch, refs: Sequence[ArchiveRef | None]) -> None:
        plan = self.pages.plan(batch.settled, refs)
        async with self.context.commit() as connection:
            await self._write_rows(connection, batch, refs)
            await self.write_state(connection)
            await self.pages.write(connection, plan)

    async def _write_archive(self, settled: Sequence[Settlement]) -> list[ArchiveRef | None]:
        written = iter(await self.archive.write([s.frame for s in settled if s.frame]))
        return [next(written) if s.frame else None for s in settled]

    async def _write_rows(
        self, connection: Connection, batch: Batch, refs: Sequence[ArchiveRef | None]
    ) -> None:
        job_id = self.context.lease.job_id
        found = batch.discovered
        if batch.settled or found.excluded:
            settled = [*batch.settled, *found.excluded]
            await visited_rows.insert_visited(
                connection, job_id, settled, [*refs, *(None for _ in found.excluded)]
            )
        if found.revived:
            # after the insert: what a batch refused may be wanted by a later page of the same batch
            await visited_rows.delete_visited(connection, job_id, found.revived)
        if batch.settled:
            await frontier_rows.delete_entries(connection, job_id, [s.entry for s in batch.settled])
        if batch.postponed:
            await frontier_rows.postpone_entries(connection, job_id, batch.postponed)
        if found.entries:
            await frontier_rows.insert_entries(connection, job_id, found.entries)
        stats = {
            s.shape_stats.shape: s.shape_stats for s in batch.settled if s.shape_stats is not None
        }
        await self.write_shape_stats(connection, list(stats.values()))
        await self._track_products(connection, batch.settled)
        await record_growth(connection, [ref for ref in refs if ref is not None])

    async def write_shape_stats(self, connection: Connection, stats: Sequence[ShapeStats]) -> None:
        """Store what rendering gained, for the next crawls of the source."""
        if stats and (source_id := self.context.job.source_id):
            await upsert_shape_stats(connection, source_id, stats)

    async def _track_products(self, connection: Connection, settled: Sequence[Settlement]) -> None:
        """Product pages become tasks in the commit that settles them."""
        urls = [
            s.entry.url
            for s in settled
            if s.is_product and s.outcome in (Outcome.FETCHED, Outcome.UNCHANGED)
        ]
        if urls:
            from forager.tasks.tracking import FoundProduct, track_found  # not for every crawl

            private = self.options.allow_private
            await track_found(
                connection,
                [FoundProduct(url, allow_private=private) for url in urls],
                f"job {self.context.lease.job_id}",
                max_retries=self.context.settings.task_retries,
            )

    async def write_state(self, connection: Connection) -> None:
        """The ledger and where the crawl stands; part of every commit."""
        job_id = self.context.lease.job_id
        await state_rows.update_state(connection, job_id, self.state.values())
        percentage = self.state.ledger.percentage(self.options.page_limit)
        await self.context.update_progress(connection, percentage)

    async def _find_refused(
        self, batch: Batch, refs: Sequence[ArchiveRef | None]
    ) -> list[tuple[_Part, Exception]]:
        """Try parts of the batch and roll everything back, until the guilty ones are known."""
        archived = dict(zip(map(id, batch.settled), refs, strict=True))
        found = batch.discovered
        parts: list[_Part] = [*batch.settled, *found.excluded, *batch.postponed, *found.entries]
        async with self.context.database.transaction() as connection:

            async def attempt(some: Sequence[_Part]) -> None:
                settled = [part for part in some if isinstance(part, Settlement)]
                postponed = [part for part in some if isinstance(part, Postponed)]
                entries = [part for part in some if isinstance(part, FrontierEntry)]
                tried = Batch(settled, postponed, Discovered(entries))
                tried_refs = [archived.get(id(part)) for part in settled]
                async with connection.transaction(force_rollback=True):
                    await self._write_rows(connection, tried, tried_refs)
                    await self.pages.write(connection, self.pages.plan(settled, tried_refs))

            return await isolate_refused(parts, attempt)

    def _without(
        self,
        refused: Sequence[tuple[_Part, Exception]],
        batch: Batch,
        refs: Sequence[ArchiveRef | None],
    ) -> tuple[Batch, list[ArchiveRef | None]]:
        """The batch with what was refused settled as failed."""
        messages = {id(part): error_text(error) for part, error in refused}
        archived = [
            None if id(s) in messages else ref for s, ref in zip(batch.settled, refs, strict=True)
        ]
        found = batch.discovered
        batch.settled = [self._failed(s, messages.get(id(s))) for s in batch.settled]
        found.excluded = [self._failed(s, messages.get(id(s))) for s in found.excluded]
        batch.postponed = [p for p in batch.postponed if id(p) not in messages]
        found.entries = [entry for entry in found.entries if id(entry) not in messages]
        lost = [
            self._lost(part, messages[id(part)])
            for part, _ in refused
            if not isinstance(part, Settlement)
        ]
        batch.settled += lost
        return batch, [*archived, *(None for _ in lost)]

    def _lost(self, part: FrontierEntry | Postponed, message: str) -> Settlement:
        """Settle a URL as failed that the frontier refuses."""
        entry = part if isinstance(part, FrontierEntry) else part.entry
        self._refused.add(entry.key)
        self.state.ledger.settle(Outcome.FAILED, ErrorKind.VALIDATION)
        return failed(entry, ErrorKind.VALIDATION, message)

    def _failed(self, settled: Settlement, message: str | None) -> Settlement:
        if message is None:
            return settled
        self.state.ledger.resettle(
            settled.outcome, Outcome.FAILED, settled.reason, ErrorKind.VALIDATION
        )
        if settled.carried_over and settled.reason:
            self.state.ledger.note(CARRIED_OVER, settled.reason, -1)
        return failed(settled.entry, ErrorKind.VALIDATION, message, settled.http_status)


def _is_large(settled: Settlement) -> bool:
    sections = settled.document.sections if settled.document else ()
    size = sum(len(section.content) for section in sections)
    return len(sections) > MANY_SECTIONS or size > MANY_CHARACTERS


def _record(settled: Sequence[Settlement]) -> None:
    """Record the settled URLs of a commit in the metrics."""
    for each in settled:
        PAGES.add(each.outcome)
        if each.size:
            PAGE_BYTES.add(amount=each.size)
        if each.outcome is Outcome.FAILED:
            ERRORS.add(_kind(each))


def _kind(settled: Settlement) -> ErrorKind:
    """The kind of a failure; servers have more statuses than a chart has colors."""
    if settled.reason in set(ErrorKind):
        return ErrorKind(settled.reason)
    status = settled.http_status or 0
    if status < 400:  # an error that is served as a page, a circle of redirects
        return ErrorKind.VALIDATION
    return ErrorKind.HTTP_CLIENT if status < 500 else ErrorKind.HTTP_SERVER
