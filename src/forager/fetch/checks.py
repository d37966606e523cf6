"""Checks of the slots of hosts and of proxies."""

from __future__ import annotations

from forager.checks import MAX_EXAMPLES, Result, Topic, check, warn
from forager.db.database import Database
from forager.fetch.domains.store import select_stray_slots
from forager.fetch.proxies.proxy import ProxyState
from forager.fetch.proxies.service import Proxies
from forager.secrets import Vault
from forager.settings import Settings

LISTED_PROXIES = 1000


@check("slots", Topic.WORK, "Requests to a host wait for its next slot.")
async def check_slots(database: Database, _settings: Settings) -> Result:
    stray = await database.run(select_stray_slots, limit=MAX_EXAMPLES)
    if not stray:
        return "none is further away than the delay of its host"
    return warn(
        "hosts whose next slot or block was written under a later time: the clock of the database"
        " was set back",
        "The next request to such a host resets both. Check the clock (NTP) of the server.",
        found=stray,
    )


@check("proxies", Topic.WORK, "Fewer proxies mean fewer requests, and more load on the others.")
async def check_proxies(database: Database, settings: Settings) -> Result:
    proxies = (await Proxies(database, Vault(settings)).page(limit=LISTED_PROXIES)).items
    if not proxies:
        return "none"
    active = sum(proxy.state is ProxyState.ACTIVE for proxy in proxies)
    failing = [
        f"{proxy.host}:{proxy.port} ({proxy.last_failure_reason or 'no reason given'})"
        for proxy in proxies
        if proxy.state is ProxyState.FAILING
    ]
    message = f"{active} of {len(proxies)} in use"
    if not failing:
        return message
    return warn(
        f"{message}; failing proxies",
        "They are tested again automatically; see forager proxies list.",
        found=failing,
    )
