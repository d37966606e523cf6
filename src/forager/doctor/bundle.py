"""The support bundle: what a developer needs to understand a problem, without content.

It holds no pages, URLs, names of tracked domains, keys or passwords.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import distributions
from typing import Any

import psycopg

from forager import __version__
from forager.checks import Examination, Finding
from forager.db.database import Database, reach_server
from forager.db.schema import SCHEMA_VERSION
from forager.doctor.examination import examine
from forager.errors import ForagerError, error_text
from forager.failures.service import ErrorFilter, ErrorGroup, group_errors
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.workers import list_workers
from forager.metrics.scrape import open_scrape
from forager.services.report import list_service_processes
from forager.settings import Settings

FAILED_JOBS = 50
ERROR_GROUPS = 100

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


async def support_bundle(settings: Settings) -> dict[str, Any]:
    """Versions, findings, numbers and errors; parts that need the database may be missing."""
    examination = Examination()
    await examine(settings, examination)
    bundle: dict[str, Any] = {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "doctor": [_anonymous_finding(each) for each in examination.findings.values()],
    }
    try:
        # not `open_database`: a report must not migrate the schema
        with reach_server(settings) as server:
            async with Database(server.url, name="forager support-bundle") as database:
                bundle |= await _of_database(database, settings)
    except (ForagerError, psycopg.Error) as error:
        bundle["database_error"] = without_urls(error_text(error))
    return bundle


def versions() -> dict[str, Any]:
    packages = {found.name: found.version for found in distributions()}
    return {
        "forager": __version__,
        "schema": SCHEMA_VERSION,
        "python": sys.version,
        "system": platform.platform(),
        "packages": dict(sorted(packages.items(), key=lambda each: each[0].lower())),
    }


def _anonymous_finding(finding: Finding) -> dict[str, Any]:
    """A finding without examples: they name hosts, keys and addresses."""
    return {**asdict(finding), "message": without_urls(finding.message), "examples": []}


def without_urls(text: str) -> str:
    return _URL.sub("<url>", text)


async def _of_database(database: Database, settings: Settings) -> dict[str, Any]:
    failed = await Queue(database, settings).list_jobs(statuses=[Status.FAILED], limit=FAILED_JOBS)
    groups = await group_errors(database, ErrorFilter(), limit=ERROR_GROUPS)
    return {
        "workers": [asdict(worker) for worker in await list_workers(database, settings)],
        "services": [asdict(each) for each in await list_service_processes(database, settings)],
        "failed_jobs": [
            {
                "id": job.id,
                "kind": job.kind,
                "completed_at": job.completed_at,
                "retry_count": job.retry_count,
                "stop_reason": job.stop_reason,
                "error": without_urls(job.error_message or ""),
            }
            for job in failed.items
        ],
        "task_errors": _anonymous(groups.items),
        "metrics": await open_scrape(database, settings).text(),
    }


def _anonymous(groups: Iterable[ErrorGroup]) -> list[dict[str, Any]]:
    """Error groups with numbers instead of domains."""
    numbers: dict[str | None, str] = {None: ""}
    found = []
    for group in groups:
        name = numbers.setdefault(group.domain, f"domain {len(numbers)}")
        message = without_urls(group.message)
        if group.domain is not None:
            message = message.replace(group.domain, name)
        found.append(
            {
                "domain": name,
                "type": group.error_type,
                "message": message,
                "count": group.count,
                "first_seen": group.first_seen,
                "last_seen": group.last_seen,
            }
        )
    return found
