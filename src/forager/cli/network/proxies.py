"""`forager proxies`: add, list, set, costs, test, enable, disable, remove."""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.amounts import parse_duration, size_in_words
from forager.cli.failures import FAILED, complain
from forager.cli.options import AllowPrivate, AsJson, Limit, argument, flags_of, option
from forager.cli.output import (
    Columns,
    note,
    say,
    show_json,
    show_rows,
)
from forager.cli.running import CommandContext, lists, with_database, with_services
from forager.errors import ForagerError, InvalidInput, NotAllowed

if TYPE_CHECKING:
    from forager.fetch.client import ClientOptions
    from forager.fetch.proxies.costs import CostLine, CostReport
    from forager.fetch.proxies.probe import Trial
    from forager.fetch.proxies.record import ProxyRecord
    from forager.fetch.proxies.service import Proxies, ProxyChanges

MAX_FILE_BYTES = 10 * 1024 * 1024
_STYLES = {"active": "green", "failing": "red", "disabled": "yellow"}


DEFAULT = "default"

Region = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|default",
        help="Only workers in this region use it; `default`: all workers.",
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT/UNIT|default", help="Price: 0.002/request or 3.50/GB; `default`: unknown."
    ),
]
Currency = Annotated[
    str | None, typer.Option(metavar="USD", help="Currency of the cost.", show_default="USD")
]


def changes_of(region: str | None, cost: str | None, currency: str | None) -> ProxyChanges:
    """What was given; `default` takes a value back."""
    from forager.fetch.proxies.record import parse_cost

    if currency is not None and cost in (None, DEFAULT):
        raise InvalidInput("--currency says what the amount of --cost is in", hint="Give --cost.")
    given: ProxyChanges = {}
    if region is not None:
        given["region"] = None if region == DEFAULT else region
    if cost is not None:
        given["cost"] = None if cost == DEFAULT else parse_cost(cost, currency)
    return given


