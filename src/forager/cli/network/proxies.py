"""`forager proxies`: add, list, set, costs, test, enable, disable, remove."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.amounts import parse_duration, size_in_words
from forager.cli.failures import print_error
from forager.cli.model_flags import DEFAULT
from forager.cli.options import AllowPrivate, Limit, argument, option, switch
from forager.cli.output import Columns, fields_of, note, read_input, say, show_rows
from forager.cli.running import CommandContext, answers, lists, runs
from forager.errors import ForagerError, InvalidInput, NotAllowed
from forager.fetch.client import ClientOptions
from forager.fetch.domains.service import domain_name
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.costs import CostReport, report_costs
from forager.fetch.proxies.probe import try_proxies
from forager.fetch.proxies.record import ProxyRecord, parse_cost
from forager.fetch.proxies.service import Proxies, ProxyChanges, parse_address
from forager.fetch.response import agent_header

MAX_FILE_BYTES = 10 * 1024 * 1024
_STYLES = {"active": "green", "failing": "red", "disabled": "yellow"}

app = typer.Typer(help="Proxies for crawls, and their health.", no_args_is_help=True)

ProxyIds = Annotated[list[int], typer.Argument(metavar="ID...", help="IDs of proxies.")]


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Settings of proxies; `default` removes a setting."""

    region: str | None = option(
        "Only workers in this region use it; `default`: all workers.", metavar="NAME|default"
    )
    cost: str | None = option(
        "Price: 0.002/request or 3.50/GB; `default`: unknown.", metavar="AMOUNT/UNIT|default"
    )
    currency: str | None = option("Currency of the cost.", metavar="USD", show_default="USD")

    def value(self) -> ProxyChanges:
        if self.currency is not None and self.cost in (None, DEFAULT):
            raise InvalidInput("--currency is the currency of --cost", hint="Give --cost.")
        changes = ProxyChanges()
        if self.region is not None:
            changes["region"] = None if self.region == DEFAULT else self.region
        if self.cost is not None:
            is_default = self.cost == DEFAULT
            changes["cost"] = None if is_default else parse_cost(self.cost, self.currency)
        return changes


Changes = Annotated[ProxyChanges, ProxyOptions]


def _show_added(done: dict[str, Any]) -> None:
    for proxy in done["added"]:
        say(f"{'added' if proxy['is_new'] else 'updated'} proxy {proxy['id']}: {proxy['url']}")


def _exit_if_failed(done: dict[str, Any]) -> None:
    if done["errors"]:
        raise typer.Exit(done["errors"][0].exit_code)


@app.command()
@answers(
    _show_added,
    document=lambda done: {"added": done["added"], "failed": len(done["errors"])},
    then=_exit_if_failed,
)
async def add(
    here: CommandContext,
    addresses: list[str] | None = argument(
        "http, https or socks5://user:password@host:port.", metavar="[ADDRESS]..."
    ),
    file: Path | None = option("A file with one address per line; - reads standard input."),
    allow_private: AllowPrivate = False,
    *,
    changes: Changes,
) -> object:
    """Add proxies. Passwords are stored encrypted; a known proxy gets the new password."""
    given: list[tuple[str, str | None]]
    given = [(f"address {number}", each) for number, each in enumerate(addresses or [], 1)]
    given += _lines(file) if file is not None else []
    if not given:
        raise InvalidInput("no proxy was given", hint="Give an address, or --file.")
    added: list[dict[str, Any]] = []
    errors: list[ForagerError] = []
    for place, address in given:
        try:
            added.append(await _add(here.proxies, address, allow_private))
        except (InvalidInput, NotAllowed) as error:
            print_error(f"{place}: {error.message}", error.hint)
            errors.append(error)
    for proxy in added if changes else ():
        await here.proxies.set(proxy["id"], changes)
    return {"added": added, "errors": errors}


async def _add(proxies: Proxies, address: str | None, allow_private: bool) -> dict[str, Any]:
    if address is None:
        raise InvalidInput("the proxy address is not text in UTF-8")
    spec = parse_address(address)
    added = await proxies.add(spec, allow_private=allow_private)
    return {"id": added.id, "is_new": added.is_new, "url": spec.shown}


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    """The place and the address of each line; None for a line that is not text."""
    data = read_input(file, MAX_FILE_BYTES).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            try:
                yield f"line {number}", line.decode()
            except UnicodeDecodeError:
                yield f"line {number}", None


def _document(record: ProxyRecord) -> dict[str, Any]:
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
    _RECORD_COLUMNS,
    none="There are no proxies. `forager proxies add` adds one.",
    document=_document,
)
async def list_(
    here: CommandContext,
    limit: Limit = 100,
    cursor: int = option("Return proxies after this ID.", default=0, min=0, max=2**63 - 1),
) -> object:
    """List proxies with their health."""
    return await here.proxies.page(limit=limit, after=cursor)


