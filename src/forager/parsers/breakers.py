"""Circuit breakers for active parsers: one that keeps breaking is bypassed for a while.

While a breaker is open, the generic extraction reads the pages of its parser, except for the fields
that the parser reads: these keep their known values. After that, the parser gets another chance; if
it breaks again, it is bypassed for longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from forager.clock import local_time
from forager.db.database import Database
from forager.db.outages import TRANSIENT_ERRORS
from forager.errors import error_text
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.logs import get_logger
from forager.metrics.catalog import BYPASSED_PAGES
from forager.parsers.page_cache import CachedPage
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reader import used_parser
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.registry import BYPASSED, registry, withhold
from forager.parsers.store import rollouts as store
from forager.processes.turns import TurnRefused
from forager.settings import Settings

log = get_logger("parsers")

LONGEST_BYPASS = 6 * 3600.0


@dataclass(slots=True)
class _Breaker:
    """The breaker of one parser version in one worker."""

    breaks: int = 0
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

    async def read(self, page: CachedPage, versions: Mapping[str, str]) -> Parsed:
        """Read a page with its parser, or with the generic extraction if that is bypassed."""
        name, version = used_parser(page.url, versions)
        if name == GENERIC_NAME:
            return await self._pool.parse(page, versions)
        breaker = self._breaker(name, version)
        if breaker.is_open():
            return await self._read_generically(page, versions, name, version)
        try:
            parsed = await self._pool.parse(page, versions)
        except TurnRefused:  # the breaker opened while the page waited
            return await self._read_generically(page, versions, name, version)
        await self._evaluate(breaker, parsed)
        # a page on which only some fields failed was read
        if breaker.is_open() and parsed.product is None:
            return await self._read_generically(page, versions, name, version)
        return parsed

    async def _read_generically(
        self, page: CachedPage, versions: Mapping[str, str], name: str, version: str
    ) -> Parsed:
        BYPASSED_PAGES.add(name)
        parsed = await self._pool.parse(page, {**versions, name: BYPASSED})
        parser = registry().in_version(name, version)
        if parser is None or parsed.product is None:
            return parsed
        product = withhold(parsed.product, parser.read_fields())
        fields = parser.read_fields()
        return replace(parsed, product=product, withheld=fields, bypassed=(name, version))

    def _breaker(self, name: str, version: str) -> _Breaker:
        return self._breakers.setdefault((name, version), _Breaker())

    async def _evaluate(self, breaker: _Breaker, parsed: Parsed) -> None:
        if parsed.product is not None and parsed.product.name and not parsed.problems:
            breaker.breaks = 0
            return
        limit = self._settings.parser_bypass_after
        # a parser that hangs delays others: the second time is enough
        breaker.breaks += (limit + 1) // 2 if parsed.broke else 1
        if breaker.breaks < limit or breaker.is_open():
            return
        seconds = min(self._settings.parser_bypass_time * 2.0**breaker.opened, LONGEST_BYPASS)
        breaker.opened += 1
        breaker.open_until = local_time() + seconds
        # one more failure opens it again after its time
        breaker.breaks = limit - 1
        self._pool.drop(parsed.parser, parsed.version)
        await self._announce(parsed, seconds)

    async def _announce(self, parsed: Parsed, seconds: float) -> None:
        failed = "; ".join(f"{each.field}: {each.message}" for each in parsed.problems[:3])
        reason = parsed.error or failed or "the parser finds no product name"
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
        except TRANSIENT_ERRORS as error:
            log.warning("the bypass of a parser was not noted", reason=error_text(error))
