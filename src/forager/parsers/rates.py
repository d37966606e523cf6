"""Success rates of parsers, and the alert when the rate of a domain falls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Connection, Database
from forager.events.event import EventKind, NewEvent
from forager.fetch.domains.service import domains_of
from forager.parsers.pattern import VersionRate, share
from forager.parsers.store import rates as store
from forager.parsers.store.rates import OLD_RATES, DomainRate, ParseCount, ParserRate
from forager.settings import Settings

__all__ = ["OLD_RATES", "DomainRate", "ParseCount", "ParserRate", "VersionRate", "share"]

# suspect pages are not good: a redesign of a shop causes values that violate rules, are rejected,
# or are supplied by the generic extraction
GOOD_OUTCOMES = ("ok",)
RECENT = 100
# fewer pages in the rest of the week are not representative
LEAST_EARLIER = 20


async def count_parses(connection: Connection, counts: Sequence[ParseCount]) -> None:
    """Count the outcomes of a batch, in the transaction that writes its products."""
    if counts:
        await store.add_counts(connection, counts)


async def check_rates(
    connection: Connection, domain_ids: Iterable[int], settings: Settings
) -> list[NewEvent]:
    """An alert for each domain whose newest pages are parsed much worse than those before.

    The newest pages are compared with the *other* pages of the last seven days. Otherwise the
    usual rate of a small domain would fall with them and never raise an alert. The caller records
    the events in the same transaction; `parser_alert_interval` limits them per domain.
    """
    pause = timedelta(seconds=settings.parser_alert_interval)
    return [
        _alert(rate)
        for rate in await _degraded(connection, domain_ids, settings)
        if await _may_alert(connection, rate.domain_id, pause)
    ]


async def degraded_domains(database: Database, settings: Settings) -> list[DomainRate]:
    """Domains with a recent alert whose pages are still read worse than before."""
    async with database.connection() as connection:
        alerted = await store.select_alerted(connection, EventKind.PARSER_DEGRADED)
        return await _degraded(connection, alerted, settings)


async def _degraded(
    connection: Connection, domain_ids: Iterable[int], settings: Settings
) -> list[DomainRate]:
    wanted = sorted(set(domain_ids))
    if not wanted:
        return []
    found = await store.select_domain_rates(
        connection, wanted, recent=settings.parser_alert_pages, good=GOOD_OUTCOMES
    )
    return [rate for rate in found if _is_degraded(rate, settings)]


def _is_degraded(rate: DomainRate, settings: Settings) -> bool:
    if rate.recent_pages < settings.parser_alert_pages or rate.earlier_pages < LEAST_EARLIER:
        return False
    recent = rate.recent_good / rate.recent_pages
    return recent < settings.parser_alert_share * rate.earlier_good / rate.earlier_pages


async def _may_alert(connection: Connection, domain_id: int, pause: timedelta) -> bool:
    """The lock stops another worker that sees the same drop now, the event a later one."""
    kind = EventKind.PARSER_DEGRADED
    return await store.hold_alert(connection, domain_id) and not await store.has_event_since(
        connection, kind, domain_id, pause
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


async def list_rates(
    database: Database, *, domain: str | None = None, cursor: str | None = None, limit: int = 100
) -> Page[VersionRate]:
    """The rates of each version and domain: of the last 100 pages, and of seven days."""
    check_limit(limit)
    async with database.connection() as connection:
        rows = await store.select_version_rates(
            connection,
            domain_ids=await domains_of(connection, domain) if domain else None,
            after=None if cursor is None else _place(cursor),
            limit=limit + 1,
            recent=RECENT,
            good=GOOD_OUTCOMES,
        )
    return page_of(rows, limit, _cursor)


def _cursor(rate: VersionRate) -> str:
    return encode_values(rate.domain, rate.parser, rate.version, rate.role)


def _place(cursor: str) -> tuple[str, str, str, str]:
    match decode_values(cursor):
        case [str(domain), str(parser), str(version), str(role)]:
            return domain, parser, version, role
    raise unknown_cursor()


async def parser_rates(
    database: Database, versions: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], ParserRate]:
    """How well each version reads pages, by parser and version."""
    rows = await database.run(
        store.select_parser_rates, versions, recent=RECENT, good=GOOD_OUTCOMES
    )
    return {(row.parser, row.version): row for row in rows}
