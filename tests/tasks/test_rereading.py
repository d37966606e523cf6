"""Re-reading the archive: histories that a parser misread are corrected, after a preview."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from forager.archive.reader import ArchivedResponse, read_response
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.parsers.rollouts import roll_out
from forager.settings import Settings
from forager.tasks import rereading
from forager.tasks.rereading import reread_archive
from parsers.archived_kiosk import MODULE, Kiosk, kiosk_parsers
from support.waiting import eventually
from tasks.working import Tasks, at_work

OTHER = (
    b"<!doctype html><html lang='en-gb'><title>All</title><h1>All items</h1><b class=now>&pound;1"
)

# the second entry is that of another list price
CORRECTED = [Decimal(text) for text in ("7.50", "7.50", "5.50", "6.50")]


@pytest.fixture(autouse=True)
def kiosk() -> Iterator[None]:
    with kiosk_parsers():
        yield


def lamp(now: str, was: str) -> bytes:
    return (
        "<!doctype html><html lang='en-gb'><title>Kiosk</title><h1>Lamp</h1>"
        f"<p data-item='K-1'><s class='was'>£{was}</s> <b class='now'>£{now}</b></p>"
    ).encode()


class VisitedKiosk:
    """One product whose pages version 2 misreads: it takes the price that is struck through."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.settings = settings.model_copy(
            update={"parser_modules": (MODULE,), "recrawl_every": 1e6, "revisit_withheld": 0.0}
        )
        self.tasks = Tasks(database, self.settings)
        self.shop = Kiosk(database, self.settings)

    async def visit(self, body: bytes) -> None:
        if not self.shop.task_ids:
            await self.shop.archive([(1, body)])
        else:
            await self.shop.revisit(self.shop.task_ids[0], 1, body)
        async with at_work(self.tasks):
            await eventually(self._is_read)

    async def _is_read(self) -> bool:
        rows = await self.tasks.sql("SELECT status FROM crawl_tasks")
        return rows == [("completed",)]

    async def prices(self) -> list[Decimal]:
        rows = await self.tasks.sql("SELECT price FROM price_history ORDER BY recorded_at, id")
        return [price for (price,) in rows]


async def test_a_preview_stores_nothing_and_a_rewrite_corrects_history_and_product(
    database: Database, settings: Settings
) -> None:
    kiosk = VisitedKiosk(database, settings)
    await roll_out(database, kiosk.settings, "kiosk", "2")
    for now, was in (("7.50", "9"), ("7.50", "10"), ("5.50", "10"), ("6.50", "10")):
        await kiosk.visit(lamp(now, was))
    assert await kiosk.prices() == [9, 10]

    preview = await reread_archive(database, kiosk.settings, "kiosk", version="1")
    assert (preview.pages, preview.products, preview.corrected, preview.repriced) == (4, 1, 1, 1)
    [example] = preview.examples
    assert (example.old_price, example.price) == (Decimal(10), Decimal("6.50"))
    assert (example.old_lowest, example.lowest, example.highest) == (
        Decimal(9), Decimal("5.50"), Decimal("7.50"),
    )  # fmt: skip
    assert await kiosk.prices() == [9, 10]
    with pytest.raises(InvalidInput, match="is not active"):
        await reread_archive(database, kiosk.settings, "kiosk", version="1", write=True)

    await roll_out(database, kiosk.settings, "kiosk", "1")
    await kiosk.tasks.sql("INSERT INTO alert_rules (kind, percent) VALUES ('price_drop', 1)")
    done = await reread_archive(database, kiosk.settings, "kiosk", write=True)
    assert (done.written, done.corrected, done.version) == (True, 1, "1")
    assert await kiosk.prices() == CORRECTED
    rows = await kiosk.tasks.sql("SELECT price, parser_version FROM products")
    assert rows == [(Decimal("6.50"), "1")]
    kinds = await kiosk.tasks.sql("SELECT kind FROM catalog_events ORDER BY id")
    assert [kind for (kind,) in kinds] == [
        "product.added",
        "product.price_changed",
        "product.reread",
    ]
    # done again, it changes nothing; neither does the next visit
    again = await reread_archive(database, kiosk.settings, "kiosk", write=True)
    assert again.corrected == 0
    await kiosk.visit(lamp("6.50", "10"))
    assert await kiosk.prices() == CORRECTED