_TRIAL_COLUMNS: Columns = {
    "ID>": "result.proxy_id",
    "PROXY": "proxy.spec.shown",
    "RESULT": lambda trial: ("ok", "green") if trial.result.ok else ("failed", "red"),
    "TIME>": lambda trial: f"{trial.result.seconds * 1000:.0f} ms",
    "STATUS": "result.status",
    "ERROR": "result.error",
}


@app.command("test")
@answers(
    _TRIAL_COLUMNS,
    document=lambda trials: {
        "items": [{"url": trial.proxy.spec.shown, **asdict(trial.result)} for trial in trials]
    },
    succeeded=lambda trials: all(trial.result.ok for trial in trials),
)
async def check(
    here: CommandContext,
    which: Annotated[str, typer.Argument(metavar="ID|all", help="Proxy ID, or `all`.")],
    url: str | None = option(
        "URL to fetch through the proxy; by default only the connection is tested."
    ),
    allow_private: bool = switch("Allow a private address for the URL.", "--allow-private"),
) -> object:
    """Test proxies and show the response time. A failed proxy that works again is used again."""
    guard = GuardPolicy(allow_private=allow_private)
    options = ClientOptions(user_agent=agent_header(here.settings), guard=guard)
    ids = await here.proxies.ids() if which == "all" else [_proxy_id(which)]
    trials = await try_proxies(here.proxies, ids, options, url)
    for trial in trials:
        if trial.has_recovered:
            note(f"proxy {trial.proxy.id} has recovered and is used again")
    return trials


def _proxy_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput(f"{text!r} is not the ID of a proxy", hint="Give a number, or all.")
    return int(text)


def _show_changed(changed: Sequence[ProxyRecord]) -> None:
    for record in changed:
        where = f"for workers of {record.region}" if record.region else "for all workers"
        price = f"costs {record.cost}" if record.cost else "at no known cost"
        say(f"proxy {record.id}: {record.shown}, {where}, {price}")


@app.command("set")
@answers(_show_changed, document=lambda changed: {"items": [_document(each) for each in changed]})
async def set_(here: CommandContext, ids: ProxyIds, changes: Changes) -> object:
    """Set the region and the cost of proxies."""
    if not changes:
        raise InvalidInput("nothing to set was given", hint="Give --region or --cost; see --help.")
    return [await here.proxies.set(proxy_id, changes) for proxy_id in ids]


_LINE = ("domain", "proxy_id", "proxy", "requests", "bytes", "price", "cost", "currency")


def _costs_document(report: CostReport) -> dict[str, Any]:
    lines = [
        fields_of(line, *_LINE) | {"cost": None if line.cost is None else f"{line.cost:f}"}
        for line in report.lines
    ]
    return {
        "first": report.first.isoformat(),
        "last": report.last.isoformat(),
        "lines": lines,
        **fields_of(report, "count", "is_cut", "requests", "bytes"),
        "totals": {currency: f"{money:f}" for currency, money in report.totals.items()},
    }


def _show_costs(report: CostReport) -> None:
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


@app.command()
@answers(_show_costs, document=_costs_document)
async def costs(
    here: CommandContext,
    since: str = option(
        "Period to report, in whole days: 7d, 30d, 12w.", default="30d", metavar="30d"
    ),
    domain: str | None = option("Only this domain.", metavar="HOST"),
    limit: Limit = 100,
) -> object:
    """Show the traffic through proxies by domain, and its cost."""
    days = math.ceil(parse_duration(since).total_seconds() / 86400)
    name = None if domain is None else domain_name(domain)
    return await report_costs(here.database, days=days, domain=name, limit=limit)


@app.command()
@runs
async def enable(here: CommandContext, ids: ProxyIds) -> None:
    """Use proxies again, and reset their failure counts."""
    for proxy_id in ids:
        _say_done("enabled", await here.proxies.enable(proxy_id))


@app.command()
@runs
async def disable(
    here: CommandContext,
    ids: ProxyIds,
    reason: str | None = option("Reason, shown in the list."),
) -> None:
    """Stop using proxies until they are enabled again."""
    for proxy_id in ids:
        _say_done("disabled", await here.proxies.disable(proxy_id, reason))


@app.command()
@runs
async def remove(here: CommandContext, ids: ProxyIds) -> None:
    """Delete proxies with their passwords, counts and costs."""
    for proxy_id in ids:
        _say_done("removed", await here.proxies.remove(proxy_id))


def _say_done(done: str, proxy: ProxyRecord) -> None:
    say(f"{done} proxy {proxy.id}: {proxy.shown}")
