"""`forager domains`: list, show, set, add, enable, disable, unblock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson, Limit
from forager.cli.output import note, say, show_json, show_page, show_table
from forager.cli.running import run
from forager.cli.words import long_time, short_time
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.fetch.domain_store import Domain
    from forager.fetch.domains import DomainChanges, Domains

Answer = TypeVar("Answer")

DEFAULT = "default"

app = typer.Typer(
    name="domains",
    help="Hosts, how fast each may be asked, and which are resting now.",
    no_args_is_help=True,
)

Host = Annotated[str, typer.Argument(metavar="HOST", help="A host, host:port, or a URL.")]
Delay = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS|default",
        help="Least time between two requests; `default` leaves it to each crawl.",
        show_default=False,
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        metavar="N|default",
        help="Most connections at the same time; `default` leaves it to each crawl.",
        show_default=False,
    ),
]
PerProxy = Annotated[
    bool | None,
    typer.Option(
        "--per-proxy-only/--in-total",
        help="Count the delay for each proxy alone, or for all requests together.",
        show_default=False,
    ),
]


@app.command("list")
def list_(
    context: typer.Context,
    active: Annotated[
        bool | None,
        typer.Option("--active/--inactive", help="Only these.", show_default=False),
    ] = None,
    slowed: Annotated[
        bool, typer.Option("--slowed", help="Only hosts that asked for fewer requests.")
    ] = False,
    limit: Limit = 100,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the last list ended.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List domains by name."""
    page = with_domains(
        context,
        lambda domains: domains.list_domains(
            active=active, slowed=slowed, limit=limit, cursor=cursor
        ),
    )
    if as_json:
        show_page(page.items, page.next_cursor)
        return
    if page.items:
        _show_list(page.items)
    else:
        note("There are no such domains. A crawl makes one for each host it meets.")
    if page.next_cursor is not None:
        note(f"There are more: --cursor {page.next_cursor}")


@app.command()
def show(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Show the domain that applies to a host: its own, or the nearest above it."""
    _show(with_domains(context, lambda domains: domains.get(host)), as_json)


@app.command("set")
def set_(
    context: typer.Context,
    host: Host,
    delay: Delay = None,
    concurrency: Concurrency = None,
    per_proxy_only: PerProxy = None,
    as_json: AsJson = False,
) -> None:
    """Change how a domain is treated; running crawls heed it within seconds."""
    changes = _changes(delay, concurrency, per_proxy_only)
    if not changes.named():
        raise InvalidInput(
            "nothing to set was given", hint="Give --delay, --concurrency or --per-proxy-only."
        )
    _show(with_domains(context, lambda domains: domains.set(host, changes)), as_json)


@app.command()
def add(
    context: typer.Context,
    host: Host,
    delay: Delay = None,
    concurrency: Concurrency = None,
    per_proxy_only: PerProxy = None,
    as_json: AsJson = False,
) -> None:
    """Give a host settings of its own; they also cover its subdomains that have none."""
    changes = _changes(delay, concurrency, per_proxy_only)
    _show(with_domains(context, lambda domains: domains.add(host, changes)), as_json)


@app.command()
def enable(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Allow a domain to be crawled again."""
    _switch(context, host, active=True, as_json=as_json)


@app.command()
def disable(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Send nothing to a domain and its subdomains any more, also from running crawls."""
    _switch(context, host, active=False, as_json=as_json)


@app.command()
def unblock(context: typer.Context, host: Host, as_json: AsJson = False) -> None:
    """Forget that a host asked for fewer requests."""
    _show(with_domains(context, lambda domains: domains.forget_slow_down(host)), as_json)


def with_domains(context: typer.Context, ask: Callable[[Domains], Awaitable[Answer]]) -> Answer:
    """The answer to one question about domains."""
    from forager.db.database import open_database
    from forager.fetch.domains import Domains

    settings = flags_of(context).load()

    async def answer() -> Answer:
        async with open_database(settings, name="forager cli") as database:
            return await ask(Domains(database))

    return run(answer())


def _switch(context: typer.Context, host: str, *, active: bool, as_json: bool) -> None:
    from forager.fetch.domains import DomainChanges

    changes = DomainChanges(active=active)
    _show(with_domains(context, lambda domains: domains.set(host, changes)), as_json)


def _changes(
    delay: str | None, concurrency: str | None, per_proxy_only: bool | None
) -> DomainChanges:
    from forager.fetch.domains import UNCHANGED, DomainChanges

    return DomainChanges(
        delay=UNCHANGED if delay is None else _number(delay, "--delay", float),
        concurrency=UNCHANGED
        if concurrency is None
        else _number(concurrency, "--concurrency", int),
        per_proxy_only=UNCHANGED if per_proxy_only is None else per_proxy_only,
    )


Number = TypeVar("Number", int, float)


def _number(text: str, flag: str, kind: type[Number]) -> Number | None:
    if text == DEFAULT:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(f"{flag} needs a number or `{DEFAULT}`, not {text!r}") from None


# --- how it looks --------------------------------------------------------------------------


def _show_list(domains: list[Domain]) -> None:
    columns: dict[str, dict[str, Any]] = {
        "DOMAIN": {"no_wrap": False, "overflow": "fold"},
        "DELAY": {"justify": "right"},
        "CONNECTIONS": {"justify": "right"},
        "IN USE": {"justify": "right"},
        "NOW": {},
    }
    show_table(columns, [_row(domain) for domain in domains])


def _row(domain: Domain) -> tuple[Any, ...]:
    return (
        domain.domain_name,
        _seconds(domain.crawl_delay_seconds),
        domain.max_concurrent_requests or DEFAULT,
        domain.connections,
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


def _show(domain: Domain, as_json: bool) -> None:
    if as_json:
        show_json(domain)
        return
    say(f"domain       {domain.domain_name}")
    say(f"state        {_now(domain)[0]}")
    if domain.blocked_until is not None:
        say(f"blocked      until {long_time(domain.blocked_until)}")
    if domain.slow_delay > 0:
        say(f"slowed down  by {domain.slow_delay:g} s more between requests")
    counted = "for each proxy alone" if domain.per_proxy_only else "for all requests together"
    say(f"delay        {_seconds(domain.crawl_delay_seconds)}, {counted}")
    say(f"connections  {domain.max_concurrent_requests or DEFAULT}")
    say(f"in use       {domain.connections} connections of {domain.runners} runners")


def _seconds(value: float | None) -> str:
    return DEFAULT if value is None else f"{value:g} s"