def costs(
    context: typer.Context,
    since: str = option(
        "Period to report, in whole days: 7d, 30d, 12w.", default="30d", metavar="30d"
    ),
    domain: str | None = option("Only this domain.", metavar="HOST"),
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """Show the traffic through proxies by domain, and its cost."""
    from forager.fetch.domains.service import domain_name
    from forager.fetch.proxies.costs import report_costs

    days = math.ceil(parse_duration(since).total_seconds() / 86400)
    name = None if domain is None else domain_name(domain)
    report = with_database(
        context, lambda db, _: report_costs(db, days=days, domain=name, limit=limit)
    )
    return show_json(_document(report)) if as_json else _show(report)


def _document(report: CostReport) -> dict[str, Any]:
    return {
        "first": report.first.isoformat(),
        "last": report.last.isoformat(),
        "lines": [_line(line) for line in report.lines],
        "count": report.count,
        "is_cut": report.is_cut,
        "requests": report.requests,
        "bytes": report.bytes,
        "totals": {currency: f"{money:f}" for currency, money in report.totals.items()},
    }


def _line(line: CostLine) -> dict[str, Any]:
    names = ("domain", "proxy_id", "proxy", "requests", "bytes", "price", "cost", "currency")
    values = {name: getattr(line, name) for name in names}
    return values | {"cost": None if line.cost is None else f"{line.cost:f}"}


def _show(report: CostReport) -> None:
    if not report.lines:
        note(f"No traffic through proxies since {report.first}.")
        return
    show_rows(
        {
            "DOMAIN~": "domain",
            "PROXY": lambda line: f"{line.proxy_id} {line.proxy}",
            "REQUESTS>": "requests",
            "RECEIVED>": lambda line: size_in_words(line.bytes),
            "PRICE>": lambda line: line.price or ("unknown", "dim"),
            "COST>": lambda line: "" if line.cost is None else f"{line.cost:,.4f}",
        },
        report.lines,
    )
    money = ", ".join(f"{total:,.2f} {currency}" for currency, total in report.totals.items())
    say(
        f"{report.first} to {report.last}: {report.requests:,} requests,"
        f" {size_in_words(report.bytes)}, {money or 'no known cost'}",
        "bold",
    )
    if report.is_cut:
        note(f"Showing {len(report.lines)} of {report.count} lines; use --limit to show more.")


app = typer.Typer(help="Proxies for crawls, and their health.", no_args_is_help=True)

ProxyIds = Annotated[list[int], typer.Argument(metavar="ID...", help="IDs of proxies.")]


@app.command()
def add(
    context: typer.Context,
    addresses: list[str] | None = argument(
        "http, https or socks5://user:password@host:port.", metavar="[ADDRESS]..."
    ),
    file: Path | None = option("A file with one address per line; - reads standard input."),
    allow_private: AllowPrivate = False,
    region: Region = None,
    cost: Cost = None,
    currency: Currency = None,
    as_json: AsJson = False,
) -> None:
    """Add proxies. Passwords are stored encrypted; a known proxy gets the new password."""
    given = [*_given(addresses or []), *(_lines(file) if file is not None else [])]
    if not given:
        raise InvalidInput("no proxy was given", hint="Give an address, or --file.")
    changes = changes_of(region, cost, currency)

    async def add_all(proxies: Proxies) -> tuple[list[dict[str, Any]], list[ForagerError]]:
        added, failures = await _add(proxies, given, allow_private)
        for proxy in added if changes else ():
            await proxies.set(proxy["id"], changes)
        return added, failures

    added, failures = with_services(context, lambda here: add_all(here.proxies))
    if as_json:
        show_json({"added": added, "failed": len(failures)})
    else:
        for proxy in added:
            say(f"{'added' if proxy['is_new'] else 'updated'} proxy {proxy['id']}: {proxy['url']}")
    if failures:
        raise typer.Exit(failures[0].exit_code)


def _shown(record: ProxyRecord) -> dict[str, Any]:
    amount = None if record.cost_amount is None else f"{record.cost_amount:f}"
    values = asdict(record) | {"cost_amount": amount}
    return {"url": record.shown, "state": record.state, **values}


_RECORD_COLUMNS: Columns = {
    "ID>": "id",
    "PROXY": "shown",
    "STATE": lambda record: (record.state.value, _STYLES[record.state]),
    "OK>": "success_count",
    "FAILED>": "failure_count",
    "AVERAGE>": lambda record: (
        "" if record.avg_response_time_ms is None else f"{record.avg_response_time_ms} ms"
    ),
    "LAST USED": "last_used_at",
    "REGION": "region",
    "COST>": lambda record: record.cost and str(record.cost),
    "REASON": "disabled_reason",
}


@app.command("list")
@lists(
    _RECORD_COLUMNS, none="There are no proxies. `forager proxies add` adds one.", document=_shown
)
async def list_(
    here: CommandContext,
    limit: Limit = 100,
    cursor: int = option("Return proxies after this ID.", default=0, min=0, max=2**63 - 1),
) -> object:
    """List proxies with their health."""
    return await here.proxies.page(limit=limit, after=cursor)


@app.command("test")
def check(
    context: typer.Context,
    which: Annotated[str, typer.Argument(metavar="ID|all", help="Proxy ID, or `all`.")],
    url: str | None = option(
        "URL to fetch through the proxy; by default only the connection is tested."
    ),
    allow_private: bool = option(
        "Allow a private address for the URL.", "--allow-private", default=False
    ),
    as_json: AsJson = False,
) -> None:
    """Test proxies and show the response time. A failed proxy that works again is used again."""
    options = _client_options(context, allow_private)
    trials = with_services(context, lambda here: _test(here.proxies, which, url, options))
    if as_json:
        items = [{"url": trial.proxy.spec.shown, **asdict(trial.result)} for trial in trials]
        show_json({"items": items})
    else:
        show_rows(_TRIAL_COLUMNS, trials)
    if not all(trial.result.ok for trial in trials):
        raise typer.Exit(FAILED)


@app.command("set")
def set_(
    context: typer.Context,
    ids: ProxyIds,
    region: Region = None,
    cost: Cost = None,
    currency: Currency = None,
    as_json: AsJson = False,
) -> None:
    """Set the region and the cost of proxies."""
    changes = changes_of(region, cost, currency)
    if not changes:
        raise InvalidInput("nothing to set was given", hint="Give --region or --cost; see --help.")

    async def set_all(proxies: Proxies) -> list[ProxyRecord]:
        return [await proxies.set(proxy_id, changes) for proxy_id in ids]

    changed = with_services(context, lambda here: set_all(here.proxies))
    if as_json:
        return show_json({"items": [_shown(record) for record in changed]})
    for record in changed:
        where = f"for workers of {record.region}" if record.region else "for all workers"
        price = f"costs {record.cost}" if record.cost else "at no known cost"
        say(f"proxy {record.id}: {record.shown}, {where}, {price}")
    return None


app.command()(costs)


@app.command()
def enable(context: typer.Context, ids: ProxyIds) -> None:
    """Use proxies again, and reset their failure counts."""
    _each(context, ids, "enabled", lambda proxies, proxy_id: proxies.enable(proxy_id))


@app.command()
def disable(
    context: typer.Context,
    ids: ProxyIds,
    reason: str | None = option("Reason, shown in the list."),
) -> None:
    """Stop using proxies until they are enabled again."""
    _each(context, ids, "disabled", lambda proxies, proxy_id: proxies.disable(proxy_id, reason))


@app.command()
def remove(context: typer.Context, ids: ProxyIds) -> None:
    """Delete proxies with their passwords, counts and costs."""
    _each(context, ids, "removed", lambda proxies, proxy_id: proxies.remove(proxy_id))


def _given(addresses: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    for number, address in enumerate(addresses, 1):
        yield f"address {number}", address


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    """Where each address stands, and the address; None where a line is no text."""
    data = _read(file).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            try:
                yield f"line {number}", line.decode()
            except UnicodeDecodeError:
                yield f"line {number}", None


def _read(file: Path) -> bytes:
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with file.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"{file} is larger than {MAX_FILE_BYTES // 1024**2} MB")
    return data


async def _add(
    proxies: Proxies, given: Sequence[tuple[str, str | None]], allow_private: bool
) -> tuple[list[dict[str, Any]], list[ForagerError]]:
    """Add what can be added, and say of the rest where it stands and what is wrong."""
    added: list[dict[str, Any]] = []
    failures: list[ForagerError] = []
    for where, address in given:
        try:
            added.append(await _add_one(proxies, address, allow_private))
        except (InvalidInput, NotAllowed) as error:
            complain(f"{where}: {error.message}", error.hint)
            failures.append(error)
    return added, failures


async def _add_one(proxies: Proxies, address: str | None, allow_private: bool) -> dict[str, Any]:
    from forager.fetch.proxies.service import parse_address

    if address is None:
        raise InvalidInput("the proxy address is not text in UTF-8")
    spec = parse_address(address)
    added = await proxies.add(spec, allow_private=allow_private)
    return {"id": added.id, "is_new": added.is_new, "url": spec.shown}


def _client_options(context: typer.Context, allow_private: bool) -> ClientOptions:
    from forager.fetch.client import ClientOptions
    from forager.fetch.guard import GuardPolicy
    from forager.fetch.response import agent_header

    agent = agent_header(flags_of(context).load())
    return ClientOptions(user_agent=agent, guard=GuardPolicy(allow_private=allow_private))


async def _test(
    proxies: Proxies, which: str, url: str | None, options: ClientOptions
) -> Sequence[Trial]:
    from forager.fetch.proxies.probe import try_proxies

    ids = await proxies.ids() if which == "all" else [_proxy_id(which)]
    trials = await try_proxies(proxies, ids, options, url)
    for trial in trials:
        if trial.has_recovered:
            note(f"proxy {trial.proxy.id} has recovered and is used again")
    return trials


def _proxy_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput(f"{text!r} is not the id of a proxy", hint="Give a number, or all.")
    return int(text)


def _each(
    context: typer.Context,
    ids: Sequence[int],
    done: str,
    change: Callable[[Proxies, int], Awaitable[ProxyRecord]],
) -> None:
    async def change_all(proxies: Proxies) -> None:
        for proxy_id in ids:
            record = await change(proxies, proxy_id)
            say(f"{done} proxy {record.id}: {record.shown}")

    with_services(context, lambda here: change_all(here.proxies))


_TRIAL_COLUMNS: Columns = {
    "ID>": "result.proxy_id",
    "PROXY": "proxy.spec.shown",
    "RESULT": lambda trial: ("ok", "green") if trial.result.ok else ("failed", "red"),
    "TIME>": lambda trial: f"{trial.result.seconds * 1000:.0f} ms",
    "STATUS": "result.status",
    "ERROR": "result.error",
}
