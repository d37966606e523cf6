"""What is kept of a host's robots.txt, for people to look at; nobody is asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Database
from forager.fetch.robots import store
from forager.fetch.robots.gate import origin_of

MAX_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class RobotsReport:
    """`is_waited_for`: the host could not say its rules, and nothing is fetched until it can."""

    origin: str
    status: int
    text: str
    is_cut: bool
    fetched_at: datetime
    expires_at: datetime
    crawl_delay: float | None
    is_waited_for: bool
    notes: tuple[str, ...]


async def robots_report(database: Database, url: str, agent: str) -> RobotsReport | None:
    """The file that counts for a URL; None if it was not fetched yet."""
    origin = origin_of(url)
    async with database.connection() as connection:
        kept, now = await store.select_robots(connection, origin)
    if kept is None:
        return None
    rules = kept.robots(now)
    return RobotsReport(
        origin=origin,
        status=kept.status,
        text=kept.body[:MAX_SHOWN].decode("utf-8", "replace"),
        is_cut=len(kept.body) > MAX_SHOWN,
        fetched_at=kept.fetched_at,
        expires_at=kept.expires_at,
        crawl_delay=rules.crawl_delay(agent) if rules else None,
        is_waited_for=rules is None,
        notes=rules.notes if rules else (),
    )
