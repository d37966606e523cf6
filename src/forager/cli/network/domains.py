"""`forager domains`: list, show, set, add, enable, disable, unblock, alarms, resolve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer

from forager.cli.options import Cursor, Limit, option
from forager.cli.output import Columns, counted, duration, long_time, say, short_time, show_rows
from forager.cli.running import CommandContext, answers, lists, with_services
from forager.errors import InvalidInput
from forager.fetch.budgets.budget import DEFAULT_CONCURRENCY, default_delay
from forager.fetch.domains import Domain
from forager.fetch.domains.service import DomainChanges
from forager.settings.crawling import parse_render
from forager.tasks.alarms import Decision, decide_alarm, list_alarms
from forager.tasks.task import parse_every

DEFAULT = "default"

app = typer.Typer(
    help="Hosts, their crawl settings, and which are throttled now.", no_args_is_help=True
)

Host = Annotated[str, typer.Argument(metavar="HOST", help="A host, host:port, or a URL.")]


@dataclass(frozen=True, slots=True)
class DomainOptions:
    """Settings of a domain; `default` removes one."""

    delay: str | None = option(
        "Minimum time between two requests; `default` leaves it to each crawl.",
        metavar="SECONDS|default",
    )
    concurrency: str | None = option(
        "Maximum connections at the same time; `default` leaves it to each crawl.",
        metavar="N|default",
    )
    per_proxy_only: bool | None = option(
        "Apply the delay to each proxy separately, or to all requests together.",
        "--per-proxy-only/--in-total",
    )
    proxy_rate: str | None = option(
        "Maximum requests per second through each proxy: 1 to 5.", metavar="N|default"
    )
    every: str | None = option(
        "Recrawl interval of its tasks: 30m, 6h, 1d, 1w; applies from their next visit.",
        metavar="6h|default",
    )
    adaptive: bool | None = option(
        "Shorten the interval when prices change, and lengthen it when they do not.",
        "--adaptive/--no-adaptive",
    )
    min_every: str | None = option("Shortest adapted interval.", metavar="1h|default")
    max_every: str | None = option("Longest adapted interval.", metavar="30d|default")
    currency: str | None = option("The currency its prices must have.", metavar="EUR|default")
    proxies: bool | None = option("Whether its tasks use the proxy pool.", "--proxies/--no-proxies")
    allow_private: bool | None = option(
        "Whether its tasks may reach private addresses.", "--allow-private/--no-allow-private"
    )
    region: str | None = option(
        "Only workers in this region crawl it; `default`: all workers.",
        metavar="NAME|default",
    )
    render: str | None = option(
        "Render pages in a browser: where the static response lacks the content or the price"
        " (auto), always, or never; `default`: auto.",
        metavar="auto|always|never|default",
    )
    render_url: list[str] | None = option(
        "Always render URLs that match this pattern, such as /app/* (repeatable); `default`: none.",
        metavar="PATTERN|default",
    )

    def value(self) -> DomainChanges:
        given: dict[str, Any] = {
            "delay": _parsed(self.delay, _number("--delay", float)),
            "concurrency": _parsed(self.concurrency, _number("--concurrency", int)),
            "per_proxy_only": self.per_proxy_only,
            "proxy_rate": _parsed(self.proxy_rate, _number("--proxy-rate", float)),
            "every": _parsed(self.every, parse_every),
            "adaptive": self.adaptive,
            "shortest": _parsed(self.min_every, parse_every),
            "longest": _parsed(self.max_every, parse_every),
            "currency": _parsed(self.currency, str.upper),
            "proxies": self.proxies,
            "allow_private": self.allow_private,
            "region": _parsed(self.region, str),
            "render": _parsed(self.render, parse_render),
            "render_urls": [url for url in self.render_url if url != DEFAULT]
            if self.render_url
            else None,
        }
        named = {name: value for name, value in given.items() if value is not None}
        changes = {n: None if v is _UNSET else v for n, v in named.items()}
        return cast(DomainChanges, changes)


# the value of an option that was given as `default`
_UNSET = object()


def _parsed(text: str | None, parse: Callable[[str], Any]) -> Any:
    if text is None:
        return None
    return _UNSET if text == DEFAULT else parse(text)


def _number(flag: str, kind: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            raise InvalidInput(f"{flag} needs a number or `{DEFAULT}`, not {text!r}") from None

    return parse


Changes = Annotated[DomainChanges, DomainOptions]


def _now(domain: Domain) -> tuple[str, str]:
    if not domain.is_active:
        return "disabled", "dim"
    if domain.blocked_until is not None:
        return f"blocked until {short_time(domain.blocked_until)}", "red"
    if domain.slow_delay > 0:
        return f"slowed down by {domain.slow_delay:g} s", "yellow"
    return "active", "green"


def _show(domain: Domain) -> None:
    say(f"domain       {domain.domain_name}")
    say(f"state        {_now(domain)[0]}")
    if domain.blocked_until is not None:
        say(f"blocked      until {long_time(domain.blocked_until)}")
    if domain.slow_delay > 0:
        say(f"slowed down  by {domain.slow_delay:g} s more between requests")
    counted = "for each proxy alone" if domain.per_proxy_only else "for all requests together"
    delay = domain.crawl_delay_seconds
    default = f"{DEFAULT} ({default_delay(domain.domain_name):g} s)"
    say(f"delay        {default if delay is None else _seconds(delay)}, {counted}")
    if domain.proxy_rate is not None:
        say(f"per proxy    at most {domain.proxy_rate:g} requests/s")
    connections = domain.max_concurrent_requests or f"{DEFAULT} ({DEFAULT_CONCURRENCY})"
    say(f"connections  {connections}")
    say(f"in use       {domain.connections} connections of {domain.runners} runners")
    if domain.region is not None:
        say(f"region       {domain.region}: only its workers crawl it")
    if domain.render is not None or domain.render_urls:
        urls = f", and {', '.join(domain.render_urls)}" if domain.render_urls else ""
        say(f"rendering    {domain.render or 'auto'}{urls}")
    for name, value in _task_facts(domain).items():
        say(f"{name:13}{value}")


def _task_facts(domain: Domain) -> dict[str, str]:
    """Task settings of a domain that differ from the defaults."""
    facts = {
        "tasks": domain.task_hold,
        "every": _length(domain.crawl_frequency),
        "schedule": _adaptation(domain),
        "currency": domain.currency,
        "proxies": {True: "yes", False: "no", None: None}[domain.use_proxies],
        "private": "addresses allowed" if domain.allow_private else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


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
    slowed: bool = option("Only rate-limited hosts.", "--slowed", default=False),
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


@app.command("set")
@answers(_show_changed, document=lambda changed: changed[0] if len(changed) == 1 else changed)
async def set_(
    here: CommandContext,
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOST...", help="Hosts or URLs; '*.example.com' is a pattern."),
    ],
    changes: Changes,
) -> object:
    """Change the crawl settings of domains; running crawls apply them within seconds."""
    if not changes:
        raise InvalidInput(
            "nothing to set was given",
            hint="Give --delay, --concurrency, --every or another option; see --help.",
        )
    return await here.domains.set_many(hosts, changes)


@app.command()
@answers(_show)
async def add(here: CommandContext, host: Host, changes: Changes) -> object:
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
    document=lambda found: [
        {"domain": a.domain, "reason": a.reason, "raised_at": a.raised_at} for a in found
    ],
)
async def alarms(here: CommandContext) -> object:
    """List domains whose results are withheld because they look wrong."""
    return await list_alarms(here.database)


@app.command()
def resolve(
    context: typer.Context,
    host: Host,
    accept: bool | None = option(
        "Store the withheld results, or discard them.", "--accept/--discard"
    ),
) -> None:
    """End the alarm of a domain: accept or discard its withheld results."""
    if accept is None:
        raise InvalidInput("choose what to do with the withheld results: --accept or --discard")
    decision = Decision.ACCEPT if accept else Decision.DISCARD
    tasks = with_services(context, lambda here: decide_alarm(here.database, host, decision))
    say(f"Withheld results {decision.value}ed: {counted(tasks, 'task')}.")
