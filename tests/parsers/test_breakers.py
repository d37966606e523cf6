"""A parser that keeps breaking is bypassed, and gets another chance later."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from forager.db.database import Database
from forager.extract.product.record import Product
from forager.metrics.recorded import BYPASSED_PAGES
from forager.parsers import breakers
from forager.parsers.breakers import ParserBreakers
from forager.parsers.page_cache import Page
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.rollouts import Rollouts
from forager.parsers.store.rollouts import select_bypassed
from forager.settings import Settings
from forager.webhooks.events import EventKind, list_events

SETTINGS = Settings()
MOST_BREAKS = SETTINGS.parser_bypass_after
PAGE = Page("https://kiosk.example/item/1", "text/html", b"<h1>Tea</h1>")


pytestmark = pytest.mark.usefixtures("kiosk")


class FakePool:
    """Reads without processes; the site parser is broken while `broken`."""

    processes = 3

    def __init__(self) -> None:
        self.broken = True
        self.inside = self.most = 0
        self.hangs: asyncio.Event | None = None

    async def parse(self, page: Page, versions: Mapping[str, str]) -> Parsed:
        name, version = used_parser(page.url, versions)
        if name == GENERIC_NAME or not self.broken:
            return Parsed(name, version, Product(name="Tea"), None)
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.hangs is not None:
            await self.hangs.wait()
        self.inside -= 1
        return Parsed(name, version, None, "took too long", broke=True)


@pytest.fixture
async def guarded(database: Database) -> tuple[FakePool, ParserBreakers]:
    await Rollouts().current(database)
    pool = FakePool()
    return pool, ParserBreakers(database, SETTINGS, cast(ReadingPool, pool))


async def test_a_parser_that_keeps_breaking_is_bypassed(
    database: Database, guarded: tuple[FakePool, ParserBreakers], monkeypatch: Any
) -> None:
    pool, readers = guarded
    BYPASSED_PAGES.take()
    read = [await readers.read(PAGE, {}) for _ in range(MOST_BREAKS + 2)]
    names = [parsed.parser for parsed in read]
    # the page that opens the breaker is read generically at once
    assert names == ["kiosk"] * (MOST_BREAKS - 1) + [GENERIC_NAME] * 3
    assert list(BYPASSED_PAGES.take().values()) == [3]
    [event] = (await list_events(database, kind=EventKind.PARSER_BYPASSED)).items
    assert event.payload["parser"] == "kiosk"
    async with database.connection() as connection:
        assert await select_bypassed(connection) == [("kiosk", "took too long")]
    # later it is fixed
    pool.broken = False
    monkeypatch.setattr(breakers, "local_time", lambda: float("inf"))
    assert (await readers.read(PAGE, {})).parser == "kiosk"


async def test_a_parser_that_hangs_leaves_a_process_to_others(
    guarded: tuple[FakePool, ParserBreakers],
) -> None:
    pool, readers = guarded
    pool.hangs = asyncio.Event()
    waiting = [asyncio.ensure_future(readers.read(PAGE, {})) for _ in range(10)]
    while pool.inside < FakePool.processes - 1:
        await asyncio.sleep(0)
    pool.hangs.set()
    read = await asyncio.gather(*waiting)
    assert pool.most == FakePool.processes - 1
    # those that waited when the breaker opened did not try it any more
    assert [parsed.parser for parsed in read].count(GENERIC_NAME) >= 10 - MOST_BREAKS - 1
