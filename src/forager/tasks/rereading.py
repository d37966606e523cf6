"""Re-reading: a parser version reads the archive again, and corrects price histories.

Nothing is fetched. Without `write`, the result is a preview.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby

from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.db.cursor import batches
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.places import LearnedPlace
from forager.fetch.domains.service import domains_of
from forager.hints import Hint, action
from forager.parsers.model import ORIGIN as MODEL_ORIGIN
from forager.parsers.page_cache import archived_page
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reading import ReadingPool
from forager.parsers.registry import chosen_parser, find, load_parsers
from forager.parsers.rollouts import load_plan
from forager.products.corrections import (
    ArchivedVisit,
    CorrectedProduct,
    Correction,
    ReadVisit,
    correct_product,
    select_products,
    select_visits,
)
from forager.products.validation.learned_places import known_place
from forager.products.visit import ParsedPage
from forager.settings import Settings

PRODUCTS_AT_ONCE = 50
# pages of a product that are in memory, for each process that reads them
PAGES_PER_PROCESS = 2
MAX_EXAMPLES = 10

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CorrectedHistory:
    """How the history of one product changes."""

    product_id: int
    url: str
    removed: int
    added: int
    old_price: Decimal | None
    price: Decimal | None
    old_lowest: Decimal | None
    lowest: Decimal | None
    old_highest: Decimal | None
    highest: Decimal | None


@dataclass(slots=True)
class ArchiveReread:
    """What a version changes in price histories; `written`: the changes were stored."""

    parser: str
    version: str
    written: bool
    products: int = 0
    pages: int = 0
    # pages that the archive does not contain any more
    unreadable: int = 0
    corrected: int = 0
    removed: int = 0
    added: int = 0
    # products whose current price changes
    repriced: int = 0
    examples: list[CorrectedHistory] = field(default_factory=list)

    def count(self, correction: Correction) -> None:
        self.corrected += 1
        self.removed += correction.removed
        self.added += correction.added
        self.repriced += correction.product.price != correction.price
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(_example(correction))


def _example(correction: Correction) -> CorrectedHistory:
    (old_lowest, old_highest), (lowest, highest) = correction.old_range, correction.new_range
    product = correction.product
    return CorrectedHistory(
        product.id, product.url, correction.removed, correction.added, product.price,
        correction.price, old_lowest, lowest, old_highest, highest,
    )  # fmt: skip


async def reread_archive(
    database: Database,
    settings: Settings,
    parser: str,
    *,
    version: str | None = None,
    domain: str | None = None,
    write: bool = False,
    progress: Progress | None = None,
) -> ArchiveReread:
    """Read the archived pages of a parser with a version, by default the active one.

    Only the active version may `write`: the next visit would undo the corrections of another.
    """
    load_parsers(settings.parser_modules)
    plan = await load_plan(database)
    versions, _ = plan.versions_for(0)
    used, versions = _used(parser, version, plan.active_version(parser), versions, write=write)
    async with database.connection() as connection:
        domain_ids = await domains_of(connection, domain) if domain else None
    report = ArchiveReread(parser, used, write)
    async with ReadingPool(settings) as pool:
        run = _ArchiveReader(database, pool, archive_options(settings).open(), versions, report)
        async for product, visits in _products(database, domain_ids, parser, versions):
            await run.correct(product, visits)
            (progress or (lambda _: None))(report.pages)
    return report


def _used(
    parser: str,
    version: str | None,
    active: str | None,
    versions: Mapping[str, str],
    *,
    write: bool,
) -> tuple[str, Mapping[str, str]]:
    """The version that reads, and the versions of all parsers for the choice of one."""
    if parser == GENERIC_NAME:
        return find(parser, version), versions
    wanted = find(parser, version or (None if active == GENERIC_NAME else active))
    if write and wanted != active:
        raise InvalidInput(
            f"version {wanted} of parser {parser} is not active",
            hint=Hint("{} activates it.", action("parsers rollout", parser, wanted)),
        )
    return wanted, {**versions, parser: wanted}


async def _products(
    database: Database, domain_ids: list[int] | None, parser: str, versions: Mapping[str, str]
) -> AsyncIterator[tuple[CorrectedProduct, list[ArchivedVisit]]]:
    """Products of a parser with archived pages, and their visits, oldest first."""

    async def select(after: int) -> list[CorrectedProduct]:
        return await database.run(
            select_products, after=after, domain_ids=domain_ids, limit=PRODUCTS_AT_ONCE
        )

    async for rows in batches(select, 0, lambda row: row.id, PRODUCTS_AT_ONCE):
        by_id = {row.id: row for row in rows if chosen_parser(row.url, versions) == parser}
        visits = await database.run(select_visits, list(by_id)) if by_id else []
        for product_id, of_product in groupby(visits, key=lambda visit: visit.product_id):
            yield by_id[product_id], list(of_product)


@dataclass(slots=True)
class _ArchiveReader:
    database: Database
    pool: ReadingPool
    storage: Storage
    versions: Mapping[str, str]
    report: ArchiveReread
    places: dict[int, LearnedPlace] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.turns = asyncio.Semaphore(PAGES_PER_PROCESS * self.pool.processes)

    async def correct(self, product: CorrectedProduct, visits: Sequence[ArchivedVisit]) -> None:
        place = await self._place(product.domain_id)
        read = await asyncio.gather(*(self._read(product, visit, place) for visit in visits))
        self.report.products += 1
        async with self.database.transaction() as connection:
            found = await correct_product(connection, product, read, write=self.report.written)
        if found is not None:
            self.report.count(found)

    async def _place(self, domain_id: int) -> LearnedPlace:
        if domain_id not in self.places:
            self.places[domain_id] = await self.database.run(known_place, domain_id)
        return self.places[domain_id]

    async def _read(
        self, product: CorrectedProduct, visit: ArchivedVisit, place: LearnedPlace
    ) -> ReadVisit:
        async with self.turns:
            try:
                archived = await read_response(self.storage, visit.ref)
            except (ArchiveError, NotFound):
                self.report.unreadable += 1
                return ReadVisit(visit.read_at, None)
            page = replace(archived_page(archived), place=place)
            parsed = await self.pool.parse(page, self.versions)
        self.report.pages += 1
        is_by_model = (visit.price_origin or "").startswith(MODEL_ORIGIN)
        if is_by_model and parsed.product is not None and parsed.product.price is None:
            return ReadVisit(visit.read_at, None)  # the model is not asked again
        return ReadVisit(
            visit.read_at,
            ParsedPage.of(
                parsed,
                task_id=product.task_id,
                domain_id=product.domain_id,
                url=product.url,
                url_hash=product.url_hash,
                final_url=page.url,
                ref=visit.ref,
            ),
        )
