"""SQL of the history of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows


@dataclass(slots=True)
class HostCounts:
    """Requests to one domain: answers by class of status, and those that got no answer."""

    domain_id: int
    requests: int = 0
    redirects: int = 0
    client_errors: int = 0
    server_errors: int = 0
    unanswered: int = 0
    # of all answers; the delay is the longest
    seconds: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class HostMinute:
    """The same of one minute, as it was stored."""

    at: datetime
    requests: int
    redirects: int
    client_errors: int
    server_errors: int
    unanswered: int
    seconds: float
    delay: float


_COUNTS = RowArrays(
    "c", domain_id="bigint", requests="bigint", redirects="bigint", client_errors="bigint",
    server_errors="bigint", unanswered="bigint", seconds="float8", delay="float8",
)  # fmt: skip


async def add_counts(connection: Connection, counts: Sequence[HostCounts]) -> None:
    """Add to the present minute; domains that were deleted are left out."""
    await connection.execute(
        f"""
        WITH kept AS MATERIALIZED (
            SELECT d.id
              FROM domains d
             WHERE d.id = ANY(%(domain_id)s::bigint[])
             ORDER BY d.id
               FOR KEY SHARE
        )
        INSERT INTO host_minutes AS m (domain_id, at, requests, redirects, client_errors,
                                       server_errors, unanswered, seconds, delay)
        SELECT c.domain_id, date_trunc('minute', now()), c.requests, c.redirects, c.client_errors,
               c.server_errors, c.unanswered, c.seconds, c.delay
          FROM {_COUNTS}
          JOIN kept ON kept.id = c.domain_id
         -- in one order, so that two writers cannot wait for each other
         ORDER BY c.domain_id
            ON CONFLICT (domain_id, at) DO UPDATE
           SET requests = m.requests + excluded.requests,
               redirects = m.redirects + excluded.redirects,
               client_errors = m.client_errors + excluded.client_errors,
               server_errors = m.server_errors + excluded.server_errors,
               unanswered = m.unanswered + excluded.unanswered,
               seconds = m.seconds + excluded.seconds,
               delay = greatest(m.delay, excluded.delay)
        """,
        _COUNTS.values(counts),
    )


async def select_minutes(
    connection: Connection, domain_id: int, *, minutes: int
) -> list[HostMinute]:
    """The minutes with requests, the oldest first."""
    return await Rows(connection, HostMinute).all(
        """
        SELECT at, requests, redirects, client_errors, server_errors, unanswered, seconds, delay
          FROM host_minutes
         WHERE domain_id = %(id)s AND at > now() - %(minutes)s * interval '1 minute'
         ORDER BY at
        """,
        {"id": domain_id, "minutes": minutes},
    )


# minutes are many, and pages show six hours: they are kept for a day, or less if the history is
# shorter
OLD_MINUTES = OldRows(
    "host_minutes",
    "t.at < now() - least(%(days)s::float8, 1) * interval '1 day'",
    "t.at",
    key="ctid",
)
