"""Operations on site parsers: everyone sees them, admins roll them out."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from forager.amounts import counted
from forager.errors import InvalidInput
from forager.operations.models import (
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    example,
    listed,
)
from forager.operations.operation import Columns, Context, Group, Scope
from forager.parsers import backtest as tests
from forager.parsers import overview as parser_overview
from forager.parsers import rollouts
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.terminal import short_time

parsers = Group(
    "parsers",
    "Site parsers: write, test, compare, roll out and roll back.",
    page="Parsers",
    changes=Scope.ADMIN,
)

Name = Annotated[
    PlainText,
    Field(min_length=1, max_length=100, examples=["amazon"], description="Name of the parser."),
]
Version = Annotated[PlainText, Field(min_length=1, max_length=100)]
DomainName = Annotated[PlainText, Field(min_length=1, max_length=300)]
_SHARE = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*(%?)\s*", re.ASCII)


_ABOUT_PARSER = {
    "canary_share": "Share of tasks on which the canary version is tried.",
    "week_pages": "Pages of the last 7 days.",
    "week_rate": "Success rate of the last 7 days.",
    "recent_pages": "Pages among the last 100.",
    "patterns": "URL patterns of the parser.",
    "origin": "Where the parser comes from.",
    "bypassed_until": "Until when it is not used, because it keeps breaking; null: it is used.",
    "bypass_reason": "Why it is not used.",
    "is_first": "Whether it is tried beside the generic extraction, whose values are stored.",
}


class Parser(ResponseModel, row=parser_overview.ParserLine, about=_ABOUT_PARSER):
    """One version of a parser; `missing`: it should run, but is not installed."""

    state: Literal["active", "canary", "idle", "missing"]
    recent_rate: float | None = Field(description="Of the last 100 pages of each domain.")
    missing_on: list[str] = Field(
        description="Running workers that should use this version and do not have it installed."
    )


class BrokenParser(ResponseModel):
    """A plug-in that could not be loaded."""

    origin: str = Field(description="Where the plug-in is declared.")
    reason: str = Field(description="Why the plug-in could not be loaded.")


class Parsers(ResponseModel):
    """The installed parsers."""

    items: list[Parser] = Field(
        description="Installed parsers, one per version.", validation_alias="parsers"
    )
    broken: list[BrokenParser] = Field(description="Plug-ins that could not be loaded.")


class ParserRate(ResponseModel):
    """The success rate of one version at one domain."""

    domain: str
    parser: str
    version: str
    role: str = Field(description="`active`, or `canary` for a version that is tried beside it.")
    recent_pages: int = Field(description="Pages among the last 100.")
    recent_rate: float | None = Field(description="Success rate of the last 100 pages.")
    week_pages: int = Field(description="Pages of the last 7 days.")
    week_rate: float | None = Field(description="Success rate of the last 7 days.")


def parse_share(text: str) -> float:
    """ "10%" and "0.1" are the same share."""
    match = _SHARE.fullmatch(text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise InvalidInput(
            f"{text!r} is not a share of the tasks",
            hint="Write it as 10% or 0.1: more than 0%, at most 100%.",
        )
    return share


def _share(value: Any) -> Any:
    try:
        return parse_share(value) if isinstance(value, str) else value
    except InvalidInput as error:
        raise ValueError(f"{error.message}. {error.hint}") from None


class RolloutOrder(RequestModel):
    """The version to use, and its share of the pages."""

    model_config = example(version="1", canary=0.1)

    version: Version = Field(description="Version of the parser.")
    canary: Annotated[float, BeforeValidator(_share), Field(gt=0, le=1)] | None = Field(
        default=None,
        description="Only run it beside the active version, on this share of tasks: 0.1 or 10%.",
    )


_ABOUT_ROLLOUT = {
    "active_version": "The version in use.",
    "previous_version": "The version before.",
    "canary_version": "The version on trial.",
    "canary_share": "Share of tasks on which the canary version is tried.",
}


class Rollout(ResponseModel, row=rollouts.Rollout, about=_ABOUT_ROLLOUT):
    """The rollout state of a parser; workers apply it within seconds."""

    missing_on: list[str] = Field(
        description="Running workers that do not have the rolled-out version installed."
    )


class ReadingError(ResponseModel, thing="page"):
    """A page that could not be read."""

    url: str
    message: str = Field(description="Why the page could not be read.")


class BacktestVersion(ResponseModel):
    """The results of one version."""

    version: str
    rate: float | None = Field(description="Share of pages read without a problem.")
    outcomes: dict[str, int] = Field(description="Numbers by outcome.")
    milliseconds_per_page: float | None = Field(
        description="Average time per page in milliseconds.", validation_alias="milliseconds"
    )
    errors: list[ReadingError] = Field(description="Pages that the version could not read.")


_ABOUT_BACKTEST_EXAMPLE = {
    "old": "Value of the older version.",
    "new": "Value of the newer version.",
    "kind": "`changed`, `gained` or `lost`.",
}


class BacktestExample(
    ResponseModel, row=tests.Example, about=_ABOUT_BACKTEST_EXAMPLE, thing="page"
):
    """A page on which a field was changed, gained or lost."""


_ABOUT_BACKTEST_FIELD = {
    "gained": "Pages on which only the new version finds the field.",
    "lost": "Pages on which only the old version finds the field.",
    "equal": "Pages on which the values are equal.",
    "changed": "Number of changed values.",
}


class BacktestField(ResponseModel, row=tests.FieldReport, about=_ABOUT_BACKTEST_FIELD):
    """How one field differs between two versions."""

    examples: list[BacktestExample] = Field(description="Examples of differences.")


class BacktestReport(ResponseModel):
    """The new version compared with the old one, field by field."""

    parser: str
    pages: int = Field(description="Number of pages that both versions parsed.")
    unreadable: int = Field(description="Pages that are no longer in the archive.")
    outcomes_differ: int = Field(
        description="Pages that one version reads and the other does not, or not as well."
    )
    truncated: bool = Field(description="There are more pages than were read.")
    old: BacktestVersion = Field(description="Result of the older version.")
    new: BacktestVersion = Field(description="Result of the newer version.")
    fields: dict[str, BacktestField] = Field(description="Results by field.")


class HistoryChange(ResponseModel, thing="page"):
    """How the price history of a product changes."""

    product_id: int
    url: str
    removed: int = Field(description="Entries of the history that are removed.")
    added: int = Field(description="Entries that are added.")
    old_price: Decimal | None = Field(description="The stored price.")
    price: Decimal | None = Field(description="The corrected price.")
    old_lowest: Decimal | None = Field(description="The lowest price of the stored history.")
    lowest: Decimal | None = Field(description="The lowest price of the corrected history.")
    old_highest: Decimal | None = Field(description="The highest price of the stored history.")
    highest: Decimal | None = Field(description="The highest price of the corrected history.")


class RereadingReport(ResponseModel):
    """What a version changes in price histories."""

    parser: str
    version: str
    written: bool = Field(description="Whether the changes were stored; otherwise a preview.")
    products: int = Field(description="Products with archived pages of the parser.")
    pages: int = Field(description="Pages that were read again.")
    unreadable: int = Field(description="Pages that are no longer in the archive.")
    corrected: int = Field(description="Products whose history changes.")
    removed: int = Field(description="Entries of histories that are removed.")
    added: int = Field(description="Entries that are added.")
    repriced: int = Field(description="Products whose current price changes.")
    examples: list[HistoryChange] = Field(description="Examples of corrected histories.")


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def _state(parser: Any) -> tuple[str, str]:
    if parser.bypassed_until is not None:
        return f"bypassed until {short_time(parser.bypassed_until)}", "red"
    share = f" {parser.canary_share:.0%}" if parser.canary_share else ""
    styles = {"active": "green", "canary": "yellow", "idle": "dim", "missing": "red"}
    return f"{parser.state}{share}", styles[parser.state]


PARSER_COLUMNS: Columns = {
    "PARSER": "name",
    "VERSION": "version",
    "STATE": _state,
    "LAST 100>": lambda parser: _percent(parser.recent_rate),
    "7 DAYS>": lambda parser: _percent(parser.week_rate),
    "FROM": "origin",
    "PATTERNS…": lambda parser: ", ".join(parser.patterns),
}
RATE_COLUMNS: Columns = {
    "DOMAIN": "domain",
    "PARSER": "parser",
    "VERSION": "version",
    "ROLE": "role",
    "OF LAST 100>": "recent_pages",
    "GOOD>": lambda rate: _percent(rate.recent_rate),
    "IN 7 DAYS>": "week_pages",
    "GOOD >": lambda rate: _percent(rate.week_rate),
}


def _problems(found: Any) -> str:
    """Plug-ins that cannot be loaded, workers that lack a version, and first versions."""
    lines = [f"{plugin.origin} was skipped: {plugin.reason}" for plugin in found.broken]
    for each in found.items:
        if each.missing_on:
            workers = counted(len(each.missing_on), "worker")
            named = ", ".join(each.missing_on[:5])
            lines.append(f"{each.name} {each.version} is not installed on {workers}: {named}")
        if each.bypassed_until is not None:
            lines.append(
                f"{each.name} {each.version} is bypassed: {each.bypass_reason}. See forager errors"
                f" list --type parse; to end its use: forager parsers rollback {each.name}"
            )
        if each.is_first:
            lines.append(
                f"{each.name} {each.version} is tried beside the generic extraction, whose values"
                f" are stored; to use it: forager parsers rollout {each.name} {each.version}"
            )
    return "\n".join(lines)


@parsers.operation("list", "GET /parsers", columns=PARSER_COLUMNS, done=_problems)
async def list_parsers(context: Context) -> Parsers:
    """List parsers: versions, patterns, status and success rates."""
    return Parsers.of(await parser_overview.overview(context.database, context.settings))


@parsers.operation(
    "rates",
    "GET /parsers/rates",
    limit=100,
    columns=RATE_COLUMNS,
    none="No pages were parsed in the last seven days.",
)
async def rates(
    context: Context,
    paging: Paging,
    domain: Annotated[DomainName | None, Field(description="Only this domain.")] = None,
) -> Listed[ParserRate]:
    """List the success rate of each version by domain: last 100 pages, and last 7 days."""
    return listed(await list_rates(context.database, domain=domain, **paging), ParserRate.of)


@parsers.operation(
    "rollout", "POST /parsers/{name}/rollout", arguments=("version",), button="Roll out"
)
async def rollout(context: Context, name: Name, order: RolloutOrder) -> Rollout:
    """Activate a version; with a canary share, run it on a part of the tasks first.

    Workers apply it within seconds. The version `generic` ends the use of the parser.
    """
    load_parsers(context.settings.parser_modules)
    done = await rollouts.roll_out(
        context.database, context.settings, name, order.version, canary=order.canary
    )
    return Rollout.of(done)


@parsers.operation("rollback", "POST /parsers/{name}/rollback", button="Roll back")
async def rollback(context: Context, name: Name) -> Rollout:
    """Undo the last step: end the canary, or return to the previous version."""
    load_parsers(context.settings.parser_modules)
    return Rollout.of(await rollouts.roll_back(context.database, name))


parsers.by_hand("backtest", "POST /parsers/{name}/backtest", button="Compare")
parsers.by_hand("apply", "POST /parsers/{name}/apply")
