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
from forager.db.patience import TROUBLE
from forager.logs import get_logger
from forager.parsers.page_cache import Page
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.registry import BYPASSED
from forager.parsers.store import rollouts as store
from forager.webhooks.events import EventKind, NewEvent, record_events

log = get_logger("parsers")

# limits broken, exceptions raised or names not found in a row that open the breaker
MOST_BREAKS = 5
# good readings after which a parser may use every process
PROVEN_AFTER = 20
BYPASS_SECONDS, LONGEST_BYPASS = 900.0, 6 * 3600.0


@dataclass(slots=True)
class _Breaker:
    """Of one version of one parser, in one worker."""

    turns: asyncio.Semaphore
    breaks: int = 0
    good: int = 0
    opened: int = 0
    open_until: float = field(default=float("-inf"))

    def is_open(self) -> bool:
        return local_time() < self.open_until


class ParserBreakers:
    """Reads pages by the active version, or generically while its breaker is open."""

    def __init__(self, database: Database, pool: ReadingPool) -> None:
        self._database = database
        self._pool = pool
        self._breakers: dict[tuple[str, str], _Breaker] = {}

    async def read(self, page: Page, versions: Mapping[str, str]) -> Parsed:
        name, version = used_parser(page.url, versions)
        if name == GENERIC_NAME:
            return await self._pool.parse(page, versions)
        breaker = self._breaker(name, version)
        bypassed = {**versions, name: BYPASSED}
        if breaker.is_open():
            return await self._pool.parse(page, bypassed)
        if breaker.good >= PROVEN_AFTER:
            parsed = await self._pool.parse(page, versions)
        else:
            # a parser that hangs must leave a process to the other domains
            async with breaker.turns:
                opened_meanwhile = breaker.is_open()
                parsed = await self._pool.parse(page, bypassed if opened_meanwhile else versions)
            if opened_meanwhile:
                return parsed
        await self._judge(breaker, parsed)
        return await self._pool.parse(page, bypassed) if breaker.is_open() else parsed

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
        if breaker.breaks < MOST_BREAKS or breaker.is_open():
            return
        seconds = min(BYPASS_SECONDS * 2.0**breaker.opened, LONGEST_BYPASS)
        breaker.opened += 1
        breaker.open_until = local_time() + seconds
        # one more failure opens it again when its time is over
        breaker.breaks = MOST_BREAKS - 1
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
