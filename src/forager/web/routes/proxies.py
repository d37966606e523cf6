"""Proxies: their health and costs, and forms to add, change and remove them."""

from __future__ import annotations

from dataclasses import replace

from forager.api.limits import RowId
from forager.api.problems import problem_of
from forager.errors import ForagerError, InvalidInput
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.costs import report_costs
from forager.fetch.proxies.operations import trial_options
from forager.fetch.proxies.probe import ProxyTrial, try_proxies
from forager.fetch.proxies.proxy import ProxySpec, parse_cost
from forager.fetch.proxies.service import ProxyChanges, parse_address
from forager.operations.models import LARGEST_BIGINT
from forager.web.errors import message_of
from forager.web.formats import counted, number
from forager.web.forms import Form, Submitted
from forager.web.navigation import as_place
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import PAGE_SIZE, AdminVisit, OperatorVisit, WebVisit

router = new_router()

BILL_LINES = 50


@page(router, "/proxies")
async def list_proxies(visit: OperatorVisit) -> WebPage:
    return await _proxies(visit, Form({}), None)


async def _proxies(visit: WebVisit, given: Form, error: ForagerError | None) -> WebPage:
    """The list, and the form with its input."""
    after = visit.asked.number("cursor", most=LARGEST_BIGINT) or 0
    found = await visit.proxies.page(limit=PAGE_SIZE, after=after)
    bill = await cached(visit, lambda: report_costs(visit.database, limit=BILL_LINES))
    return WebPage(
        "proxies.html",
        proxies=found,
        bill=bill.answer,
        bill_at=bill.at,
        given=given,
        problem=None if error is None else message_of(problem_of(error, as_place)),
    ).after(error)


@page(router, "/proxies/{proxy_id}")
async def show(visit: OperatorVisit, proxy_id: RowId) -> WebPage:
    proxy = await visit.proxies.get(proxy_id)
    cost = proxy.cost
    return WebPage(
        "proxy.html",
        proxy=proxy,
        address=proxy.shown,
        price="" if cost is None else f"{cost.amount.normalize():f}/{cost.unit}",
    )


@action(router, "/proxies/{proxy_id}/set")
async def change(visit: AdminVisit, form: Submitted, proxy_id: RowId) -> Done:
    price = form.text("cost")
    changes = ProxyChanges(
        region=form.optional("region"),
        cost=parse_cost(price, form.optional("currency")) if price else None,
    )
    proxy = await visit.proxies.set(proxy_id, changes)
    return Done(f"Proxy {proxy.id} updated.", to=f"/proxies/{proxy.id}")


@action(router, "/proxies")
async def add(visit: AdminVisit, form: Submitted) -> Done | WebPage:
    """Add a proxy of each line; lines that are refused stay in the form."""
    lines = form.lines("urls")
    refused: list[str] = []
    problem: ForagerError | None = None if lines else InvalidInput("give at least one URL")
    for line in lines:
        try:
            await _add(visit, line, form.optional("password"), form.checked("allow_private"))
        except ForagerError as error:
            refused.append(line)
            problem = problem or error
    if problem is not None:
        return await _proxies(visit, Form({**form.fields, "urls": ["\n".join(refused)]}), problem)
    # leaves: the form must not keep the passwords
    text = f"{counted(len(lines), 'proxy', 'proxies')} added or updated."
    return Done(text, to="/proxies", leaves=True)


async def _add(visit: WebVisit, url: str, password: str | None, allow_private: bool) -> None:
    spec = _with_password(parse_address(url), password)
    GuardPolicy(allow_private=allow_private).check_unresolved(spec.host)
    await visit.proxies.add(spec, allow_private=allow_private)


def _with_password(spec: ProxySpec, password: str | None) -> ProxySpec:
    if password is None:
        return spec
    if spec.username is None:
        raise InvalidInput(
            "a password needs a user name", hint="Write it in the URL: http://user@host:port."
        )
    return replace(spec, password=password)


@action(router, "/proxies/{proxy_id}/move")
async def move(visit: AdminVisit, form: Submitted, proxy_id: RowId) -> Done:
    match move := form.text("move"):
        case "enable":
            await visit.proxies.enable(proxy_id)
        case "disable":
            await visit.proxies.disable(proxy_id, form.text("reason")[:500] or None)
        case "remove":
            await visit.proxies.remove(proxy_id)
        case _:
            raise InvalidInput("a proxy can be enabled, disabled and removed")
    return Done(f"Proxy {proxy_id} {move}d.", to="/proxies")


@action(router, "/proxies/{proxy_id}/test")
async def test(visit: AdminVisit, form: Submitted, proxy_id: RowId) -> Done:
    allowed = form.checked("allow_private")
    options = trial_options(visit.context, allowed)
    [trial] = await try_proxies(visit.proxies, [proxy_id], options, form.optional("url"))
    return Done(_outcome(trial), to="/proxies", failed=not trial.result.ok)


def _outcome(trial: ProxyTrial) -> str:
    result = trial.result
    if not result.ok:
        return f"Proxy {result.proxy_id} failed: {result.error}."
    again = " It is used again." if trial.has_recovered else ""
    return f"Proxy {result.proxy_id} answered in {number(result.seconds)} s.{again}"
