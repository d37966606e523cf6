"""The parse stage: claims downloaded tasks, lets their pages be read, and commits in batches."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.archive.warc_record import ArchiveError
from forager.archive.writer import lock_segments
from forager.db.database import Connection
from forager.errors import ErrorKind, NotFound
from forager.extract.product.places import DEAL
from forager.failures.cause import Cause, cause_of, one_line
from forager.failures.service import insert_errors
from forager.parsers.breakers import ParserBreakers
from forager.parsers.model import FieldModel
from forager.parsers.page_cache import CachedPage, archived_page
from forager.parsers.reading import Parsed, ReadingPool, VersionReadings
from forager.parsers.rollouts import RolloutPlan
from forager.parsers.trials import Trials
from forager.products.validation.identity import identity_of
from forager.products.validation.learned_places import LearnedPlaces
from forager.products.visit import has_unconfirmed
from forager.products.writer import ParsedPage, Written, write_pages
from forager.settings.crawling import RenderMode
from forager.tasks.alarms import ReadName, WithheldResult, hold_same_pages
from forager.tasks.hints import StageHints
from forager.tasks.rendering import mode_of
from forager.tasks.schedule import Completion, complete_tasks, revisit_offers
from forager.tasks.stages.attempt import Attempt, LeasedTask, Stage, TaskOutcome, failed
from forager.tasks.stages.download import read_by
from forager.tasks.stages.loop import StageLoop, StageParts
from forager.tasks.store import claims, dead_letters
from forager.tasks.store import stages as store

# pages in progress or waiting, per process
PER_PROCESS = 32
# a domain has about one part in this many of them
SHARES = 4
# others leave a page this long to the worker that downloaded it and has it in memory
DOWNLOADER_GRACE = 1.0
GOOD = frozenset({"ok", "suspect"})


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One page that was read, or why it was not."""

    task: LeasedTask
    duration_ms: int
    reading: VersionReadings | None = None
    final_url: str | None = None
    cause: Cause | None = None
    rendered: bool = False
    # its static response has no price: a worker that renders must visit it
    needs_browser: bool = False
    # the page is in the archive and in the cache of downloads
    size: int = 0

    @property
    def attempt(self) -> Attempt:
        return Attempt(task=self.task, final_url=self.final_url, duration_ms=self.duration_ms)


