"""Backtests: two versions of a parser read the same archived pages, before one is rolled out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.product import FieldName, Product, to_plain
from forager.fetch.domains.service import domains_of
from forager.hints import Hint, Option
from forager.parsers.page_cache import CachedPage, archived_page
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.rates import GOOD_OUTCOMES, share
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.registry import BYPASSED, chosen_parser, find, load_parsers
from forager.products.visit import ParsedPage, ReadOutcome, visit_of
from forager.settings import Settings
from forager.tasks.archived_page import ArchivedPage, archived_pages

MAX_EXAMPLES = 3
# pages in progress per process, so that no process waits for the archive
_PER_PROCESS = 8
DEFAULT_LIMIT = 1000
_EMPTY = Product()

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Example:
    """A page on which a field was changed, gained or lost."""

    url: str
    kind: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class ReadingError:
    """A page that a version could not read, or one of its fields."""

    url: str
    message: str


@dataclass(slots=True)
class FieldReport:
    """Differences of one field: `gained` and `lost` are values that the other version lacks."""

    equal: int = 0
    changed: int = 0
    gained: int = 0
    lost: int = 0
    examples: list[Example] = field(default_factory=list)

    @property
    def differs(self) -> int:
        return self.changed + self.gained + self.lost


@dataclass(slots=True)
class VersionReport:
    """The results of one version."""

    version: str
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    errors: list[ReadingError] = field(default_factory=list)

    @property
    def pages(self) -> int:
        return self.outcomes.total()

    @property
    def rate(self) -> float | None:
        return share(sum(self.outcomes[each] for each in GOOD_OUTCOMES), self.pages)

    @property
    def milliseconds(self) -> float | None:
        """Per page."""
        return round(1000 * self.seconds / self.pages, 2) if self.pages else None


@dataclass(slots=True)
class Backtest:
    """The new version compared with the old one, field by field; nothing is stored."""

    parser: str
    new: VersionReport
    old: VersionReport
    fields: dict[str, FieldReport]
    # pages that the archive does not contain any more
    unreadable: int = 0
    # pages that one version reads and the other does not, or not as well
    outcomes_differ: int = 0
    # whether more pages match than the limit
    truncated: bool = False

    @property
    def pages(self) -> int:
        return self.new.pages


async def backtest(
    database: Database,
    settings: Settings,
    parser: str,
    *,
    version: str | None = None,
    against: str,
    domain: str | None = None,
    history: bool = False,
    limit: int = DEFAULT_LIMIT,
    progress: Progress | None = None,
) -> Backtest:
    """Replay archived pages through two versions; no request leaves, and nothing is written.

    `against` may be `generic`: the generic extraction reads the pages instead of an older version.
    Without `history` each task's newest page is read, otherwise every page that is kept.
    """
    load_parsers(settings.parser_modules)
    older = against if against == GENERIC_NAME else find(parser, against)
    report = _report(parser, find(parser, version), older)
    async with database.connection() as connection:
        domain_ids = await domains_of(connection, domain) if domain else None
    pages = archived_pages(database, domain_ids=domain_ids, history=history)
    storage = archive_options(settings).open()
    async with ReadingPool(settings) as pool:
        run = _Run(report, pool, storage, limit, progress or (lambda _: None))
        await run.read_all(pages)
    return report


def _report(parser: str, version: str, against: str) -> Backtest:
    if version == against:
        raise InvalidInput(
            f"a backtest compares two versions of {parser}, and both are {version}",
            hint=Hint("Set {} or {} to another version.", Option("against"), Option("version")),
        )
    fields = {name.value: FieldReport() for name in FieldName}
    return Backtest(parser, VersionReport(version), VersionReport(against), fields)


@dataclass(slots=True)
class _Run:
    report: Backtest
    pool: ReadingPool
    storage: Storage
    limit: int
    progress: Progress

    async def read_all(self, pages: AsyncIterator[ArchivedPage]) -> None:
        """Read a bounded number of pages at a time."""
        waiting: set[asyncio.Task[None]] = set()
        started = 0
        try:
            async for page in pages:
                if not self._concerns(page.url):
                    continue
                if started == self.limit:
                    self.report.truncated = True
                    break
                started += 1
                waiting.add(asyncio.create_task(self._read(page)))
                if len(waiting) >= self.pool.processes * _PER_PROCESS:
                    waiting = await self._some(waiting)
            while waiting:
                waiting = await self._some(waiting)
        finally:
            for task in waiting:
                task.cancel()

    async def _some(self, waiting: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        self.progress(self.report.pages)
        return rest

    async def _read(self, page: ArchivedPage) -> None:
        archived = await self._archived(page)
        if archived is None:
            self.report.unreadable += 1
            return
        old = await self.pool.parse(archived, self._versions(self.report.old))
        new = await self.pool.parse(archived, self._versions(self.report.new))
        _count(self.report.old, page, old)
        _count(self.report.new, page, new)
        self.report.outcomes_differ += _outcome(page, old) != _outcome(page, new)
        if old.product is not None or new.product is not None:
            _compare(self.report.fields, page.url, old.product or _EMPTY, new.product or _EMPTY)

    def _concerns(self, url: str) -> bool:
        """Whether one of the versions reads pages of the URL: their patterns may differ."""
        return any(
            chosen_parser(url, self._versions(each)) == self.report.parser
            for each in (self.report.old, self.report.new)
        )

    def _versions(self, report: VersionReport) -> dict[str, str]:
        generic = report.version == GENERIC_NAME
        return {self.report.parser: BYPASSED if generic else report.version}

    async def _archived(self, page: ArchivedPage) -> CachedPage | None:
        try:
            archived = await read_response(self.storage, page.ref)
        except (ArchiveError, NotFound):
            return None
        return archived_page(archived) if archived.body else None


def _count(report: VersionReport, page: ArchivedPage, read: Parsed) -> None:
    report.outcomes[_outcome(page, read)] += 1
    report.seconds += read.seconds
    problems = (f"{problem.field}: {problem.message}" for problem in read.problems)
    for message in chain([read.error] if read.error else [], problems):
        if len(report.errors) < MAX_EXAMPLES:
            report.errors.append(ReadingError(page.url, message))


def _outcome(page: ArchivedPage, read: Parsed) -> ReadOutcome:
    """The outcome of the page without regard to the known product."""
    ids = {name: getattr(page, name) for name in ("task_id", "domain_id", "url", "url_hash")}
    return visit_of(ParsedPage.of(read, **ids), None).outcome


def _compare(fields: dict[str, FieldReport], url: str, old: Product, new: Product) -> None:
    for name, report in fields.items():
        before, after, nothing = (getattr(each, name) for each in (old, new, _EMPTY))
        if before == after:
            report.equal += 1
            continue
        kind = "gained" if before == nothing else "lost" if after == nothing else "changed"
        setattr(report, kind, getattr(report, kind) + 1)
        # some of each kind, so that a single loss is visible
        if getattr(report, kind) <= MAX_EXAMPLES:
            plain = (to_plain(product).get(name) for product in (old, new))
            report.examples.append(Example(url, kind, *plain))
