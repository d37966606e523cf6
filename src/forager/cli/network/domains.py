"""`forager domains`: list, show, set, add, enable, disable, unblock, alarms, resolve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from forager.cli.options import AsJson, Cursor, Limit, grouped, option
from forager.cli.output import (
    counted,
    duration,
    long_time,
    say,
    short_time,
    show_json,
    show_rows,
    show_table,
)
from forager.cli.running import CommandContext, answers, lists, with_database, with_services
from forager.errors import InvalidInput
from forager.settings.crawling import parse_render

if TYPE_CHECKING:
    from datetime import timedelta

    from forager.fetch.domains import Domain
    from forager.fetch.domains.service import DomainChanges
    from forager.tasks.alarms import DomainAlarm

DEFAULT = "default"

app = typer.Typer(
    help="Hosts, their crawl settings, and which are throttled now.", no_args_is_help=True
)

Host = Annotated[str, typer.Argument(metavar="HOST", help="A host, host:port, or a URL.")]


@dataclass(frozen=True, slots=True)
class DomainOptions:
    """Options of `set` and `add`: what was not given is None."""

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

    def changes(self) -> DomainChanges:
        return _changes(
            delay=_read(self.delay, lambda text: _number(text, "--delay", float)),
            concurrency=_read(self.concurrency, lambda text: _number(text, "--concurrency", int)),
            per_proxy_only=self.per_proxy_only,
            proxy_rate=_read(self.proxy_rate, lambda text: _number(text, "--proxy-rate", float)),
            every=_read(self.every, _interval),
            adaptive=self.adaptive,
            shortest=_read(self.min_every, _interval),
            longest=_read(self.max_every, _interval),
            currency=_read(self.currency, str.upper),
            proxies=self.proxies,
            allow_private=self.allow_private,
            region=_read(self.region, str),
            render=_read(self.render, parse_render),
            render_urls=[each for each in self.render_url if each != DEFAULT]
            if self.render_url
            else None,
        )


def _row(domain: Domain) -> tuple[Any, ...]:
    return (
        domain.domain_name,
        _seconds(domain.crawl_delay_seconds),
        domain.max_concurrent_requests or DEFAULT,
        domain.connections,
        domain.region,
        _now(domain),
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
    say(f"domain       {domain.domain_name}")
    say(f"state        {_now(domain)[0]}")
    if domain.blocked_until is not None:
        say(f"blocked      until {long_time(domain.blocked_until)}")
    if domain.slow_delay > 0:
        say(f"slowed down  by {domain.slow_delay:g} s more between requests")
    counted = "for each proxy alone" if domain.per_proxy_only else "for all requests together"
    say(f"delay        {_seconds(domain.crawl_delay_seconds)}, {counted}")
    if domain.proxy_rate is not None:
        say(f"per proxy    at most {domain.proxy_rate:g} requests/s")
    say(f"connections  {domain.max_concurrent_requests or DEFAULT}")
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
        "proxies": None if domain.use_proxies is None else _yes_or_no(domain.use_proxies),
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


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _seconds(value: float | None) -> str:
    return DEFAULT if value is None else f"{value:g} s"


def _show_list(domains: Sequence[Domain]) -> None:
    columns = "DOMAIN~, DELAY>, CONNECTIONS>, IN USE>, REGION, NOW"
    show_table(columns, [_row(domain) for domain in domains])


@app.command("list")
@lists(_show_list, none="No domains match. A crawl adds one for each host.")
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


@app.command("set")
@grouped
def set_(
    context: typer.Context,
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOST...", help="Hosts or URLs; '*.example.com' is a pattern."),
    ],
    options: DomainOptions,
    as_json: AsJson = False,
) -> None:
    """Change the crawl settings of domains; running crawls apply them within seconds."""
    changes = options.changes()
    if not changes:
        raise InvalidInput(
            "nothing to set was given",
            hint="Give --delay, --concurrency, --every or another option; see --help.",
        )
    changed = with_services(context, lambda here: here.domains.set_many(hosts, changes))
    if as_json:
        return show_json(changed[0] if len(changed) == 1 else changed)
    return _show(changed[0]) if len(changed) == 1 else _show_list(changed)


@app.command()
@grouped
def add(
    context: typer.Context, host: Host, options: DomainOptions, as_json: AsJson = False
) -> None:
    """Add crawl settings for a host; they also apply to subdomains that have none."""
    changes = options.changes()
    added = with_services(context, lambda here: here.domains.add(host, changes))
    return show_json(added) if as_json else _show(added)


@app.command()
@answers(_show)
async def enable(here: CommandContext, host: Host) -> object:
    """Allow a domain to be crawled again."""
    return await here.domains.set(host, _changes(active=True))


@app.command()
@answers(_show)
async def disable(here: CommandContext, host: Host) -> object:
    """Stop all requests to a domain and its subdomains, including those of running crawls."""
    return await here.domains.set(host, _changes(active=False))


@app.command()
@answers(_show)
async def unblock(here: CommandContext, host: Host) -> object:
    """Reset the slow-down of a host."""
    return await here.domains.forget_slow_down(host)


def _show_alarms(found: Sequence[DomainAlarm]) -> None:
    show_rows({"DOMAIN": "domain", "REASON": "reason", "RAISED": "raised_at"}, found)
    if not found:
        say("No domain has an alarm.")


@app.command()
@answers(
    _show_alarms,
    document=lambda found: [
        {"domain": a.domain, "reason": a.reason, "raised_at": a.raised_at} for a in found
    ],
)
async def alarms(here: CommandContext) -> object:
    """List domains whose results are held because they look wrong."""
    from forager.tasks.alarms import list_alarms

    return await list_alarms(here.database)


@app.command()
def resolve(
    context: typer.Context,
    host: Host,
    accept: bool | None = option("Store the held results, or discard them.", "--accept/--discard"),
) -> None:
    """End the alarm of a domain: accept or discard its held results."""
    if accept is None:
        raise InvalidInput("choose what to do with the held results: --accept or --discard")
    from forager.tasks.alarms import Decision, decide_alarm

    decision = Decision.ACCEPT if accept else Decision.DISCARD
    tasks = with_database(context, lambda database, _: decide_alarm(database, host, decision))
    say(f"Held results {decision.value}ed: {counted(tasks, 'task')}.")


def _changes(**given: Any) -> DomainChanges:
    """The given options; `default` becomes None."""
    changes: Any = {
        name: None if value is _UNSET else value
        for name, value in given.items()
        if value is not None
    }
    checked: DomainChanges = changes
    return checked


_UNSET = object()


def _read(text: str | None, parse: Callable[[str], Any]) -> Any:
    """An option's value; `default` is one too."""
    if text is None:
        return None
    return _UNSET if text == DEFAULT else parse(text)


def _interval(text: str) -> timedelta:
    from forager.tasks.task import parse_every

    return parse_every(text)


Number = TypeVar("Number", int, float)


def _number(text: str, flag: str, kind: type[Number]) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{flag} needs a number or `{DEFAULT}`, not {text!r}") from None
