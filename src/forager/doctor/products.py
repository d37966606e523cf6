"""Products: dead letters, proxies, webhooks and parsers."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.db.database import Database
from forager.doctor.check import Check, ok, warn
from forager.fetch.proxies.record import ProxyState
from forager.fetch.proxies.service import Proxies
from forager.parsers.overview import overview
from forager.parsers.rates import degraded_domains
from forager.parsers.store.rollouts import select_bypassed
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.alarms import list_alarms
from forager.tasks.dead_letters import LetterFilter, group_letters
from forager.webhooks.service import Webhooks

# of lists that may be long: what is wrong with a thousand is wrong with the rest
LOOKED_AT = 1000
NAMED = 3


async def check_dead_letters(database: Database, _settings: Settings) -> Check:
    groups = await group_letters(database, LetterFilter(), limit=LOOKED_AT)
    if not groups:
        return ok("dead letters", "none")
    number = sum(group.count for group in groups)
    often = groups[0]
    return warn(
        "dead letters",
        f"{number} tasks have failed permanently, most often at {often.domain}: {often.message}",
        "See forager dead-letters list, then retry or drop them.",
    )


async def check_bypassed(database: Database, _settings: Settings) -> Check:
    async with database.connection() as connection:
        bypassed = await select_bypassed(connection)
    if not bypassed:
        return ok("bypassed parsers", "none")
    names = "; ".join(f"{parser}: {reason}" for parser, reason in bypassed[:NAMED])
    return warn(
        "bypassed parsers",
        f"{len(bypassed)} parsers keep breaking, so that their pages are read generically: {names}",
        "See forager errors list --type parse; roll the parser back or fix it.",
    )


async def check_rates(database: Database, settings: Settings) -> Check:
    """Whether domains are parsed much worse than usual."""
    degraded = await degraded_domains(database, settings)
    if not degraded:
        return ok("success rates", "no drops")
    names = ", ".join(
        f"{rate.domain} ({rate.recent_good / rate.recent_pages:.0%} of the last"
        f" {rate.recent_pages} pages, usually {rate.earlier_good / rate.earlier_pages:.0%})"
        for rate in degraded[:NAMED]
    )
    return warn(
        "success rates",
        f"{len(degraded)} domains are parsed much worse than usual: {names}",
        "See forager parsers rates --domain; the shop may have been redesigned.",
    )


async def check_alarms(database: Database, _settings: Settings) -> Check:
    alarms = await list_alarms(database)
    if not alarms:
        return ok("domain alarms", "none")
    names = ", ".join(f"{alarm.domain} ({alarm.reason})" for alarm in alarms[:NAMED])
    return warn(
        "domain alarms",
        f"results of {len(alarms)} domains are held: {names}",
        "See forager domains alarms, then accept or discard them with forager domains resolve.",
    )


async def check_proxies(database: Database, settings: Settings) -> Check:
    found = (await Proxies(database, Vault(settings)).page(limit=LOOKED_AT)).items
    failing = [proxy for proxy in found if proxy.state is ProxyState.FAILING]
    active = sum(proxy.state is ProxyState.ACTIVE for proxy in found)
    finding = f"{active} of {len(found)} in use" if found else "none"
    if not failing:
        return ok("proxies", finding)
    names = ", ".join(
        f"{proxy.host}:{proxy.port} ({proxy.last_failure_reason or 'no reason given'})"
        for proxy in failing[:NAMED]
    )
    return warn(
        "proxies",
        f"{finding}; {len(failing)} failing: {names}",
        "They are tested again automatically; see forager proxies list.",
    )


async def check_webhooks(database: Database, settings: Settings) -> Check:
    found = (await Webhooks(database, Vault(settings)).page(limit=LOOKED_AT)).items
    now = datetime.now(UTC)
    resting = [
        webhook
        for webhook in found
        if webhook.is_active and webhook.rests_until is not None and webhook.rests_until > now
    ]
    waiting = sum(webhook.waiting for webhook in found)
    finding = f"{len(found)}, {waiting} messages waiting" if found else "none"
    if not resting:
        return ok("webhooks", finding)
    names = ", ".join(f"{each.url} ({each.failures} failures)" for each in resting[:NAMED])
    return warn(
        "webhooks",
        f"{finding}; {len(resting)} rest because they fail: {names}",
        f"See forager webhooks deliveries {resting[0].id}; forager webhooks test sends one now.",
    )


async def check_parsers(database: Database, settings: Settings) -> Check:
    """Whether every parser can be loaded here, and every version that was rolled out is there."""
    found = await overview(database, settings)
    missing = [f"{each.name} {each.version}" for each in found.parsers if each.state == "missing"]
    finding = f"{len(found.parsers) - len(missing)} versions"
    if found.broken:
        broken = "; ".join(f"{each.origin}: {each.reason}" for each in found.broken[:NAMED])
        return warn(
            "parsers", f"{finding}; cannot be loaded: {broken}", "Fix or remove that plug-in."
        )
    if missing:
        return warn(
            "parsers",
            f"{finding}; rolled out, and not installed here: {', '.join(missing[:NAMED])}",
            "Install it again, or roll out another: forager parsers rollout NAME VERSION",
        )
    lacking = [each for each in found.parsers if each.missing_on]
    if lacking:
        names = "; ".join(
            f"{each.name} {each.version}: {', '.join(each.missing_on[:NAMED])}"
            for each in lacking[:NAMED]
        )
        return warn(
            "parsers",
            f"{finding}; not installed on every worker: {names}",
            "Install the version there and restart the worker.",
        )
    return ok("parsers", finding)