class ParseStage(StageLoop[ReadTask]):
    """Parses downloaded pages; with `hints`, hinted ones and its own downloads."""

    batch_size = 200
    batch_seconds = 0.25
    last_moment = 3.0

    def __init__(
        self, worker: StageParts, pool: ReadingPool, hints: StageHints | None = None
    ) -> None:
        super().__init__(worker, Stage.PARSE, hints)
        self._breakers = ParserBreakers(worker.database, worker.settings, pool)
        self._trials = Trials(worker.database, pool)
        self._places = LearnedPlaces(worker.database)
        self._model = FieldModel(worker.database, worker.settings)
        self._storage = archive_options(worker.settings).open()
        self._limit = PER_PROCESS * pool.processes
        self._share = self._limit // SHARES
        self._others_may_wait = False

    # --- claiming --------------------------------------------------------------------------

    def _room(self) -> int:
        return self._limit - len(self._running)

    def _has_room(self) -> bool:
        return self._room() >= self.claim_at_least

    async def _claim(self, is_time: bool) -> None:
        """Claim tasks whose pages are in memory; once per interval, those that others left."""
        if not self._has_room():
            return
        full, share = self._full_domains(), min(self._room(), self._share)
        own = self._cache.task_ids(share, besides=full)
        claimed = await self._claim_downloaded(own)
        # held, withdrawn or claimed by another worker, which reads the archive
        self._cache.forget([task_id for task_id in own if task_id not in claimed])
        if not self._has_room():
            return
        if self._hints is not None:
            await self._claim_hinted(self._hints)
        elif is_time or self._others_may_wait:
            share = min(self._room(), self._share)
            left = await self._claim_downloaded(None, besides=full, limit=share)
            self._others_may_wait = len(left) == share
        if len(own) >= share or self._others_may_wait:
            self.wake()

    def _full_domains(self) -> list[int]:
        """Domains that have their share: a slow parser must leave room for others."""
        return [domain for domain, pages in self._busy.items() if pages >= self._share]

    async def _claim_hinted(self, hints: StageHints) -> None:
        if not hints:
            return
        named = hints.begin_claim(self._room())
        await self._claim_downloaded(named)
        # tasks that could not be claimed need no further attempt
        await hints.end_claim(named, has_room=self._has_room())

    async def _claim_downloaded(
        self, among: Sequence[int] | None, *, besides: Sequence[int] = (), limit: int | None = None
    ) -> set[int]:
        """Claim `among` these, or any that others have left; returns their ids."""
        if among == []:
            return set()
        tasks = await self._take(
            lambda connection: claims.claim_downloaded(
                connection,
                self._who.worker_id,
                limit=self._room() if limit is None else limit,
                among=among,
                besides=besides,
                waited=DOWNLOADER_GRACE,
                region=self._settings.region,
            )
        )
        return {task.id for task in tasks}

    def _work(self, task: LeasedTask, plan: RolloutPlan) -> Coroutine[Any, Any, ReadTask]:
        page = None if task.ref is None else self._cache.take(task.id, task.ref)
        return self._read(task, page, plan)

    # --- one page --------------------------------------------------------------------------

    async def _read(self, task: LeasedTask, page: CachedPage | None, plan: RolloutPlan) -> ReadTask:
        started = time.monotonic()
        read = ReadTask(task, 0)
        try:
            if page is None and task.ref is not None:
                page = archived_page(await read_response(self._storage, task.ref))
            if page is not None:
                page = replace(page, place=await self._places.place_in(task.domain_id))
                reading = await self._read_by_plan(task, page, plan)
                moved = page.url if page.url != task.url else None
                needed = not page.rendered and await self._decisions.needs_rendering(
                    task, reading.active
                )
                if not needed:
                    active = await self._model.complete(reading.active)
                    reading = replace(reading, active=active)
                read = replace(
                    read,
                    reading=reading,
                    final_url=moved,
                    rendered=page.rendered,
                    needs_browser=needed,
                )
        except (ArchiveError, NotFound) as error:
            message = one_line(f"the archived page cannot be read: {error.message}")
            read = replace(read, cause=Cause(ErrorKind.INTERNAL, message))
        except Exception as error:  # a fault of ours must not take the other pages with it
            read = replace(read, cause=cause_of(error))
        return replace(read, duration_ms=int((time.monotonic() - started) * 1000))

    async def _read_by_plan(
        self, task: LeasedTask, page: CachedPage, plan: RolloutPlan
    ) -> VersionReadings:
        """Parse with the active version and the canary, which cannot affect the active result."""
        active, canary = plan.versions_for(task.id)
        parsed = await self._breakers.read(page, active)
        if canary is None:
            return VersionReadings(parsed, None)
        tried = await self._trials.read(page, plan, active, canary, to_blame=not parsed.broke)
        return VersionReadings(parsed, tried)

    # --- committing ------------------------------------------------------------------------

    async def _store(self, connection: Connection, batch: Sequence[ReadTask]) -> list[Attempt]:
        complete = [read for read in batch if not read.needs_browser]
        withheld = await self._withheld(connection, complete)
        believed = [read for read in complete if read.task.id not in withheld]
        written = await self._write_products(connection, believed)
        await self._complete(connection, batch, written)
        for domain in {read.task.domain_id for read in believed if _shows_deal(read)}:
            self._places.reconsider(domain)
        await self._learn(connection, batch)
        if broken := [each for read in believed for each in _field_errors(read)]:
            await insert_errors(connection, Stage.PARSE.value, broken)
        return [
            self._attempt(read, written.get(read.task.id), withheld.get(read.task.id))
            for read in batch
        ]

    async def _withheld(
        self, connection: Connection, batch: Sequence[ReadTask]
    ) -> dict[int, WithheldResult]:
        """Pages that suddenly show another product."""
        names = [
            ReadName(read.task, identity, read.final_url)
            for read in batch
            if read.reading is not None
            # a name that its parser could not read does not tell products apart
            and "name" not in read.reading.active.withheld
            and (identity := identity_of(read.reading.active.product)) is not None
        ]
        return await hold_same_pages(connection, names, self._settings) if names else {}

    async def _write_products(
        self, connection: Connection, batch: Sequence[ReadTask]
    ) -> dict[int, Written]:
        refs = await _lasting_refs(connection, batch)
        active = [_read_page(r, r.reading.active, refs, "active") for r in batch if r.reading]
        canary = [
            _read_page(r, r.reading.canary, refs, "canary")
            for r in batch
            if r.reading is not None and r.reading.canary is not None
        ]
        answers = await write_pages(connection, [*active, *canary], settings=self._settings)
        written = {answer.task_id: answer for answer in answers[: len(active)]}
        # a price that waits for confirmation must be read from a complete response
        unconfirmed = sorted(
            id_ for id_, answer in written.items() if has_unconfirmed(answer.problems)
        )
        if unconfirmed:
            await store.forget_validators(connection, unconfirmed)
        return written

    def _attempt(
        self, read: ReadTask, written: Written | None, withheld: WithheldResult | None
    ) -> Attempt:
        if withheld:
            return replace(read.attempt, outcome=withheld[0], cause=withheld[1])
        if read.reading is None and read.cause is None:
            deferred = Cause(ErrorKind.INTERNAL, "the archived page was deleted before it was read")
            return replace(read.attempt, outcome=TaskOutcome.DEFERRED, cause=deferred)
        if read.needs_browser:
            deferred = Cause(
                ErrorKind.RENDER, "no price in the static response: it is rendered next"
            )
            return replace(read.attempt, outcome=TaskOutcome.DEFERRED, cause=deferred)
        cause = read.cause or _cause(read, written)
        return read.attempt if cause is None else failed(read.attempt, cause, self._settings)

    async def _complete(
        self, connection: Connection, batch: Sequence[ReadTask], written: dict[int, Written]
    ) -> None:
        good = [read for read in batch if _is_good(written.get(read.task.id))]
        if not good:
            return
        ids = [read.task.id for read in good]
        done = [
            Completion(id_, None if written[id_].is_new else written[id_].price_changed)
            for id_ in ids
        ]
        await complete_tasks(connection, done, settings=self._settings)
        moved = [w.product_id for w in written.values() if w.price_changed and w.product_id]
        await revisit_offers(connection, moved, settings=self._settings)
        doubted = [id_ for id_ in ids if written[id_].is_doubted]
        if doubted and (wait := self._settings.revisit_withheld):
            await store.bring_forward(connection, doubted, after=timedelta(seconds=wait))
        await store.mark_read(connection, ids, [_version(read) for read in good])
        await dead_letters.resolve_of_tasks(connection, ids)

    async def _learn(self, connection: Connection, batch: Sequence[ReadTask]) -> None:
        """Store what pages have shown about rendering."""
        needs = {read.task.id: True for read in batch if read.needs_browser}
        for read in batch:
            is_auto = mode_of(read.task) is RenderMode.AUTO
            was_tried = read.rendered or (read.task.needs_browser and not read.needs_browser)
            if read.reading is not None and is_auto and was_tried:
                needs[read.task.id] = await self._decisions.learn(
                    connection, read.task, read.reading.active.product, rendered=read.rendered
                )
        if needs:
            await store.set_needs_browser(connection, needs)


