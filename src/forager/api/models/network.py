"""Domains and proxies: how the crawler meets the network."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import Field

from forager.api.models import (
    Amount,
    Every,
    Interval,
    Order,
    PlainText,
    Reason,
    Time,
    View,
    example,
    interval_of,
)
from forager.fetch import domains
from forager.fetch.domains.service import (
    MAX_CONCURRENCY,
    MAX_DELAY,
    MAX_PATTERNS,
    MAX_PROXY_RATE,
    DomainChanges,
)
from forager.fetch.proxies import costs
from forager.fetch.proxies.probe import ProbeResult
from forager.fetch.proxies.record import (
    DEFAULT_CURRENCY,
    CostUnit,
    ProxyCost,
    ProxyRecord,
    ProxyState,
)
from forager.fetch.proxies.service import ProxyChanges
from forager.settings.crawling import RenderMode
from forager.tasks.alarms import Decision

MAX_ADDRESSES = 1000
Address = Annotated[PlainText, Field(min_length=1, max_length=2000)]
Region = Annotated[PlainText, Field(pattern="^[a-z0-9-]{1,32}$", examples=["eu"])]


class Domain(View, row=domains.Domain, hidden=("id",)):
    """A host: what a person set (null: not set), and how it is doing now."""

    host: str = Field(validation_alias="domain_name")
    delay: float | None = Field(validation_alias="crawl_delay_seconds", description="In seconds.")
    concurrency: int | None = Field(validation_alias="max_concurrent_requests")
    proxy_rate: float | None = Field(description="Requests per second of each proxy; null: 5.")
    active: bool = Field(validation_alias="is_active")
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Recrawl interval of its tasks."
    )
    min_every: Interval | None = Field(validation_alias="min_frequency")
    max_every: Interval | None = Field(validation_alias="max_frequency")
    proxies: bool | None = Field(validation_alias="use_proxies")
    task_hold: str | None = Field(description="Whether its tasks are paused or stopped.")
    region: str | None = Field(
        description="Only workers in this region crawl it; null: all workers."
    )
    render: RenderMode | None = Field(description="Which of its pages are rendered; null: auto.")
    render_urls: list[str] = Field(description="Patterns of URLs that are always rendered.")


class DomainSettings(Order):
    """What to set; null takes a setting back, what is left out stays as it is."""

    model_config = example(delay=2.5, concurrency=2, every="12h")

    delay: float | None = Field(
        default=None,
        ge=0,
        le=MAX_DELAY,
        description="Minimum seconds between two requests; by default as each crawl says.",
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Maximum connections at the same time; by default as each crawl says.",
    )
    active: bool = Field(default=True, description="Whether it may be crawled at all.")
    per_proxy_only: bool = Field(
        default=False,
        description="Apply the delay to each proxy separately, not to all requests together.",
    )
    proxy_rate: float | None = Field(
        default=None,
        ge=1,
        le=MAX_PROXY_RATE,
        description="Maximum requests per second of each proxy, from 1 to 5.",
    )

    every: Every | None = Field(
        default=None,
        description="Recrawl interval of its tasks, from their next visit on: 30m, 6h, 1d, 1w.",
    )
    adaptive: bool | None = Field(
        default=None,
        description="Shorten the interval when prices change, and lengthen it when they do not.",
    )
    min_every: Every | None = Field(default=None, description="Shortest adapted interval.")
    max_every: Every | None = Field(default=None, description="Longest adapted interval.")
    currency: Annotated[PlainText, Field(pattern="^[A-Za-z]{3}$", examples=["EUR"])] | None = Field(
        default=None, description="The currency its prices must have."
    )
    proxies: bool | None = Field(default=None, description="Whether its tasks use the proxy pool.")
    allow_private: bool = Field(
        default=False, description="Whether its tasks may reach private addresses."
    )
    region: Region | None = Field(
        default=None, description="Only workers in this region crawl it; by default all workers."
    )
    render: RenderMode | None = Field(
        default=None,
        description="Render pages in a browser: where the static response lacks the content or the"
        " price (auto, the default), always, or never.",
    )
    render_urls: list[Annotated[PlainText, Field(min_length=1, max_length=2000)]] = Field(
        default_factory=list,
        max_length=MAX_PATTERNS,
        description="Always render URLs that match a pattern, such as /app/*.",
    )

    def changes(self) -> DomainChanges:
        names = {"min_every": "shortest", "max_every": "longest"}
        given: dict[str, Any] = {
            names.get(name, name): interval_of(value) if "every" in name else value
            for name, value in self.given().items()
            if name in DomainSettings.model_fields
        }
        if given.get("currency"):
            given["currency"] = given["currency"].upper()
        return cast(DomainChanges, given)


class NewDomain(DomainSettings):
    model_config = example(host="shop.example.org", delay=2.5, concurrency=2)

    host: Annotated[PlainText, Field(min_length=1, max_length=300)] = Field(
        description="A host, host:port, or a URL."
    )


class SeveralDomains(DomainSettings):
    model_config = example(hosts=["shop.example.org", "*.example.org"], delay=2.5)

    hosts: list[Annotated[PlainText, Field(min_length=1, max_length=300)]] = Field(
        min_length=1,
        max_length=1_000,
        description="Hosts or patterns such as *.example.com.",
    )


class Alarm(View):
    """A domain whose results are withheld because they look wrong."""

    domain: str
    reason: str
    raised_at: Time


class AlarmOrder(Order):
    model_config = example(decision="accept")

    decision: Decision = Field(description="Accept or discard the withheld results.")


class ResolvedAlarm(View):
    tasks: int = Field(description="Number of tasks concerned.")


_NOT_SHOWN = ("cost_amount", "cost_currency", "cost_unit", "is_active")


class Proxy(View, row=ProxyRecord, hidden=_NOT_SHOWN):
    """A proxy and its health; its password is never shown."""

    url: str = Field(validation_alias="shown")
    state: ProxyState
    region: str | None = Field(description="Only workers in this region use it; null: all workers.")
    cost: Cost | None


class Cost(View, row=ProxyCost):
    """An amount of money per request or per GB (10^9 bytes)."""


class CostOrder(Order):
    model_config = example(amount="0.002", unit="request", currency="USD")

    amount: Annotated[PlainText, Field(pattern=r"^\d{1,7}(\.\d{1,8})?$", examples=["0.002"])]
    unit: CostUnit
    currency: Annotated[PlainText, Field(pattern="^[A-Za-z]{3}$")] = DEFAULT_CURRENCY

    def cost(self) -> ProxyCost:
        return ProxyCost(Decimal(self.amount), self.unit, self.currency.upper())


class ProxySettings(Order):
    """What to set; null takes a setting back, what is left out stays as it is."""

    model_config = example(region="eu", cost={"amount": "3.50", "unit": "GB", "currency": "EUR"})

    region: Region | None = Field(
        default=None, description="Only workers in this region use it; null: all workers."
    )
    cost: CostOrder | None = Field(default=None, description="Cost; null: unknown.")

    def changes(self) -> ProxyChanges:
        given = self.given()
        if self.cost is not None:
            given["cost"] = self.cost.cost()
        return cast(ProxyChanges, given)


_OF_PROXY = ("scheme", "host", "port", "username", "has_password", "cost_amount", "cost_unit")


class CostLine(View, row=costs.CostLine, hidden=_OF_PROXY):
    """The traffic of one domain through one proxy, and its cost."""

    proxy: str
    bytes: int = Field(description="Size of response bodies as transferred.")
    price: str | None = Field(examples=["0.002 USD/request"])
    cost: Amount | None = Field(description="Null if the price of the proxy is unknown.")


class CostReport(View, row=costs.CostReport):
    """The most expensive lines, and totals over all lines."""

    items: list[CostLine] = Field(validation_alias="lines")
    count: int = Field(description="Number of lines in all.")
    is_cut: bool = Field(description="True if `items` holds only the most expensive ones.")
    totals: dict[str, Amount] = Field(description="By currency.")


class ProxyOrder(Order):
    model_config = example(url="http://user:password@proxy.example.org:3128")

    url: Address = Field(description="http, https or socks5://user:password@host:port")
    allow_private: bool = Field(default=False, description="Allow a private address.")


class AddedProxy(View):
    """`is_new` is false for a known proxy, which got the new password."""

    id: int
    url: str
    is_new: bool


class DisableOrder(Order):
    model_config = example(reason="the contract has ended")

    reason: Reason | None = None


class TrialOrder(Order):
    model_config = example(url="https://example.org/")

    url: Address | None = Field(
        default=None,
        description="URL to fetch through the proxy; by default only the connection is tested.",
    )
    allow_private: bool = Field(default=False, description="Allow a private address for the URL.")


class TrialResult(View, row=ProbeResult):
    url: str
    has_recovered: bool = Field(description="Whether a failed proxy is used again.")


class RemovedProxy(View):
    id: int
