"""Success rates of parsers, and the alert when a shop has changed under one."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import timedelta

import orjson

from forager.db.cursor import Page
from forager.db.database import Connection, Database
from forager.errors import InvalidInput
from forager.fetch.domains.matching import domains_of
from forager.parsers.pattern import VersionRate
from forager.parsers.store import rates as store
from forager.parsers.store.rates import DomainRate, ParseCount, ParserRate
from forager.webhooks.events import EventKind, NewEvent

__all__ = [
    "GOOD_OUTCOMES",
    "ParseCount",
    "ParserRate",
    "VersionRate",
    "check_rates",
    "count_parses",
    "list_rates",
    "parser_rates",
    "share",
]

# a page whose product validation had to mark counts as badly read: a changed shop looks like that
GOOD_OUTCOMES = ("ok",)
RECENT = 100
# fewer pages in the rest of the week say nothing about what is usual
LEAST_EARLIER = 20
DEGRADED = 0.8
ALERT_PAUSE = timedelta(hours=1)


async def count_parses(connection: Connection, counts: Sequence[ParseCount]) -> None:
    """Add what a batch of pages came to; part of the transaction that writes its products."""
    if summed := _summed(counts):
        await store.add_counts(connection, summed)


def _summed(counts: Iterable[ParseCount]) -> list[ParseCount]:
    sums: dict[tuple[int, str, str, str], tuple[int, int]] = {}
    for count in counts:
        key = (count.domain_id, count.parser, count.version, count.role)
        pages, good = sums.get(key, (0, 0))
        sums[key] = (pages + count.pages, good + count.good)
    return [ParseCount(*key, *numbers) for key, numbers in sums.items()]


async def check_rates(connection: Connection, domain_ids: Iterable[int]) -> list[NewEvent]:
    """An alert for each domain whose newest 100 pages are read much worse than those before.

    Compared are the last 100 pages and the other pages of the last seven days: with themselves
    in it, a small domain's rate would fall along with them and never raise an alert. The caller
    records the events in the same transaction, and there is one per domain and hour.
    """
    wanted = sorted(set(domain_ids))
    if not wanted:
        return []
    found = await store.select_domain_rates(connection, wanted, recent=RECENT, good=GOOD_OUTCOMES)
    return [
        _alert(rate)
        for rate in found
        if is_degraded(rate) and await _may_alert(connection, rate.domain_id)
    ]


def is_degraded(rate: DomainRate) -> bool:
    if rate.recent_pages < RECENT or rate.earlier_pages < LEAST_EARLIER:
        return False
    recent = rate.recent_good / rate.recent_pages
    return recent < DEGRADED * rate.earlier_good / rate.earlier_pages


async def _may_alert(connection: Connection, domain_id: int) -> bool:
    """Two workers may see the same: the lock is for the one, the look for the one after it."""
    kind = EventKind.PARSER_DEGRADED
    return await store.hold_alert(connection, domain_id) and not await store.has_event_since(
        connection, kind, domain_id, ALERT_PAUSE
    )


def _alert(rate: DomainRate) -> NewEvent:
    payload = {
        "domain": rate.domain,
        "recent_pages": rate.recent_pages,
        "recent_rate": share(rate.recent_good, rate.recent_pages),
        "week_pages": rate.earlier_pages,
        "week_rate": share(rate.earlier_good, rate.earlier_pages),
    }
    return NewEvent(EventKind.PARSER_DEGRADED, None, rate.domain_id, payload)


def share(good: int, pages: int) -> float | None:
    """A rate for people and programs; None where nothing was read."""
    return round(good / pages, 4) if pages else None


# --- looking -------------------------------------------------------------------------------------

MAX_LIST = 1000


async def list_rates(
    database: Database, *, domain: str | None = None, cursor: str | None = None, limit: int = 100
) -> Page[VersionRate]:
    """How each version does at each domain: its part of the last 100 pages, and seven days."""
    if not 1 <= limit <= MAX_LIST:
        raise InvalidInput(f"a limit must be from 1 to {MAX_LIST}, not {limit}")
    async with database.connection() as connection:
        rows = await store.select_version_rates(
            connection,
            domain_ids=await domains_of(connection, domain) if domain else None,
            after=_place(cursor),
            limit=limit + 1,
            recent=RECENT,
            good=GOOD_OUTCOMES,
        )
    following = _cursor(rows[limit - 1]) if len(rows) > limit else None
    return Page(rows[:limit], following)


def _cursor(rate: VersionRate) -> str:
    place = orjson.dumps([rate.domain, rate.parser, rate.version, rate.role])
    return base64.urlsafe_b64encode(place).decode()


def _place(cursor: str | None) -> tuple[str, str, str, str] | None:
    if cursor is None:
        return None
    try:
        domain, parser, version, role = orjson.loads(base64.urlsafe_b64decode(cursor.encode()))
        return str(domain), str(parser), str(version), str(role)
    except (ValueError, TypeError):
        raise InvalidInput(
            "the cursor is not one that a list gave", hint="Start again without a cursor."
        ) from None


async def parser_rates(
    database: Database, versions: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], ParserRate]:
    """How these versions do over all domains."""
    async with database.connection() as connection:
        rows = await store.select_parser_rates(
            connection, versions, recent=RECENT, good=GOOD_OUTCOMES
        )
    return {(row.parser, row.version): row for row in rows}
