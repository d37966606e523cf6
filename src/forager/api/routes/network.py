"""Domains and proxies. They belong to the installation: operators look, admins change."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Cursor, Limit, Listed, Offset, cut, listed
from forager.api.models import LARGEST_BIGINT, PlainText
from forager.api.models.network import (
    AddedProxy,
    Alarm,
    AlarmOrder,
    CostReport,
    DisableOrder,
    Domain,
    DomainSettings,
    NewDomain,
    Proxy,
    ProxyOrder,
    ProxySettings,
    RemovedProxy,
    ResolvedAlarm,
    SeveralDomains,
    TrialOrder,
    TrialResult,
)
from forager.api.services import Admin, Here, Operator, Services
from forager.db.cursor import Page, decode_number
from forager.fetch.client import ClientOptions
from forager.fetch.domains.service import domain_name
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.costs import DEFAULT_DAYS, MAX_DAYS, MAX_LINES, report_costs
from forager.fetch.proxies.probe import try_proxies
from forager.fetch.proxies.service import parse_address
from forager.fetch.response import agent_header
from forager.tasks.alarms import decide_alarm, list_alarms

router = APIRouter()

# the scope is all that is asked of the caller here
# ruff: noqa: ARG001

Host = Annotated[PlainText, Path(min_length=1, max_length=300, examples=["shop.example.org"])]
ProxyId = Annotated[int, Path(ge=1, le=LARGEST_BIGINT)]


# --- domains -----------------------------------------------------------------------------------


@router.get("/domains", tags=["domains"])
async def list_domains(
    here: Here,
    caller: Operator,
    active: Annotated[
        bool | None, Query(description="Only active domains, or only inactive ones.")
    ] = None,
    slowed: Annotated[bool, Query(description="Only rate-limited hosts.")] = False,
    region: Annotated[
        PlainText | None, Query(max_length=32, description="Only domains assigned to this region.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Listed[Domain]:
    """List domains by name."""
    page = await here.domains.list_domains(
        active=active, slowed=slowed, region=region, cursor=cursor, limit=limit
    )
    return listed(page, Domain.of)


@router.post("/domains", status_code=201, response_model=Domain, tags=["domains"])
async def add_domain(order: NewDomain, caller: Admin, once: OnlyOnce) -> Response:
    """Add settings for a host; they also apply to subdomains without settings."""

    async def add(here: Services) -> Domain:
        return Domain.model_validate(await here.domains.add(order.host, order.changes()))

    return await once.do(add, status=201)


@router.get("/domains/{host}", tags=["domains"])
async def show_domain(host: Host, here: Here, caller: Operator) -> Domain:
    """Show the domain settings of a host: its own, or those of its nearest parent domain."""
    return Domain.model_validate(await here.domains.get(host))


@router.patch("/domains/{host}", tags=["domains"])
async def set_domain(host: Host, order: DomainSettings, here: Here, caller: Admin) -> Domain:
    """Change the crawl settings of a domain; running crawls apply them within seconds."""
    return Domain.model_validate(await here.domains.set(host, order.changes()))


@router.patch("/domains", tags=["domains"])
async def set_domains(order: SeveralDomains, here: Here, caller: Admin) -> Listed[Domain]:
    """Change several domains together, or none: by host, or all that match a pattern."""
    changed = await here.domains.set_many(order.hosts, order.changes())
    return listed(Page(changed, None), Domain.of)


@router.get("/domain-alarms", tags=["domains"])
async def list_domain_alarms(
    here: Here, caller: Operator, limit: Limit = 100, cursor: Offset = 0
) -> Listed[Alarm]:
    """List domains whose results are held because they look wrong."""
    return listed(cut(await list_alarms(here.database), cursor, limit), Alarm.of)


@router.post("/domains/{host}/alarm", tags=["domains"])
async def resolve_alarm(
    host: Host, order: AlarmOrder, here: Here, caller: Operator
) -> ResolvedAlarm:
    """Accept or discard the held results of a domain."""
    return ResolvedAlarm(tasks=await decide_alarm(here.database, host, order.decision))


@router.post("/domains/{host}/unblock", tags=["domains"])
async def unblock(host: Host, here: Here, caller: Admin) -> Domain:
    """Reset the slow-down of a host."""
    return Domain.model_validate(await here.domains.forget_slow_down(host))


# --- proxies -----------------------------------------------------------------------------------


@router.get("/proxies", tags=["proxies"])
async def list_proxies(
    here: Here, caller: Operator, limit: Limit = 50, cursor: Cursor = None
) -> Listed[Proxy]:
    """List proxies with their health, by ID."""
    page = await here.proxies.page(limit=limit, after=decode_number(cursor) or 0)
    return listed(page, Proxy.of)


@router.post("/proxies", status_code=201, response_model=AddedProxy, tags=["proxies"])
async def add_proxy(order: ProxyOrder, caller: Admin, once: OnlyOnce) -> Response:
    """Add a proxy. Its password is stored encrypted; a known proxy gets the new password."""
    spec = parse_address(order.url)

    async def add(here: Services) -> AddedProxy:
        added = await here.proxies.add(spec, allow_private=order.allow_private)
        return AddedProxy(id=added.id, url=spec.shown, is_new=added.is_new)

    return await once.do(add, status=201)


@router.get("/proxies/costs", tags=["proxies"])
async def show_costs(
    here: Here,
    caller: Operator,
    days: Annotated[
        int, Query(ge=1, le=MAX_DAYS, description="Whole UTC days, including today.")
    ] = DEFAULT_DAYS,
    domain: Annotated[
        PlainText | None,
        Query(min_length=1, max_length=300, description="Only the share of this domain."),
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=MAX_LINES, description="Maximum number of lines, most expensive first.")
    ] = 100,
) -> CostReport:
    """Report the traffic and cost of proxies by domain."""
    name = None if domain is None else domain_name(domain)
    return CostReport.of(await report_costs(here.database, days=days, domain=name, limit=limit))


@router.patch("/proxies/{proxy_id}", tags=["proxies"])
async def set_proxy(proxy_id: ProxyId, order: ProxySettings, here: Here, caller: Admin) -> Proxy:
    """Set the region and the cost of a proxy."""
    return Proxy.of(await here.proxies.set(proxy_id, order.changes()))


@router.delete("/proxies/{proxy_id}", tags=["proxies"])
async def remove_proxy(proxy_id: ProxyId, here: Here, caller: Admin) -> RemovedProxy:
    """Delete a proxy with its password, counts and costs."""
    return RemovedProxy(id=(await here.proxies.remove(proxy_id)).id)


@router.post("/proxies/{proxy_id}/enable", tags=["proxies"])
async def enable_proxy(proxy_id: ProxyId, here: Here, caller: Admin) -> Proxy:
    """Use a proxy again, and reset its failure count."""
    return Proxy.of(await here.proxies.enable(proxy_id))


@router.post("/proxies/{proxy_id}/disable", tags=["proxies"])
async def disable_proxy(
    proxy_id: ProxyId, here: Here, caller: Admin, order: DisableOrder | None = None
) -> Proxy:
    """Stop using a proxy until it is enabled again."""
    return Proxy.of(await here.proxies.disable(proxy_id, order.reason if order else None))


@router.post("/proxies/{proxy_id}/test", tags=["proxies"])
async def try_proxy(
    proxy_id: ProxyId, here: Here, caller: Admin, order: TrialOrder | None = None
) -> TrialResult:
    """Test a proxy and return the response time. A failed proxy that works again is used again."""
    wanted = order or TrialOrder()
    options = ClientOptions(
        user_agent=agent_header(here.settings),
        guard=GuardPolicy(allow_private=wanted.allow_private),
    )
    [trial] = await try_proxies(here.proxies, [proxy_id], options, wanted.url)
    return TrialResult.of(trial)
