"""Domains and proxies. They belong to the installation: operators look, admins change."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Limit, Listed, Offset, Paged, RowId, cut, listed
from forager.api.models import PlainText
from forager.api.models import network as views
from forager.api.services import Administers, Operates
from forager.db.cursor import Page, decode_number
from forager.fetch.domains.service import domain_name
from forager.fetch.proxies.costs import DEFAULT_DAYS, MAX_DAYS, MAX_LINES, report_costs
from forager.fetch.proxies.service import parse_address
from forager.tasks.alarms import decide_alarm, list_alarms

router = APIRouter()

Host = Annotated[PlainText, Path(min_length=1, max_length=300, examples=["shop.example.org"])]


@router.get("/domains", tags=["domains"])
async def list_domains(
    here: Operates,
    paging: Paged,
    active: Annotated[
        bool | None, Query(description="Only active domains, or only inactive ones.")
    ] = None,
    slowed: Annotated[bool, Query(description="Only rate-limited hosts.")] = False,
    region: Annotated[
        PlainText | None, Query(max_length=32, description="Only domains assigned to this region.")
    ] = None,
) -> Listed[views.Domain]:
    """List domains by name."""
    page = await here.domains.list_domains(active=active, slowed=slowed, region=region, **paging)
    return listed(page, views.Domain.of)


@router.post("/domains", status_code=201, response_model=views.Domain, tags=["domains"])
async def add_domain(order: views.NewDomain, here: Administers, once: OnlyOnce) -> Response:
    """Add settings for a host; they also apply to subdomains without settings."""
    changes = order.changes()
    return await once.do(
        lambda here: here.domains.add(order.host, changes), views.Domain.of, status=201
    )


@router.get("/domains/{host}", tags=["domains"])
async def show_domain(host: Host, here: Operates) -> views.Domain:
    """Show the domain settings of a host: its own, or those of its nearest parent domain."""
    return views.Domain.of(await here.domains.get(host))


@router.patch("/domains/{host}", tags=["domains"])
async def set_domain(host: Host, order: views.DomainSettings, here: Administers) -> views.Domain:
    """Change the crawl settings of a domain; running crawls apply them within seconds."""
    return views.Domain.of(await here.domains.set(host, order.changes()))


@router.patch("/domains", tags=["domains"])
async def set_domains(order: views.SeveralDomains, here: Administers) -> Listed[views.Domain]:
    """Change several domains together, or none: by host, or all that match a pattern."""
    changed = await here.domains.set_many(order.hosts, order.changes())
    return listed(Page(changed, None), views.Domain.of)


@router.get("/domain-alarms", tags=["domains"])
async def list_domain_alarms(
    here: Operates, limit: Limit = 100, cursor: Offset = 0
) -> Listed[views.Alarm]:
    """List domains whose results are withheld because they look wrong."""
    return listed(cut(await list_alarms(here.database), cursor, limit), views.Alarm.of)


@router.post("/domains/{host}/alarm", tags=["domains"])
async def resolve_alarm(host: Host, order: views.AlarmOrder, here: Operates) -> views.ResolvedAlarm:
    """Accept or discard the withheld results of a domain."""
    return views.ResolvedAlarm(tasks=await decide_alarm(here.database, host, order.decision))


@router.post("/domains/{host}/unblock", tags=["domains"])
async def unblock(host: Host, here: Administers) -> views.Domain:
    """Reset the slow-down of a host."""
    return views.Domain.of(await here.domains.forget_slow_down(host))


@router.get("/proxies", tags=["proxies"])
async def list_proxies(here: Operates, paging: Paged) -> Listed[views.Proxy]:
    """List proxies with their health, by ID."""
    page = await here.proxies.page(
        limit=paging["limit"], after=decode_number(paging["cursor"]) or 0
    )
    return listed(page, views.Proxy.of)


@router.post("/proxies", status_code=201, response_model=views.AddedProxy, tags=["proxies"])
async def add_proxy(order: views.ProxyOrder, here: Administers, once: OnlyOnce) -> Response:
    """Add a proxy. Its password is stored encrypted; a known proxy gets the new password."""
    spec = parse_address(order.url)
    return await once.do(
        lambda here: here.proxies.add(spec, allow_private=order.allow_private),
        lambda added: views.AddedProxy.of(added, url=spec.shown),
        status=201,
    )


@router.get("/proxies/costs", tags=["proxies"])
async def show_costs(
    here: Operates,
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
) -> views.CostReport:
    """Report the traffic and cost of proxies by domain."""
    name = None if domain is None else domain_name(domain)
    return views.CostReport.of(
        await report_costs(here.database, days=days, domain=name, limit=limit)
    )


@router.patch("/proxies/{proxy_id}", tags=["proxies"])
async def set_proxy(proxy_id: RowId, order: views.ProxySettings, here: Administers) -> views.Proxy:
    """Set the region and the cost of a proxy."""
    return views.Proxy.of(await here.proxies.set(proxy_id, order.changes()))


@router.delete("/proxies/{proxy_id}", tags=["proxies"])
async def remove_proxy(proxy_id: RowId, here: Administers) -> views.RemovedProxy:
    """Delete a proxy with its password, counts and costs."""
    return views.RemovedProxy(id=(await here.proxies.remove(proxy_id)).id)


@router.post("/proxies/{proxy_id}/enable", tags=["proxies"])
async def enable_proxy(proxy_id: RowId, here: Administers) -> views.Proxy:
    """Use a proxy again, and reset its failure count."""
    return views.Proxy.of(await here.proxies.enable(proxy_id))


@router.post("/proxies/{proxy_id}/disable", tags=["proxies"])
async def disable_proxy(
    proxy_id: RowId, here: Administers, order: views.DisableOrder | None = None
) -> views.Proxy:
    """Stop using a proxy until it is enabled again."""
    return views.Proxy.of(await here.proxies.disable(proxy_id, order.reason if order else None))


@router.post("/proxies/{proxy_id}/test", tags=["proxies"])
async def try_proxy(
    proxy_id: RowId, here: Administers, order: views.TrialOrder | None = None
) -> views.TrialResult:
    """Test a proxy and return the response time. A failed proxy that works again is used again."""
    wanted = order or views.TrialOrder()
    trial = await here.try_proxy(proxy_id, wanted.url, allow_private=wanted.allow_private)
    return views.TrialResult.of(
        trial.result,
        url=trial.proxy.spec.shown,
        seconds=round(trial.result.seconds, 3),
        has_recovered=trial.has_recovered,
    )
