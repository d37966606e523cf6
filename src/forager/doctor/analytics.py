"""The ClickHouse server, where there is one."""

from __future__ import annotations

from forager.analytics.clickhouse import connected
from forager.analytics.loading import complete_until
from forager.doctor.check import Check, failed_with, ok, warn
from forager.errors import ForagerError
from forager.settings import Settings


async def check_clickhouse(settings: Settings) -> Check:
    assert settings.clickhouse_url is not None
    try:
        async with connected(settings.clickhouse_url) as server:
            until = await complete_until(server)
    except ForagerError as error:
        return failed_with("clickhouse", error)
    if until is None:
        return warn("clickhouse", "nothing was loaded yet", "Run forager analytics sync.")
    return ok("clickhouse", f"loaded, with everything before {until:%Y-%m-%d %H:%M} UTC")
