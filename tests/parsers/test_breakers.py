"""A parser that keeps breaking is bypassed, and gets another chance later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from forager.db.database import Database
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.extract.product.product import Product
from forager.metrics.catalog import BYPASSED_PAGES
from forager.parsers import breakers
from forager.parsers.breakers import ParserBreakers
from forager.parsers.page_cache import CachedPage
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.rollouts import Rollouts
from forager.parsers.store.rollouts import Rollout, put_rollout, select_bypassed
from forager.processes.turns import TurnRefused
from forager.settings import Settings

SETTINGS = Settings()
MOST_BREAKS = SETTINGS.parser_bypass_after
PAGE = CachedPage("https://kiosk.example/item/1", "text/html", b"<h1>Tea</h1>")


pytestmark = pytest.mark.usefixtures("kiosk")


class FakePool:
    """Reads without processes; the site parser is broken while `broken`."""

    def __init__(self) -> None:
        self.broken = True
        self.dropped: list[tuple[str, str]] = []

    async def parse(self, page: CachedPage, versions: Mapping[str, str]) -> Parsed:
        name, version = used_parser(page.url, versions)
        if name == GENERIC_NAME or not self.broken:
            return Parsed(name, version, Product(name="Tea"), None)
        if self.dropped:
            raise TurnRefused
        return Parsed(name, version, None, "took too long")

    def drop(self, parser: str, version: str) -> None:
        self.dropped.append((parser, version))


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
        [bypass] = await select_bypassed(connection)
        assert (bypass.parser, bypass.reason) == ("kiosk", "took too long")
        # another version ends the bypass
        await put_rollout(connection, Rollout("kiosk", "another"))
        assert await select_bypassed(connection) == []
    # later it is fixed
    assert pool.dropped == [("kiosk", read[0].version)]
    pool.broken = False
    monkeypatch.setattr(breakers, "local_time", lambda: float("inf"))
    assert (await readers.read(PAGE, {})).parser == "kiosk"


async def test_pages_that_wait_when_a_parser_is_bypassed_are_read_generically(
    guarded: tuple[FakePool, ParserBreakers],
) -> None:
    pool, readers = guarded
    pool.drop("kiosk", "1")
    assert (await readers.read(PAGE, {})).parser == GENERIC_NAME
