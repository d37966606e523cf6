"""Checks of the work: workers, services, jobs, tasks, products and proxies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from forager.amounts import counted
from forager.db.database import Database
from forager.doctor import store as doctor_store
from forager.doctor.check import Verdict, check, warn
from forager.fetch.proxies.record import ProxyState
from forager.fetch.proxies.service import Proxies
from forager.jobs import workers
from forager.jobs.lifecycle import Status
from forager.jobs.store import failed_runs, reads
from forager.parsers.overview import overview
from forager.parsers.rates import degraded_domains
from forager.parsers.store.rollouts import select_bypassed
from forager.processes.identity import has_died
from forager.products.store.audit import find
from forager.render.finding import INSTALL
from forager.secrets import Vault
from forager.services.report import list_service_processes
from forager.settings import Settings
from forager.tasks.alarms import list_alarms
from forager.tasks.dead_letters import LetterFilter, group_letters
from forager.tasks.store.activity import select_ticked_at
from forager.tasks.task import SILENT_AFTER
from forager.webhooks.service import Webhooks

LONG_WAIT = 3600.0
JOBS, TASKS = "jobs", "tasks"
START_ONE = "Start one: forager worker, or forager up."


@check("workers", "Without a worker nothing is fetched.")
async def check_workers(database: Database, settings: Settings) -> Verdict:
    async with database.connection() as connection:
        found = await workers.select_workers(connection, stale_after=settings.stale_after)
        waiting = dict(await reads.count_jobs(connection)).get(Status.PENDING, 0)
    unreachable = [w for w in found if not w.is_reachable]
    complaints = [w.note for w in found if w.note and w.is_reachable]
    living = Counter(w.role for w in found if w.is_reachable)
    finding = (
        f"{living[JOBS]} for jobs, {living[TASKS]} for tasks; {counted(waiting, 'job')} waiting"
    )
    if complaints:
        return warn(f"{finding}; one says: {complaints[0]}", "Update that worker.")
    if unreachable:
        names = ", ".join(f"{w.host} (pid {w.pid})" for w in unreachable[:3])
        return warn(f"{finding}; unreachable: {names}", "Start that worker again.")
    if waiting and not living[JOBS]:
        return warn(finding, START_ONE)
    return finding


@check(
    "services", "A failing or stuck service does not do its work: scheduling, delivery, clean-up."
)
async def check_services(database: Database, settings: Settings) -> Verdict:
    """Whether the background services of all running processes succeed."""
    processes = await list_service_processes(database, settings)
    living = [
        each
        for each in processes
        if not each.is_gone and not (each.process and has_died(each.process))
    ]
    services = [service for process in living for service in process.services]
    failing = [service for service in services if service.is_failing]
    skipped = [item for service in services for item in service.skipped]
    finding = f"{len(services)} in {len(living)} process{'' if len(living) == 1 else 'es'}"
    stuck = [service.name for service in services if service.is_stuck]
    if stuck:
        return warn(
            f"{finding}; stuck in a step that does not end: {', '.join(sorted(set(stuck)))}",
            "Restart its process: the Workers page of the dashboard shows which one it is.",
        )
    if failing:
        worst = max(failing, key=lambda service: service.failures)
        return warn(
            f"{finding}; {worst.name} failed {worst.failures} times in a row: {worst.last_error}",
            "It is restarted with backoff; the log of its process has the details.",
        )
    if skipped:
        return warn(
            f"{finding}; {len(skipped)} skipped: {skipped[0]}",
            "Correct that row; the service continues with the others.",
        )
    return finding


@check("tasks", "Products become stale: their prices may be outdated.")
async def check_tasks(database: Database, settings: Settings) -> Verdict:
    """Whether a scheduler and workers process the tasks that are due."""
    async with database.connection() as connection:
        late = SILENT_AFTER.total_seconds()
        overdue, _ = await find(connection, "tasks_overdue", examples=0, late=late)
        causes = await doctor_store.select_late_causes(connection, late=late)
        ticked_at = await select_ticked_at(connection)
        found = await workers.select_workers(connection, stale_after=settings.stale_after)
    if not overdue:
        return "none is late"
    finding = f"{overdue} have been due for more than {late:g} s"
    if ticked_at is None or _age(ticked_at) > SILENT_AFTER:
        since = "ever" if ticked_at is None else f"since {ticked_at:%Y-%m-%d %H:%M} UTC"
        return warn(
            f"{finding}, and no scheduler has looked {since}",
            "Start one: forager scheduler, or forager up.",
        )
    if not any(w.role == TASKS and w.is_reachable for w in found):
        return warn(f"{finding}, and no worker for tasks runs", START_ONE)
    if causes.get("free"):
        return warn(
            f"{finding}, {causes['free']} of them at hosts with free slots: the workers are busy",
            "Start more workers, or raise task_concurrency.",
        )
    return f"{finding}: {_in_words(causes)}"


def _in_words(causes: Mapping[str, int]) -> str:
    words = {
        "blocked": "wait for hosts that sent Retry-After",
        "slowed": "wait for hosts that are slowed down",
        "paced": "wait for the next slots of their hosts",
    }
    return ", ".join(f"{causes[key]} {text}" for key, text in words.items() if causes.get(key))


@check("stale jobs", "They wait until another worker takes them over.")
async def check_stale_jobs(database: Database, settings: Settings) -> Verdict:
    stale = await database.run(failed_runs.select_stale, stale_after=settings.stale_after)
    if stale:
        return warn(
            f"{counted(len(stale), 'job')} of workers that died",
            "Any worker takes them soon; at once: forager watchdog --once",
        )
    return "none"


@check("stuck jobs", "A job that commits nothing holds its place and its source.")
async def check_stuck_jobs(database: Database, settings: Settings) -> Verdict:
    """Jobs whose runner lives and does nothing; a supervisor kills it at the progress limit."""
    stuck = await database.run(doctor_store.select_still_jobs, still_for=settings.progress_limit)
    if not stuck:
        return "none"
    worst, seconds = stuck[0]
    return warn(
        f"{len(stuck)} have committed nothing for more than {settings.progress_limit:g} s,"
        f" {worst} for {seconds:.0f} s",
        f"See forager jobs show {worst}; its worker should have ended it: restart that.",
    )


@check("waiting jobs", "They were requested, and no worker runs them.")
async def check_waiting_jobs(database: Database, _settings: Settings) -> Verdict:
    oldest = await database.run(doctor_store.select_oldest_due)
    if oldest is None:
        return "none"
    finding = f"the oldest has waited for {oldest:.0f} s"
    if oldest > LONG_WAIT:
        advice = "Start more workers, or raise worker_capacity; forager jobs list shows the queue."
        return warn(finding, advice)
    return finding


@check("regions", "Workers of other regions do not process this work.")
async def check_regions(database: Database, settings: Settings) -> Verdict:
    """Whether what is tied to a region, or can only go through its proxies, has a worker there."""
    unserved = await database.run(
        doctor_store.select_unserved_regions,
        stale_after=settings.stale_after,
        task_proxies=settings.task_proxies,
    )
    if not unserved:
        return "nothing waits for a worker of its region"
    found = ", ".join(
        f"{domains} {'domain waits' if domains == 1 else 'domains wait'}"
        f" for a worker of region {region}"
        for region, domains in unserved[:3]
    )
    return warn(found, f"Start one: forager worker --region {unserved[0][0]}")


@check("rendering", "Pages that need a browser are not visited.")
async def check_renderers(database: Database, settings: Settings) -> Verdict:
    """Whether crawls and tasks that need a browser have a worker with one."""
    waiting = await database.run(
        doctor_store.count_waiting_for_browser, stale_after=settings.stale_after
    )
    if not waiting:
        return "no crawl or task waits for a worker that renders"
    number = f"{waiting}" if waiting < 1000 else "1000 or more"
    return warn(
        f"{number} {'crawl or task waits' if waiting == 1 else 'crawls or tasks wait'}"
        " for a worker that renders",
        f"Start one where a browser is installed: forager worker --render. {INSTALL}",
    )


def _age(time: datetime) -> timedelta:
    return datetime.now(UTC) - time


# of lists that may be long: what is wrong with a thousand is wrong with the rest
LOOKED_AT = 1000
NAMED = 3


@check("dead letters", "They are retried only by hand.")
async def check_dead_letters(database: Database, _settings: Settings) -> Verdict:
    groups = await group_letters(database, LetterFilter(), limit=LOOKED_AT)
    if not groups:
        return "none"
    number = sum(group.count for group in groups)
    often = groups[0]
    return warn(
        f"{counted(number, 'permanently failed task')}, most often at {often.domain}:"
        f" {often.message}",
        "See forager dead-letters list, then retry or drop them.",
    )


@check("bypassed parsers", "Pages of a parser that keeps breaking are read generically.")
async def check_bypassed(database: Database, _settings: Settings) -> Verdict:
    bypassed = await database.run(select_bypassed)
    if not bypassed:
        return "none"
    names = "; ".join(f"{parser}: {reason}" for parser, reason in bypassed[:NAMED])
    return warn(
        f"{len(bypassed)} parsers keep breaking, so that their pages are read generically: {names}",
        "See forager errors list --type parse; roll the parser back or fix it.",
    )


@check("success rates", "Fewer pages of a domain give good products; its shop may have changed.")
async def check_rates(database: Database, settings: Settings) -> Verdict:
    """Whether domains are parsed much worse than usual."""
    degraded = await degraded_domains(database, settings)
    if not degraded:
        return "no drops"
    names = ", ".join(
        f"{rate.domain} ({rate.recent_good / rate.recent_pages:.0%} of the last"
        f" {rate.recent_pages} pages, usually {rate.earlier_good / rate.earlier_pages:.0%})"
        for rate in degraded[:NAMED]
    )
    return warn(
        f"{counted(len(degraded), 'domain')} parsed much worse than usual: {names}",
        "See forager parsers rates --domain; the shop may have been redesigned.",
    )


@check("domain alarms", "Results of a domain that suddenly answers with wrong pages are withheld.")
async def check_alarms(database: Database, _settings: Settings) -> Verdict:
    alarms = await list_alarms(database)
    if not alarms:
        return "none"
    names = ", ".join(f"{alarm.domain} ({alarm.reason})" for alarm in alarms[:NAMED])
    return warn(
        f"results of {counted(len(alarms), 'domain')} are withheld: {names}",
        "See forager domains alarms, then accept or discard them with forager domains resolve.",
    )


@check("proxies", "Fewer proxies mean fewer requests, and more load on the others.")
async def check_proxies(database: Database, settings: Settings) -> Verdict:
    found = (await Proxies(database, Vault(settings)).page(limit=LOOKED_AT)).items
    failing = [proxy for proxy in found if proxy.state is ProxyState.FAILING]
    active = sum(proxy.state is ProxyState.ACTIVE for proxy in found)
    finding = f"{active} of {len(found)} in use" if found else "none"
    if not failing:
        return finding
    names = ", ".join(
        f"{proxy.host}:{proxy.port} ({proxy.last_failure_reason or 'no reason given'})"
        for proxy in failing[:NAMED]
    )
    return warn(
        f"{finding}; {len(failing)} failing: {names}",
        "They are tested again automatically; see forager proxies list.",
    )


@check("webhooks", "Messages wait, and are given up after three days.")
async def check_webhooks(database: Database, settings: Settings) -> Verdict:
    found = (await Webhooks(database, Vault(settings)).page(limit=LOOKED_AT)).items
    now = datetime.now(UTC)
    resting = [
        webhook
        for webhook in found
        if webhook.is_active and webhook.rests_until is not None and webhook.rests_until > now
    ]
    waiting = sum(webhook.waiting for webhook in found)
    finding = f"{len(found)}, {counted(waiting, 'message')} waiting" if found else "none"
    mail = [webhook.url for webhook in found if webhook.is_active and webhook.is_mail]
    if mail and settings.smtp_url is None:
        return warn(
            f"{finding}; e-mail to {mail[0]} cannot be sent: no SMTP server is configured",
            "Set FORAGER_SMTP_URL and FORAGER_SMTP_FROM.",
        )
    if not resting:
        return finding
    names = ", ".join(f"{each.url} ({each.failures} failures)" for each in resting[:NAMED])
    return warn(
        f"{finding}; {len(resting)} paused after failures: {names}",
        f"See forager webhooks deliveries {resting[0].id}; forager webhooks test sends one now.",
    )


@check("parsers", "Pages of that shop are parsed generically, or not at all.")
async def check_parsers(database: Database, settings: Settings) -> Verdict:
    """Whether every parser can be loaded here, and every version that was rolled out is there."""
    found = await overview(database, settings)
    missing = [f"{each.name} {each.version}" for each in found.parsers if each.state == "missing"]
    finding = f"{len(found.parsers) - len(missing)} versions"
    if found.broken:
        broken = "; ".join(f"{each.origin}: {each.reason}" for each in found.broken[:NAMED])
        return warn(f"{finding}; cannot be loaded: {broken}", "Fix or remove that plug-in.")
    if missing:
        return warn(
            f"{finding}; rolled out, and not installed here: {', '.join(missing[:NAMED])}",
            "Install it again, or roll out another: forager parsers rollout NAME VERSION",
        )
    lacking = [each for each in found.parsers if each.missing_on]
    if lacking:
        names = "; ".join(
            f"{each.name} {each.version}: {', '.join(each.missing_on[:NAMED])}"
            for each in lacking[:NAMED]
        )
        return warn(
            f"{finding}; not installed on every worker: {names}",
            "Install the version there and restart the worker.",
        )
    return finding