async def _lasting_refs(connection: Connection, batch: Sequence[ReadTask]) -> set[str]:
    """The segments that an extraction may refer to: those that are not being deleted."""
    names = {read.task.segment for read in batch if read.task.segment is not None}
    return await lock_segments(connection, sorted(names)) if names else set()


def _read_page(read: ReadTask, parsed: Parsed, lasting: set[str], role: str) -> ParsedPage:
    task = read.task
    ref: ArchiveRef | None = task.ref if task.segment in lasting else None
    return ParsedPage.of(
        parsed,
        task_id=task.id,
        domain_id=task.domain_id,
        url=task.url,
        url_hash=task.url_hash,
        final_url=read.final_url,
        ref=ref,
        role=role,
    )


def _is_good(written: Written | None) -> bool:
    return written is not None and written.outcome in GOOD


def _cause(read: ReadTask, written: Written | None) -> Cause | None:
    """Why the page counts as not parsed; None if it was."""
    if written is None or _is_good(written):
        return None
    broke = read.reading is not None and read.reading.active.product is None
    kind = ErrorKind.PARSE if broke else ErrorKind.VALIDATION
    trace = read.reading.active.stack_trace if read.reading is not None else None
    message = one_line(written.reason or "the page has no product")
    return Cause(kind, message, stack_trace=trace)


def _field_errors(read: ReadTask) -> Iterator[Attempt]:
    """The errors of a parser's fields on a page whose other fields were stored."""
    for problem in read.reading.active.problems if read.reading is not None else ():
        message = one_line(f"{problem.field}: {problem.message}")
        cause = Cause(ErrorKind.PARSE, message, stack_trace=problem.stack_trace)
        yield replace(read.attempt, cause=cause)


def _shows_deal(read: ReadTask) -> bool:
    product = read.reading.active.product if read.reading is not None else None
    said = product.evidence.get("price") if product is not None else None
    return said is not None and said.origin == DEAL


def _version(read: ReadTask) -> str | None:
    active = read.reading.active if read.reading else None
    return None if active is None else read_by(active.parser, active.version)
