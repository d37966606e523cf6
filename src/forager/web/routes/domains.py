"""Domains: settings, robots.txt, rate limits and costs of each host."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import Path

from forager.crawl.reports.report import AnswerGroup, crawl_report, waits_of
from forager.crawl.traffic import Traffic, set_traffic
from forager.errors import InvalidInput
from forager.failures.service import ErrorFilter, list_errors
from forager.fetch.domains.service import MAX_CONCURRENCY, MAX_DELAY, DomainChanges
from forager.fetch.host_history.record import host_minutes
from forager.fetch.proxies.costs import report_costs
from forager.fetch.response import agent_header
from forager.fetch.robots.gate import robots_report
from forager.jobs.job import Job
from forager.jobs.lifecycle import ACTIVE
from forager.settings.crawling import parse_render
from forager.tasks.alarms import Decision, decide_alarm, describe_acceptance, list_alarms
from forager.tasks.operations.domains import describe_domain
from forager.tasks.selection import Selection
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.host_charts import host_charts
from forager.web.job_view import load_answers
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import AdminVisit, OperatorVisit, WebVisit

router = new_router()

BILL_LINES = 50

SHOWN_JOBS, SHOWN_TASKS, SHOWN_ERRORS = 8, 8, 8
# of the charts
MINUTES = 360

Host = Annotated[str, Path(min_length=1, max_length=300)]


@page(router, "/domains")
async def list_domains(visit: OperatorVisit) -> WebPage:
    form = visit.asked
    found = await visit.domains.list_domains(
        active={"on": True, "off": False}.get(form.text("active")),
        slowed=form.checked("slowed"),
        region=form.optional("region"),
        text=form.optional("q"),
        **visit.paging,
    )
    return WebPage(
        "domains.html",
        domains=found,
        active=form.text("active"),
        slowed=form.checked("slowed"),
        region=form.text("region"),
        host=form.text("host"),
    )


@action(router, "/domains")
async def add(visit: AdminVisit, form: Submitted) -> Done:
    name = (await visit.domains.add(form.text("host"))).domain_name
    return Done(f"{name} was added.", to=_url(name), leaves=True)


@page(router, "/domains/{host}")
async def show(visit: OperatorVisit, host: Host) -> WebPage:
    domain = await visit.domains.get(host)
    name = domain.domain_name
    alarm = next((a for a in await list_alarms(visit.database) if a.domain == name), None)
    bill = await cached(visit, lambda: report_costs(visit.database, domain=name, limit=BILL_LINES))
    return WebPage(
        "domain.html",
        domain=domain,
        base=_url(name),
        **await _cockpit(visit, name),
        robots=await robots_report(visit.database, domain.base_url, agent_header(visit.settings)),
        defaults=visit.settings,
        alarm=alarm,
        acceptance=alarm and await describe_acceptance(visit.database, name),
        decisions=await describe_domain(visit.database, domain),
        bill=bill.answer,
        bill_at=bill.at,
        max_delay=MAX_DELAY,
        max_concurrency=MAX_CONCURRENCY,
    )


@action(router, "/domains/{host}/set")
async def change(visit: AdminVisit, form: Submitted, host: Host) -> Done:
    name = (await visit.domains.set(host, _changes(form))).domain_name
    text = f"Settings of {name} saved. Running crawls apply them within seconds."
    return Done(text, to=_url(name))


@action(router, "/domains/{host}/unblock")
async def unblock(visit: AdminVisit, form: Submitted, host: Host) -> Done:
    domain = await visit.domains.forget_slow_down(host)
    return Done("Slow-down reset.", to=_url(domain.domain_name))


@action(router, "/domains/{host}/alarm")
async def resolve(visit: OperatorVisit, form: Submitted, host: Host) -> Done:
    decision = Decision(form.text("decision") or Decision.DISCARD)
    tasks = await decide_alarm(visit.database, host, decision)
    return Done(f"Withheld results {decision.value}ed: {tasks} tasks.", to=_url(host))


async def _cockpit(visit: WebVisit, name: str) -> dict[str, object]:
    """What happens at a host: its last hours, its newest errors, and what waits for it."""
    minutes = await host_minutes(visit.database, name, minutes=MINUTES)
    jobs = await visit.queue.list_jobs(
        statuses=list(ACTIVE), host=name, user_id=visit.caller.sees_only, limit=SHOWN_JOBS
    )
    wanted = ErrorFilter(domain=name, user_id=visit.caller.sees_only)
    newest, answers = await _answers(visit, name)
    due = await visit.tasks.list_tasks(Selection(domain=name, due=True), limit=SHOWN_TASKS)
    return {
        "history": host_charts(minutes, datetime.now(UTC)),
        "jobs": jobs.items,
        "waits": await waits_of(visit.database, jobs.items),
        "newest": newest,
        "answers": answers,
        "due": due.items,
        "errors": (await list_errors(visit.database, wanted, limit=SHOWN_ERRORS)).items,
    }


async def _answers(visit: WebVisit, name: str) -> tuple[Job | None, list[AnswerGroup]]:
    """The newest crawl of a host that has answers, and these by status and media type."""
    found = await visit.queue.list_jobs(host=name, user_id=visit.caller.sees_only, limit=3)
    for job in found.items:
        report = await crawl_report(visit.database, visit.queue, job.id)
        if answers := await load_answers(visit, report):
            return job, answers
    return None, []


TRAFFIC = {
    Traffic.RESUME: "resumed",
    Traffic.SLOW: "slowed down",
    Traffic.PAUSE: "paused",
    Traffic.STOP: "stopped",
}


@action(router, "/domains/{host}/traffic")
async def set_host_traffic(visit: OperatorVisit, form: Submitted, host: Host) -> Done:
    wanted = next((each for each in Traffic if each == form.text("traffic")), None)
    if wanted is None:
        raise InvalidInput(f"choose one of: {', '.join(Traffic)}")
    done = await set_traffic(visit.database, visit.settings, visit.caller, host, wanted)
    name = done.domain.domain_name
    text = f"{name} {TRAFFIC[wanted]}"
    if done.jobs:
        text += f", {counted(done.jobs, 'crawl')} too"
    if done.refused:
        text += f"; {counted(done.refused, 'crawl')} refused"
    return Done(f"{text}.", to=_url(name), failed=bool(done.refused))


def _changes(form: Form) -> DomainChanges:
    return DomainChanges(
        delay=form.amount("delay", most=MAX_DELAY),
        concurrency=form.number("concurrency", least=1, most=MAX_CONCURRENCY),
        active=form.checked("active"),
        per_proxy_only=form.checked("per_proxy_only"),
        every=form.interval("every"),
        adaptive=_maybe(form, "adaptive"),
        shortest=form.interval("shortest"),
        longest=form.interval("longest"),
        proxies=_maybe(form, "proxies"),
        allow_private=form.checked("allow_private"),
        currency=form.text("currency").upper() or None,
        region=form.optional("region"),
        render=parse_render(form.text("render")) if form.text("render") else None,
        render_urls=form.lines("render_urls"),
    )


def _maybe(form: Form, name: str) -> bool | None:
    """Yes, no, or None for the default of the settings."""
    return {"yes": True, "no": False}.get(form.text(name))


def _url(name: str) -> str:
    return f"/domains/{quote(name, safe='')}"
