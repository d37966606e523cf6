"""Operations on proxies: operators see them, admins change them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from forager.amounts import size_text
from forager.db.cursor import decode_number
from forager.errors import InvalidInput
from forager.fetch.client import ClientOptions
from forager.fetch.domains.operations import Region
from forager.fetch.domains.service import domain_name
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies import costs
from forager.fetch.proxies.probe import ProbeResult, ProxyTrial, try_proxies
from forager.fetch.proxies.proxy import (
    DEFAULT_CURRENCY,
    CostUnit,
    ProxyCost,
    ProxyRecord,
    ProxyState,
    parse_cost,
)
from forager.fetch.proxies.service import Proxies, ProxyChanges, parse_address
from forager.fetch.response import agent_header
from forager.operations import models
from forager.operations.models import (
    Amount,
    Currency,
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    RowId,
    listed,
)
from forager.operations.operation import Columns, Context, Group, Scope
from forager.secrets import Vault
from forager.validation import matches

proxies = Group(
    "proxies",
    "Proxies for crawls, and their health.",
    page="Proxies",
    sees=Scope.OPERATE,
    changes=Scope.ADMIN,
)

ProxyId = Annotated[RowId, Field(description="ID of the proxy.")]
Address = Annotated[PlainText, Field(min_length=1, max_length=2000)]


_NOT_SHOWN = ("cost_amount", "cost_currency", "cost_unit", "is_active")


_ABOUT_PROXY = {
    "failure_count": "Failed requests in a row.",
    "next_probe_at": "When a failing proxy is tried again.",
    "scheme": "Scheme of the proxy address.",
    "port": "Port.",
    "username": "User name of the proxy.",
    "has_password": "Whether a password is stored.",
    "success_count": "Number of successful requests.",
    "total_failures": "Number of failed requests.",
    "avg_response_time_ms": "Average response time in milliseconds.",
    "last_used_at": "When it was last used.",
    "last_success_at": "When it last succeeded.",
    "last_failure_at": "When it failed last.",
    "last_failure_reason": "Why it failed last.",
}


class Proxy(ResponseModel, row=ProxyRecord, hidden=_NOT_SHOWN, about=_ABOUT_PROXY):
    """A proxy and its health; its password is never shown."""

    url: str = Field(
        description="URL of the proxy, without its password.", validation_alias="shown"
    )
    state: ProxyState
    region: str | None = Field(description="Only workers in this region use it; null: all workers.")
    cost: Cost | None = Field(description="Cost per request or GB; null: not known.")


_ABOUT_COST = {"amount": "Amount of money, as text.", "unit": "Unit of the price."}


class Cost(ResponseModel, row=ProxyCost, about=_ABOUT_COST):
    """An amount of money per request or per GB (10^9 bytes)."""


def _parsed_cost(value: Any) -> Any:
    """Also accept a price as text, such as `3.50 EUR/GB`."""
    if not isinstance(value, str):
        return value
    try:
        cost = parse_cost(value)
    except InvalidInput as error:
        raise ValueError(f"{error.message}. {error.hint}") from None
    return {"amount": f"{cost.amount:f}", "unit": cost.unit, "currency": cost.currency}


_AMOUNT = matches(r"^\d{1,7}(\.\d{1,8})?$", "a number such as 0.002")


class CostOrder(RequestModel):
    """The price of a proxy."""

    model_config = models.example(amount="0.002", unit="request", currency="USD")

    amount: Annotated[PlainText, Field(pattern=_AMOUNT, examples=["0.002"])] = Field(
        description="Cost of one unit."
    )
    unit: CostUnit = Field(description="What is paid for.")
    currency: Currency = Field(default=DEFAULT_CURRENCY, description="As in ISO 4217.")

    def cost(self) -> ProxyCost:
        return ProxyCost(Decimal(self.amount), self.unit, self.currency.upper())


class ProxySettings(RequestModel):
    """What to set; null takes a setting back, what is left out stays as it is."""

    model_config = models.example(
        region="eu", cost={"amount": "3.50", "unit": "GB", "currency": "EUR"}
    )

    region: Region | None = Field(default=None, description="Only workers in this region use it.")
    cost: Annotated[CostOrder, BeforeValidator(_parsed_cost)] | None = Field(
        default=None, description="Cost, such as 0.002 USD/request or 3.50 EUR/GB."
    )

    def changes(self) -> ProxyChanges:
        given = self.given()
        if self.cost is not None:
            given["cost"] = self.cost.cost()
        return cast(ProxyChanges, given)


_OF_PROXY = ("scheme", "host", "port", "username", "has_password", "cost_amount", "cost_unit")


class CostLine(ResponseModel, row=costs.CostLine, hidden=_OF_PROXY):
    """The traffic of one domain through one proxy, and its cost."""

    proxy: str = Field(description="Address of the proxy.")
    bytes: int = Field(description="Size of response bodies as transferred.")
    price: str | None = Field(description="Price of the proxy.", examples=["0.002 USD/request"])
    cost: Amount | None = Field(description="Null if the price of the proxy is unknown.")


_ABOUT_COST_REPORT = {
    "first": "First day of the period.",
    "last": "Last day of the period.",
    "bytes": "Size of all response bodies as transferred.",
}


class CostReport(ResponseModel, row=costs.CostReport, about=_ABOUT_COST_REPORT):
    """The most expensive lines, and totals over all lines."""

    items: list[CostLine] = Field(
        description="Costs by domain and proxy.", validation_alias="lines"
    )
    count: int = Field(description="Number of lines in all.")
    is_cut: bool = Field(description="True if `items` holds only the most expensive ones.")
    totals: dict[str, Amount] = Field(description="By currency.")


class ProxyOrder(RequestModel):
    """The address and the settings of a proxy."""

    model_config = models.example(url="http://user:password@proxy.example.org:3128")

    url: Address = Field(description="http, https or socks5://user:password@host:port")
    allow_private: bool = Field(default=False, description="Allow a private address.")


class AddedProxy(ResponseModel, thing="proxy"):
    """`is_new` is false for a known proxy, which got the new password."""

    id: int
    url: str
    is_new: bool = Field(description="Whether it was added by this request.")


_ABOUT_TRIAL_RESULT = {
    "ok": "Whether it worked.",
    "status": "HTTP status of the response; null: no response.",
    "error": "Why the test failed; null: it succeeded.",
}


class TrialResult(ResponseModel, row=ProbeResult, about=_ABOUT_TRIAL_RESULT, thing="proxy"):
    """The result of a test."""

    url: str
    has_recovered: bool = Field(description="Whether a failed proxy is used again.")

    @classmethod
    def build(cls, trial: ProxyTrial) -> TrialResult:
        seconds = round(trial.result.seconds, 3)
        return cls.of(trial.result, trial, url=trial.proxy.spec.shown, seconds=seconds)


_STYLES = {"active": "green", "failing": "red", "disabled": "yellow"}

PROXY_COLUMNS: Columns = {
    "ID>": "id",
    "PROXY": "url",
    "STATE": lambda proxy: (proxy.state.value, _STYLES[proxy.state]),
    "OK>": "success_count",
    "FAILED>": "total_failures",
    "AVERAGE>": lambda proxy: proxy.avg_response_time_ms and f"{proxy.avg_response_time_ms} ms",
    "LAST USED": "last_used_at",
    "REGION": "region",
    "COST>": lambda proxy: proxy.cost and _price(proxy.cost),
    "REASON": "disabled_reason",
}
COST_COLUMNS: Columns = {
    "DOMAIN~": "domain",
    "PROXY": lambda line: f"{line.proxy_id} {line.proxy}",
    "REQUESTS>": "requests",
    "RECEIVED>": lambda line: size_text(line.bytes),
    "PRICE>": lambda line: line.price or ("unknown", "dim"),
    "COST>": "cost",
}


def _price(cost: Any) -> str:
    return f"{cost.amount} {cost.currency}/{cost.unit}"


def _summary(report: Any) -> str:
    total = ", ".join(f"{money} {currency}" for currency, money in report.totals.items())
    cut = f"; {len(report.items)} of {report.count} lines are shown" if report.is_cut else ""
    return (
        f"{report.first} to {report.last}: {report.requests:,} requests,"
        f" {size_text(report.bytes)}, {total or 'no known cost'}{cut}"
    )


def _service(context: Context) -> Proxies:
    return Proxies(context.database, Vault(context.settings))


@proxies.operation("list", "GET /proxies", columns=PROXY_COLUMNS)
async def list_proxies(context: Context, paging: Paging) -> Listed[Proxy]:
    """List proxies with their health, by ID."""
    after = decode_number(paging["cursor"]) or 0
    return listed(await _service(context).page(limit=paging["limit"], after=after), Proxy.of)


@proxies.operation("add", "POST /proxies", command=False, created=True, button="Add")
async def add_proxy(context: Context, order: ProxyOrder) -> AddedProxy:
    """Add a proxy. Its password is stored encrypted; a known proxy gets the new password."""
    spec = parse_address(order.url)
    added = await _service(context).add(spec, allow_private=order.allow_private)
    return AddedProxy.of(added, url=spec.shown)


@proxies.operation("costs", "GET /proxies/costs", columns=COST_COLUMNS, done=_summary)
async def show_costs(
    context: Context,
    days: Annotated[
        int, Field(ge=1, le=costs.MAX_DAYS, description="Whole UTC days, including today.")
    ] = costs.DEFAULT_DAYS,
    domain: Annotated[
        PlainText | None,
        Field(min_length=1, max_length=300, description="Only the share of this domain."),
    ] = None,
    limit: Annotated[
        int,
        Field(
            ge=1, le=costs.MAX_LINES, description="Maximum number of lines, most expensive first."
        ),
    ] = 100,
) -> CostReport:
    """Report the traffic and cost of proxies by domain."""
    name = None if domain is None else domain_name(domain)
    return CostReport.of(
        await costs.report_costs(context.database, days=days, domain=name, limit=limit)
    )


@proxies.operation("set", "PATCH /proxies/{proxy_id}", many=True)
async def set_proxy(context: Context, proxy_id: ProxyId, order: ProxySettings) -> Proxy:
    """Set the region and the cost of a proxy."""
    return Proxy.of(await _service(context).set(proxy_id, order.changes()))


@proxies.operation(
    "remove", "DELETE /proxies/{proxy_id}", many=True, done="removed proxy {id}", button="Remove"
)
async def remove_proxy(context: Context, proxy_id: ProxyId) -> models.RemovedRow:
    """Delete a proxy with its password, counts and costs."""
    return models.RemovedRow.of(await _service(context).remove(proxy_id))


@proxies.operation(
    "enable",
    "POST /proxies/{proxy_id}/enable",
    many=True,
    done="enabled proxy {id}: {url}",
    button="Enable",
)
async def enable_proxy(context: Context, proxy_id: ProxyId) -> Proxy:
    """Use a proxy again, and reset its failure count."""
    return Proxy.of(await _service(context).enable(proxy_id))


@proxies.operation(
    "disable",
    "POST /proxies/{proxy_id}/disable",
    many=True,
    done="disabled proxy {id}: {url}",
    button="Disable",
)
async def disable_proxy(
    context: Context, proxy_id: ProxyId, reason: models.Reason | None = None
) -> Proxy:
    """Stop using a proxy until it is enabled again."""
    return Proxy.of(await _service(context).disable(proxy_id, reason))


@proxies.operation("test", "POST /proxies/{proxy_id}/test", command=False, button="Test")
async def try_proxy(
    context: Context,
    proxy_id: ProxyId,
    url: Annotated[
        Address | None,
        Field(
            description="URL to fetch through the proxy; otherwise only the connection is tested."
        ),
    ] = None,
    allow_private: Annotated[
        bool, Field(description="Allow a private address for the URL.")
    ] = False,
) -> TrialResult:
    """Test a proxy and return the response time. A failed proxy that works again is used again."""
    [trial] = await try_proxies(
        _service(context), [proxy_id], trial_options(context, allow_private), url
    )
    return TrialResult.build(trial)


def trial_options(context: Context, allow_private: bool) -> ClientOptions:
    guard = GuardPolicy(allow_private=allow_private)
    return ClientOptions(user_agent=agent_header(context.settings), guard=guard)
