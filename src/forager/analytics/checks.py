"""Check of ClickHouse."""

from __future__ import annotations

from forager.analytics.clickhouse import connected
from forager.analytics.loading import complete_until
from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.settings import Settings


@check(
    "clickhouse",
    Topic.WORK,
    "Queries are answered from the data on the server, without newer rows.",
)
async def check_clickhouse(_database: Database, settings: Settings) -> Result:
    if settings.clickhouse_url is None:
        return "not configured"
    async with connected(settings.clickhouse_url) as server:
        until = await complete_until(server)
    if until is None:
        return warn("nothing was loaded yet", "Run forager analytics sync.")
    return f"loaded, with everything before {until:%Y-%m-%d %H:%M} UTC"
