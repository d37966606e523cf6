"""Circuit breakers for active parsers: one that keeps breaking is bypassed for a while.

While a breaker is open, the pages of its parser are read by the generic extraction. After that,
the parser gets another chance; if it breaks again, it is bypassed for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from forager.clock import local_time
from forager.db.database import Database
from forager.db.outages import TROUBLE
from forager.logs import get_logger
from forager.metrics.recorded import BYPASSED_PAGES
from forager.parsers.page_cache import Page
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.registry import BYPASSED
from forager.parsers.store import rollouts as store
from forager.settings import Settings
from forager.webhooks.events import EventKind, NewEvent, record_events

log = get_logger("parsers")

# after this many good pages a parser may use every process
PROVEN_AFTER = 20
LONGEST_BYPASS = 6 * 3600.0


@dataclass(slots=True)
class _Breaker:
    """The breaker of one parser version in one worker."""

    turns: asyncio.Semaphore
    breaks: int = 0
    good: int = 0
    opened: int = 0
    open_until: float = field(default=float("-inf"))

    def is_open(self) -> bool:
        return local_time() < self.open_until


class ParserBreakers:
    """Parses pages with the active version, or generically while its breaker is open."""

    def __init__(self, database: Database, settings: Settings, pool: ReadingPool) -> None:
        self._database = database
        self._settings = settings
        self._pool = pool
        self._breakers: dict[tuple[str, str], _Breaker] = {}

    async def read(self, page: Page, versions: Mapping[str, str]) -> Parsed:
        name, version = used_parser(page.url, versions)
        if name == GENERIC_NAME:
            return await self._pool.parse(page, versions)
        breaker = self._breaker(name, version)
        if breaker.is_open():
            return await self._read_generically(page, versions, name)
        if breaker.good >= PROVEN_AFTER:
            parsed = await self._pool.parse(page, versions)
        else:
            # a parser that hangs must leave a process for other domains
            async with breaker.turns:
                if breaker.is_open():
                    return await self._read_generically(page, versions, name)
                parsed = await self._pool.parse(page, versions)
        await self._judge(breaker, parsed)
        return await self._read_generically(page, versions, name) if breaker.is_open() else parsed

    async def _read_generically(self, page: Page, versions: Mapping[str, str], name: str) -> Parsed:
        BYPASSED_PAGES.add(name)
        return await self._pool.parse(page, {**versions, name: BYPASSED})

    def _breaker(self, name: str, version: str) -> _Breaker:
        if (name, version) not in self._breakers:
            turns = asyncio.Semaphore(max(1, self._pool.processes - 1))
            self._breakers[name, version] = _Breaker(turns)
        return self._breakers[name, version]

    async def _judge(self, breaker: _Breaker, parsed: Parsed) -> None:
        if parsed.product is not None and parsed.product.name:
            breaker.breaks = 0
            breaker.good += 1
            return
        breaker.breaks += 1
        breaker.good = 0
        limit = self._settings.parser_bypass_after
        if breaker.breaks < limit or breaker.is_open():
            return
        seconds = min(self._settings.parser_bypass_time * 2.0**breaker.opened, LONGEST_BYPASS)
        breaker.opened += 1
        breaker.open_until = local_time() + seconds
        # one more failure opens it again after its time
        breaker.breaks = limit - 1
        await self._announce(parsed, seconds)

    async def _announce(self, parsed: Parsed, seconds: float) -> None:
        reason = parsed.error or "the parser finds no product name"
        log.warning("parser bypassed", parser=parsed.parser, version=parsed.version, reason=reason)
        payload = {
            "parser": parsed.parser, "version": parsed.version, "reason": reason,
            "seconds": seconds,
        }  # fmt: skip
        try:
            async with self._database.transaction() as connection:
                await store.note_bypass(connection, parsed.parser, reason, seconds=seconds)
                event = NewEvent(EventKind.PARSER_BYPASSED, None, None, payload)
                await record_events(connection, [event])
        except TROUBLE as error:
            log.warning("the bypass of a parser was not noted", reason=str(error))
