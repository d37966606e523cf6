"""`forager proxies set|costs`: the region and price of proxies, and their cost by domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.amounts import parse_duration, size_in_words
from forager.cli.options import AsJson, Limit
from forager.cli.output import note, say, show_json, show_table
from forager.cli.running import with_database
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.fetch.proxies.costs import CostLine, CostReport
    from forager.fetch.proxies.service import ProxyChanges

DEFAULT = "default"
RIGHT = {"justify": "right"}

Region = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|default",
        help="Only workers of this region go through it; `default`: all of them.",
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT/UNIT|default", help="Price: 0.002/request or 3.50/GB; `default`: not known."
    ),
]
Currency = Annotated[
    str | None, typer.Option(metavar="USD", help="Of the cost.", show_default="USD")
]


def changes_of(region: str | None, cost: str | None, currency: str | None) -> ProxyChanges:
    """What was given; `default` takes a value back."""
    from forager.fetch.proxies.cost import parse_cost
    from forager.fetch.proxies.service import ProxyChanges

    if currency is not None and cost in (None, DEFAULT):
        raise InvalidInput("--currency says what the amount of --cost is in", hint="Give --cost.")
    given: dict[str, Any] = {}
    if region is not None:
        given["region"] = None if region == DEFAULT else region
    if cost is not None:
        given["cost"] = None if cost == DEFAULT else parse_cost(cost, currency)
    return ProxyChanges(**given)


def costs(
    context: typer.Context,
    since: Annotated[
        str, typer.Option(metavar="30d", help="Period to report, in whole days: 7d, 30d, 12w.")
    ] = "30d",
    domain: Annotated[str | None, typer.Option(metavar="HOST", help="Only this domain.")] = None,
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
    from dataclasses import asdict

    return asdict(line) | {"cost": None if line.cost is None else f"{line.cost:f}"}


def _show(report: CostReport) -> None:
    if not report.lines:
        note(f"No traffic through proxies since {report.first}.")
        return
    show_table(
        {
            "DOMAIN": {"no_wrap": False, "overflow": "fold"},
            "PROXY": {},
            "REQUESTS": RIGHT,
            "RECEIVED": RIGHT,
            "PRICE": RIGHT,
            "COST": RIGHT,
        },
        [
            (
                line.domain,
                f"{line.proxy_id} {line.proxy}",
                line.requests,
                size_in_words(line.bytes),
                line.price or ("unknown", "dim"),
                "" if line.cost is None else f"{line.cost:,.4f}",
            )
            for line in report.lines
        ],
    )
    money = ", ".join(f"{total:,.2f} {currency}" for currency, total in report.totals.items())
    say(
        f"{report.first} to {report.last}: {report.requests:,} requests,"
        f" {size_in_words(report.bytes)}, {money or 'no known cost'}",
        "bold",
    )
    if report.is_cut:
        note(f"Showing {len(report.lines)} of {report.count} lines; use --limit to show more.")
