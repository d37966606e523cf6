"""Check of the background services of all processes."""

from __future__ import annotations

from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.processes.identity import has_died
from forager.services.report import list_service_processes
from forager.settings import Settings


@check(
    "services",
    Topic.WORK,
    "A failing or stuck service does not do its work: scheduling, delivery, clean-up.",
)
async def check_services(database: Database, settings: Settings) -> Result:
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
    message = f"{len(services)} in {len(living)} process{'' if len(living) == 1 else 'es'}"
    stuck = [service.name for service in services if service.is_stuck]
    if stuck:
        return warn(
            f"{message}; stuck in a step that does not end",
            "Restart its process: the Workers page of the dashboard shows which one it is.",
            found=sorted(set(stuck)),
        )
    if failing:
        worst = max(failing, key=lambda service: service.failures)
        return warn(
            f"{message}; {worst.name} failed {worst.failures} times in a row: {worst.last_error}",
            "It is restarted with backoff; the log of its process has the details.",
        )
    if skipped:
        return warn(
            f"{message}; skipped rows",
            "Correct that row; the service continues with the others.",
            found=skipped,
        )
    return message
