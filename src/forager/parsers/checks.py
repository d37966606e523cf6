"""Checks of parsers: whether they are installed, work, and read as many pages as usual."""

from __future__ import annotations

from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.parsers.model import OFF
from forager.parsers.overview import overview
from forager.parsers.rates import degraded_domains
from forager.parsers.rollouts import list_bypassed
from forager.parsers.store.model_usage import select_usage
from forager.settings import Settings


@check(
    "bypassed_parsers", Topic.WORK, "Pages of a parser that keeps breaking are read generically."
)
async def check_bypassed(database: Database, _settings: Settings) -> Result:
    bypassed = await list_bypassed(database)
    if not bypassed:
        return "none"
    return warn(
        "parsers that keep breaking, so that their pages are read generically",
        "See forager errors list --type parse; fix the parser, or forager parsers rollback NAME.",
        found=[f"{each.parser} {each.version}: {each.reason}" for each in bypassed],
    )


@check(
    "success_rates",
    Topic.WORK,
    "Fewer pages of a domain give good products; its shop may have changed.",
)
async def check_rates(database: Database, settings: Settings) -> Result:
    """Whether domains are parsed much worse than usual."""
    degraded = await degraded_domains(database, settings)
    if not degraded:
        return "no drops"
    return warn(
        "domains parsed much worse than usual",
        "See forager parsers rates --domain; the shop may have been redesigned.",
        found=[
            f"{rate.domain} ({rate.recent_good / rate.recent_pages:.0%} of the last"
            f" {rate.recent_pages} pages, usually {rate.earlier_good / rate.earlier_pages:.0%})"
            for rate in degraded
        ],
    )


@check("product_model", Topic.WORK, "Fields that rules miss stay empty.")
async def check_model(database: Database, settings: Settings) -> Result:
    """The use of the model for products today, and whether its tokens are used up."""
    if settings.product_model == OFF:
        return "off"
    used = await database.run(select_usage)
    tokens, limit = used.prompt_tokens + used.completion_tokens, settings.product_model_daily_tokens
    cost = tokens / 1_000_000 * settings.product_model_cost
    message = (
        f"{used.requests:,} requests today, {used.failures:,} failed; {tokens:,} of {limit:,}"
        f" tokens, cost {cost:.2f}"
    )
    if used.failures * 2 > used.requests:
        return warn(message, "Check product_model, product_model_name and product_model_key.")
    if tokens >= 0.95 * limit:
        return warn(message, "Raise product_model_daily_tokens, or wait until tomorrow (UTC).")
    return message


@check("parsers", Topic.WORK, "Pages of that shop are parsed generically, or not at all.")
async def check_parsers(database: Database, settings: Settings) -> Result:
    """Whether every parser can be loaded here, and every version that was rolled out is there."""
    found = await overview(database, settings)
    missing = [f"{each.name} {each.version}" for each in found.parsers if each.state == "missing"]
    message = f"{len(found.parsers) - len(missing)} versions"
    if found.broken:
        broken = [f"{each.origin}: {each.reason}" for each in found.broken]
        return warn(f"{message}; cannot be loaded", "Fix or remove that plug-in.", found=broken)
    if missing:
        return warn(
            f"{message}; rolled out, and not installed here",
            "Install it again, or roll out another: forager parsers rollout NAME VERSION",
            found=missing,
        )
    lacking = [
        f"{each.name} {each.version}: {', '.join(each.missing_on)}"
        for each in found.parsers
        if each.missing_on
    ]
    if lacking:
        return warn(
            f"{message}; not installed on every worker",
            "Install the version there and restart the worker.",
            found=lacking,
        )
    tried = [f"{each.name} {each.version}" for each in found.parsers if each.is_first]
    return (
        f"{message}; tried beside the generic extraction: {', '.join(tried)}" if tried else message
    )
