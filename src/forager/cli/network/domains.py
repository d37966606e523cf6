"""`forager domains`: list, show, set, add, enable, disable, unblock, alarms, resolve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from forager.api.models.network import DomainSettings
from forager.cli.model_flags import DEFAULT, ModelFlags
from forager.cli.options import Cursor, Limit, option, switch
from forager.cli.output import (
    Columns,
    counted,
    duration,
    fields_of,
    long_time,
    say,
    short_time,
    show_facts,
    show_rows,
)
from forager.cli.running import CommandContext, answers, lists, runs
from forager.errors import InvalidInput
from forager.fetch.budgets.budget import DEFAULT_CONCURRENCY, default_delay
from forager.fetch.domains import Domain
from forager.fetch.domains.service import DomainChanges
from forager.tasks.alarms import Decision, decide_alarm, list_alarms

app = typer.Typer(
    help="Hosts, their crawl settings, and which are throttled now.", no_args_is_help=True
)

Host = Annotated[str, typer.Argument(metavar="HOST", help="A host, host:port, or a URL.")]


def _changes(to: Callable[[DomainSettings], DomainChanges]) -> ModelFlags:
    return ModelFlags(
        DomainSettings,
        to=to,
        removable=True,
        without=("active",),
        per_proxy_only="--per-proxy-only/--in-total",
        render_urls="--render-url",
    )


def _now(domain: Domain) -> tuple[str, str]:
    if not domain.is_active:
        return "disabled", "dim"
    if domain.blocked_until is not None:
        return f"blocked until {short_time(domain.blocked_until)}", "red"
    if domain.slow_delay > 0:
        return f"slowed down by {domain.slow_delay:g} s", "yellow"
    return "active", "green"


def _show(domain: Domain) -> None:
    scope = "for each proxy alone" if domain.per_proxy_only else "for all requests together"
    delay = domain.crawl_delay_seconds
    default = f"{DEFAULT} ({default_delay(domain.domain_name):g} s)"
    blocked, slow = domain.blocked_until, domain.slow_delay
    urls = f", and {', '.join(domain.render_urls)}" if domain.render_urls else ""
    facts = {
        "domain": domain.domain_name,
        "state": _now(domain)[0],
        "blocked": None if blocked is None else f"until {long_time(blocked)}",
        "slowed down": f"by {slow:g} s more between requests" if slow > 0 else None,
        "delay": f"{default if delay is None else _seconds(delay)}, {scope}",
        "per proxy": domain.proxy_rate and f"at most {domain.proxy_rate:g} requests/s",
        "connections": domain.max_concurrent_requests or f"{DEFAULT} ({DEFAULT_CONCURRENCY})",
        "in use": f"{domain.connections} connections of {domain.runners} runners",
        "region": domain.region and f"{domain.region}: only its workers crawl it",
        "rendering": f"{domain.render or 'auto'}{urls}" if domain.render or urls else None,
        "tasks": domain.task_hold,
        "every": _length(domain.crawl_frequency),
        "schedule": _adaptation(domain),
        "currency": domain.currency,
        "proxies": {True: "yes", False: "no", None: None}[domain.use_proxies],
        "private": "addresses allowed" if domain.allow_private else None,
    }
    show_facts(facts)


def _adaptation(domain: Domain) -> str | None:
    bounds = [_length(domain.min_frequency), _length(domain.max_frequency)]
    words = [f"{word} {bound}" for word, bound in zip(("from", "to"), bounds, strict=True) if bound]
    if domain.adaptive is not None:
        words.insert(0, "adaptive" if domain.adaptive else "not adaptive")
    return " ".join(words) or None


def _length(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def _seconds(value: float | None) -> str:
    return DEFAULT if value is None else f"{value:g} s"


DOMAIN_COLUMNS: Columns = {
    "DOMAIN~": "domain_name",
    "DELAY>": lambda domain: _seconds(domain.crawl_delay_seconds),
    "CONNECTIONS>": lambda domain: domain.max_concurrent_requests or DEFAULT,
    "IN USE>": "connections",
    "REGION": "region",
    "NOW": _now,
}


@app.command("list")
@lists(DOMAIN_COLUMNS, none="No domains match. A crawl adds one for each host.")
async def list_(
    here: CommandContext,
    active: bool | None = option("Only active or inactive domains.", "--active/--inactive"),
    slowed: bool = switch("Only rate-limited hosts.", "--slowed"),
    region: str | None = option("Only domains of this region."),
    limit: Limit = 100,
    cursor: Cursor = None,
) -> object:
    """List domains by name."""
    return await here.domains.list_domains(
        active=active, slowed=slowed, region=region, limit=limit, cursor=cursor
    )


@app.command()
@answers(_show)
async def show(here: CommandContext, host: Host) -> object:
    """Show the domain settings of a host: its own, or those of its nearest parent domain."""
    return await here.domains.get(host)


def _show_changed(changed: Sequence[Domain]) -> None:
    if len(changed) == 1:
        _show(changed[0])
    else:
        show_rows(DOMAIN_COLUMNS, changed)


def _some_changes(settings: DomainSettings) -> DomainChanges:
    if not settings.model_fields_set:
        raise InvalidInput(
            "nothing to set was given",
            hint="Give --delay, --concurrency, --every or another option; see --help.",
        )
    return settings.changes()


@app.command("set")
@answers(_show_changed, document=lambda changed: changed[0] if len(changed) == 1 else changed)
async def set_(
    here: CommandContext,
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOST...", help="Hosts or URLs; '*.example.com' is a pattern."),
    ],
    changes: Annotated[DomainChanges, _changes(to=_some_changes)],
) -> object:
    """Change the crawl settings of domains; running crawls apply them within seconds."""
    return await here.domains.set_many(hosts, changes)


@app.command()
@answers(_show)
async def add(
    here: CommandContext,
    host: Host,
    changes: Annotated[DomainChanges, _changes(to=DomainSettings.changes)],
) -> object:
    """Add crawl settings for a host; they also apply to subdomains that have none."""
    return await here.domains.add(host, changes)


@app.command()
@answers(_show)
async def enable(here: CommandContext, host: Host) -> object:
    """Allow a domain to be crawled again."""
    return await here.domains.set(host, DomainChanges(active=True))


@app.command()
@answers(_show)
async def disable(here: CommandContext, host: Host) -> object:
    """Stop all requests to a domain and its subdomains, including those of running crawls."""
    return await here.domains.set(host, DomainChanges(active=False))


@app.command()
@answers(_show)
async def unblock(here: CommandContext, host: Host) -> object:
    """Reset the slow-down of a host."""
    return await here.domains.forget_slow_down(host)


@app.command()
@answers(
    {"DOMAIN": "domain", "REASON": "reason", "RAISED": "raised_at"},
    none="No domain has an alarm.",
    document=lambda found: [fields_of(each, "domain", "reason", "raised_at") for each in found],
)
async def alarms(here: CommandContext) -> object:
    """List domains whose results are withheld because they look wrong."""
    return await list_alarms(here.database)


@dataclass(frozen=True, slots=True)
class DecisionOption:
    accept: bool | None = option(
        "Store the withheld results, or discard them.", "--accept/--discard"
    )

    def value(self) -> Decision:
        if self.accept is None:
            raise InvalidInput("choose what to do with the withheld results: --accept or --discard")
        return Decision.ACCEPT if self.accept else Decision.DISCARD


@app.command()
@runs
async def resolve(
    here: CommandContext, host: Host, decision: Annotated[Decision, DecisionOption]
) -> None:
    """End the alarm of a domain: accept or discard its withheld results."""
    tasks = await decide_alarm(here.database, host, decision)
    say(f"Withheld results {decision.value}ed: {counted(tasks, 'task')}.")