async def test_prices_that_only_the_model_found_stay(
    database: Database, settings: Settings
) -> None:
    """It is not asked again, and a version that finds no price has nothing better."""
    kiosk = VisitedKiosk(database, settings)
    await roll_out(database, kiosk.settings, "kiosk", "1")
    await kiosk.visit(lamp("", ""))
    await kiosk.visit(lamp("7.50", "9"))
    await kiosk.tasks.sql(
        "UPDATE price_history SET price = 4, currency = 'GBP' WHERE price IS NULL"
    )
    await kiosk.tasks.sql(
        """
        UPDATE extractions SET evidence = evidence || '{"price": {"origin": "model:small"}}'
         WHERE NOT evidence ? 'price'
        """
    )
    done = await reread_archive(database, kiosk.settings, "kiosk", write=True)
    assert (done.pages, done.corrected) == (2, 0)
    assert await kiosk.prices() == [4, Decimal("7.50")]


async def test_the_pages_of_a_product_are_read_a_few_at_a_time(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product that was visited every hour has thousands of them, of up to megabytes each."""
    kiosk = VisitedKiosk(database, settings)
    await roll_out(database, kiosk.settings, "kiosk", "1")
    await kiosk.visit(lamp("7.50", "9"))
    await kiosk.tasks.sql(
        """
        INSERT INTO extractions (task_id, product_id, domain_id, url, parser, parser_version,
                                 outcome, segment, segment_offset, segment_length)
        SELECT task_id, product_id, domain_id, url, parser, parser_version, outcome, segment,
               segment_offset + n, segment_length
          FROM extractions, generate_series(1, 50) n
        """
    )
    most = reading = 0

    async def counted(storage: Storage, ref: ArchiveRef) -> ArchivedResponse:
        nonlocal most, reading
        reading += 1
        most = max(most, reading)
        try:
            return await read_response(storage, ref)
        finally:
            reading -= 1

    monkeypatch.setattr(rereading, "read_response", counted)
    found = await reread_archive(database, kiosk.settings, "kiosk")
    assert (found.pages, found.unreadable) == (1, 50)
    assert 0 < most <= 10


async def test_only_the_installed_version_of_the_generic_extraction_reads(
    database: Database, settings: Settings
) -> None:
    with pytest.raises(NotFound, match="no version 3"):
        await reread_archive(database, settings, "generic", version="3")


async def test_entries_without_a_page_stay_and_wrong_pages_leave_the_history(
    database: Database, settings: Settings
) -> None:
    kiosk = VisitedKiosk(database, settings)
    await roll_out(database, kiosk.settings, "kiosk", "1")
    await kiosk.visit(lamp("7.50", "9"))
    # from before the archive, and by an older version of Forager from a page of another product
    await kiosk.tasks.sql(
        """
        INSERT INTO price_history (product_id, price, currency, availability, recorded_at)
        SELECT id, 4, 'GBP', 'in_stock', now() - interval '1 year' FROM products
        """
    )
    await kiosk.shop.revisit(kiosk.shop.task_ids[0], 1, OTHER)
    await kiosk.tasks.sql("UPDATE extractions SET created_at = created_at - interval '1 hour'")
    await kiosk.tasks.sql(
        "UPDATE price_history SET recorded_at = recorded_at - interval '1 hour' WHERE price > 4"
    )
    await kiosk.tasks.sql(
        """
        INSERT INTO extractions (task_id, product_id, domain_id, url, parser, parser_version,
                                 outcome, segment, segment_offset, segment_length)
        SELECT t.id, p.id, t.domain_id, t.url, 'kiosk', '1', 'ok', t.segment, t.segment_offset,
               t.segment_length
          FROM crawl_tasks t JOIN products p ON p.crawl_task_id = t.id
        """
    )
    await kiosk.tasks.sql(
        "INSERT INTO price_history (product_id, price, currency) SELECT id, 1, 'GBP' FROM products"
    )
    done = await reread_archive(database, kiosk.settings, "kiosk", write=True)
    assert (done.corrected, done.removed, done.added) == (1, 1, 0)
    assert await kiosk.prices() == [4, Decimal("7.50")]
