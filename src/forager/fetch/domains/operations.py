"""Operations on domains: operators see them, admins change them. `tasks` adds further ones."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from forager.db.cursor import Page
from forager.fetch import domains as rows
from forager.fetch.domains.service import (
    MAX_CONCURRENCY,
    MAX_DELAY,
    MAX_PATTERNS,
    MAX_PROXY_RATE,
    DomainChanges,
    Domains,
)
from forager.operations.models import (
    Currency,
    Every,
    Interval,
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    example,
    interval_of,
    listed,
)
from forager.operations.operation import Columns, Context, Group, Scope
from forager.settings.crawling import RenderMode
from forager.terminal import short_time
from forager.validation import matches

domains = Group(
    "domains",
    "Hosts, their crawl settings, and which are throttled now.",
    page="Domains",
    sees=Scope.OPERATE,
    changes=Scope.ADMIN,
)

Host = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=300,
        examples=["shop.example.org"],
        description="A host, host:port, or a URL.",
    ),
]
_REGION = matches("^[a-z0-9-]{1,32}$", "up to 32 lower-case letters, digits and dashes")
Region = Annotated[PlainText, Field(pattern=_REGION, examples=["eu"])]


_ABOUT_DOMAIN = {
    "blocked_until": "No requests are sent before this time.",
    "slow_delay": "Additional seconds between requests because of rate limits.",
    "traffic_delay": "Minimum seconds between requests until the host is resumed; null: not slowed"
    " down.",
    "next_slot_at": "When the next request may be sent.",
    "runners": "Crawls that use the domain now.",
    "connections": "Connections in use now.",
    "per_proxy_only": "Whether the delay applies to each proxy separately.",
    "adaptive": "Whether intervals adapt to price changes; null: the default.",
    "base_url": "URL of the home page of the site.",
}


class Domain(ResponseModel, row=rows.Domain, hidden=("id",), about=_ABOUT_DOMAIN):
    """A host: what a person set (null: not set), and how it is doing now."""

    host: str = Field(description="Host name.", validation_alias="domain_name")
    delay: float | None = Field(validation_alias="crawl_delay_seconds", description="In seconds.")
    concurrency: int | None = Field(
        description="Maximum concurrent connections; null: left to each crawl.",
        validation_alias="max_concurrent_requests",
    )
    proxy_rate: float | None = Field(description="Requests per second of each proxy; null: 5.")
    active: bool = Field(description="Whether it is in use.", validation_alias="is_active")
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Recrawl interval of its tasks."
    )
    min_every: Interval | None = Field(
        description="Shortest adapted interval.", validation_alias="min_frequency"
    )
    max_every: Interval | None = Field(
        description="Longest adapted interval.", validation_alias="max_frequency"
    )
    proxies: bool | None = Field(
        description="Whether tasks use the proxy pool; null: the default.",
        validation_alias="use_proxies",
    )
    task_hold: str | None = Field(description="Whether its tasks are paused or stopped.")
    region: str | None = Field(
        description="Only workers in this region crawl it; null: all workers."
    )
    render: RenderMode | None = Field(description="Which of its pages are rendered; null: auto.")
    render_urls: list[str] = Field(description="Patterns of URLs that are always rendered.")


class DomainSettings(RequestModel):
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
    currency: Currency | None = Field(
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
    """A host, and its settings."""

    model_config = example(host="shop.example.org", delay=2.5, concurrency=2)

    host: Host


class SeveralDomains(DomainSettings):
    """Hosts, and the settings that they get."""

    model_config = example(hosts=["shop.example.org", "*.example.org"], delay=2.5)

    hosts: list[Host] = Field(
        min_length=1, max_length=1_000, description="Hosts or patterns such as *.example.com."
    )


def _state(domain: Any) -> tuple[str, str]:
    if not domain.active:
        return "disabled", "dim"
    if domain.blocked_until is not None:
        return f"blocked until {short_time(domain.blocked_until)}", "red"
    if domain.slow_delay > 0:
        return f"slowed down by {domain.slow_delay:g} s", "yellow"
    return "active", "green"


DOMAIN_COLUMNS: Columns = {
    "DOMAIN~": "host",
    "DELAY>": lambda domain: "default" if domain.delay is None else f"{domain.delay:g} s",
    "CONNECTIONS>": lambda domain: domain.concurrency or "default",
    "IN USE>": "connections",
    "REGION": "region",
    "NOW": _state,
}


@domains.operation(
    "list",
    "GET /domains",
    columns=DOMAIN_COLUMNS,
    none="No domains match. A crawl adds one for each host.",
)
async def list_domains(
    context: Context,
    paging: Paging,
    active: Annotated[
        bool | None, Field(description="Only active domains, or only inactive ones.")
    ] = None,
    slowed: Annotated[bool, Field(description="Only rate-limited hosts.")] = False,
    region: Annotated[
        PlainText | None, Field(max_length=32, description="Only domains assigned to this region.")
    ] = None,
) -> Listed[Domain]:
    """List domains by name."""
    page = await Domains(context.database).list_domains(
        active=active, slowed=slowed, region=region, **paging
    )
    return listed(page, Domain.of)


@domains.operation("add", "POST /domains", arguments=("host",), created=True, button="Add")
async def add_domain(context: Context, order: NewDomain) -> Domain:
    """Add settings for a host; they also apply to subdomains without settings."""
    return Domain.of(await Domains(context.database).add(order.host, order.changes()))


@domains.operation("set", "PATCH /domains/{host}", command=False)
async def set_domain(context: Context, host: Host, order: DomainSettings) -> Domain:
    """Change the crawl settings of a domain; running crawls apply them within seconds."""
    return Domain.of(await Domains(context.database).set(host, order.changes()))


@domains.operation("set", "PATCH /domains", arguments=("hosts",), columns=DOMAIN_COLUMNS)
async def set_domains(context: Context, order: SeveralDomains) -> Listed[Domain]:
    """Change several domains together, or none: by host, or all that match a pattern."""
    changed = await Domains(context.database).set_many(order.hosts, order.changes())
    return listed(Page(changed, None), Domain.of)


@domains.operation("enable", "PATCH /domains/{host}", endpoint=False, button="Allow requests")
async def enable(context: Context, host: Host) -> Domain:
    """Allow a domain to be crawled again."""
    return await set_domain(context, host, DomainSettings(active=True))


@domains.operation("disable", "PATCH /domains/{host}", endpoint=False, button="Allow requests")
async def disable(context: Context, host: Host) -> Domain:
    """Stop all requests to a domain and its subdomains, including those of running crawls."""
    return await set_domain(context, host, DomainSettings(active=False))


@domains.operation("unblock", "POST /domains/{host}/unblock")
async def unblock(context: Context, host: Host) -> Domain:
    """Reset the slow-down of a host."""
    return Domain.of(await Domains(context.database).forget_slow_down(host))
