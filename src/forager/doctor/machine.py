"""Checks of the machine (Python, home, disk, files, memory) and of the installation."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from forager import __version__, tracing
from forager.access.caller import Scope
from forager.access.key import KeyState
from forager.access.keys import list_keys
from forager.archive.options import archive_options
from forager.archive.storage import local_folder
from forager.db.database import Database
from forager.doctor.check import Verdict, check, fail, warn
from forager.extract.hosts import is_loopback
from forager.jobs.workers import list_workers
from forager.listening import listening_addresses
from forager.permissions import is_open_to_others
from forager.settings import Settings
from forager.settings.values import masked_url

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 2 << 30
NO_SPACE = 200 << 20
FEW_FILES = 1024
OTHER_HOME = "Set FORAGER_HOME to a folder that can be written."
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@check("python", "An older Python cannot run this code.")
def check_python(_settings: Settings) -> Verdict:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return fail(version, "Forager needs Python 3.11 or newer.")
    return version


@check("home", "The embedded database, the archive and the key of secrets live there.")
def check_home(settings: Settings) -> Verdict:
    """Whether the home can be written; one that is not there yet is not made by looking."""
    home = settings.home
    folder = nearest_folder(home)
    if home.exists() and not home.is_dir():
        return fail(f"{home} is not a folder", OTHER_HOME)
    try:
        # written for a test: permissions alone do not show read-only file systems
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return fail(f"{folder} cannot be written: {error.strerror}", OTHER_HOME)
    return f"{home}" if folder == home else f"{home} (made at the first start)"


@check("permissions", "Pages, prices and stored secrets must be readable by their owner only.")
def check_permissions(settings: Settings) -> Verdict:
    """Whether other users can read what is stored."""
    archive = local_folder(archive_options(settings).place)
    folders = [settings.home, *([] if archive is None else [archive])]
    opened = [str(folder) for folder in folders if folder.is_dir() and is_open_to_others(folder)]
    if opened:
        names = " ".join(opened)
        return warn(f"other users can open {names}", f"Run: chmod 700 {names}")
    return "only their owner can open home and archive"


@check("space", "A full disk stops every commit; no data is lost, but all work stops.")
def check_space(settings: Settings) -> Verdict:
    free = shutil.disk_usage(nearest_folder(settings.home)).free
    finding = f"{gigabytes(free)} free"
    if free < NO_SPACE:
        return fail(finding, "Free some space, or set FORAGER_HOME to another disk.")
    if free < LITTLE_SPACE:
        return warn(finding, "A crawl may fill it: free some space soon.")
    return finding


@check("open files", "Every connection is an open file: requests would fail at random.")
def check_open_files(_settings: Settings) -> Verdict:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        return warn(f"at most {soft}", f"Raise it: ulimit -n {FEW_FILES * 4}")
    return "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft}"


@check("memory", "A machine without memory kills runners, and each kill costs a retry.")
def check_memory(settings: Settings) -> Verdict:
    """Whether the jobs of a full worker would fit."""
    there = memory_limit()
    wanted = settings.worker_capacity * settings.job_memory_limit_mb << 20
    finding = (
        f"{gigabytes(there)}; {settings.worker_capacity} jobs"
        f" may use {settings.job_memory_limit_mb} MB each"
    )
    if wanted > there:
        return warn(finding, "Lower worker_capacity or job_memory_limit_mb.")
    return finding


def memory_limit() -> int:
    """Memory of this machine, or of the container if that gets less."""
    limits = [psutil.virtual_memory().total]
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        limits.append(int(CGROUP_LIMIT.read_text(encoding="ascii")))
    return min(limits)


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next((p for p in (path, *path.parents) if os.path.isdir(p)), Path("/"))  # noqa: PTH112 - Path.is_dir raises where it may not look


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


SOON = timedelta(days=7)
LOOKED_AT = 1000
NAMED = 3


@check("versions", "Workers of different versions write different things.")
async def check_versions(database: Database, settings: Settings) -> Verdict:
    found = await list_workers(database, settings)
    others = sorted({worker.version for worker in found if worker.is_reachable} - {__version__})
    if others:
        return warn(
            f"Forager {__version__} here, and workers of {', '.join(others)}",
            "Update and restart them; see docs/howto/operate.md for the order.",
        )
    return f"Forager {__version__}, and so are all workers"


@check("keys", "An unused key is an unnecessary risk.")
async def check_keys(database: Database, _settings: Settings) -> Verdict:
    keys = (await list_keys(database, limit=LOOKED_AT)).items
    active = [key for key in keys if key.state is KeyState.ACTIVE]
    admins = sum(key.scope is Scope.ADMIN for key in active)
    finding = f"{len(active)} active, {admins} of them admin" if keys else "none"
    soon = datetime.now(UTC) + SOON
    ending = [key for key in active if key.expires_at is not None and key.expires_at < soon]
    if ending:
        names = ", ".join(f"{key.name} ({key.id})" for key in ending[:NAMED])
        advice = "Create new ones before: forager keys create NAME."
        return warn(f"{finding}; end within a week: {names}", advice)
    if keys and not active:
        advice = "No key can use the API: forager keys create NAME --scope admin"
        return warn("all have expired or were revoked", advice)
    return finding


@check("exposure", "Keys and pages cross the network unencrypted.")
def check_exposure(settings: Settings) -> Verdict:
    addresses = listening_addresses(settings.home)
    if addresses:
        where = f"the API listens on {', '.join(addresses)}"
        hosts = [urlsplit(address).netloc for address in addresses]
    else:
        where = f"no API runs here; it would listen on {settings.api_host}:{settings.api_port}"
        hosts = [settings.api_host]
    if all(is_loopback(host) for host in hosts):
        return where
    opened = ", and /metrics needs no key" if settings.metrics_open else ""
    return warn(
        f"{where} without TLS{opened}",
        "Put a proxy with TLS before it, and let the API listen on loopback.",
    )


@check("traces", "Traces are configured, but not sent.")
def check_traces(settings: Settings) -> Verdict:
    if not tracing.is_wanted(settings):
        return "not configured"
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return warn("OpenTelemetry is not installed", tracing.INSTALL)
    place = masked_url(settings.traces_url or "OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"are sent to {place}"
