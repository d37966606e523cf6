"""Checks of the machine: Python, folders, space, files, memory, network."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from forager import tracing
from forager.amounts import counted
from forager.archive.options import archive_options
from forager.archive.storage import Storage, local_folder
from forager.checks import Result, Topic, check, fail, warn
from forager.errors import error_text
from forager.extract.hosts import is_loopback
from forager.images.files import FOLDER, image_path, open_image_files
from forager.jobs.placement import shared_runners
from forager.listening import listening_addresses
from forager.permissions import is_open_to_others
from forager.settings import Settings
from forager.settings.values import masked_url

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 2 << 30
NO_SPACE = 200 << 20
FEW_FILES = 1024
BUCKET_LIMIT = 20.0
OTHER_PLACE = "Make it writable, or set archive_url to another place."
OTHER_HOME = "Set FORAGER_HOME to a folder that can be written."
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@check("python", Topic.MACHINE, "An older Python cannot run this code.")
def check_python(_settings: Settings) -> Result:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return fail(version, "Forager needs Python 3.11 or newer.")
    return version


@check(
    "home", Topic.MACHINE, "The embedded database, the archive and the key of secrets live there."
)
def check_home(settings: Settings) -> Result:
    """Whether the home can be written; one that is not there yet is not made by looking."""
    home = settings.home
    folder = nearest_folder(home)
    if home.exists() and not home.is_dir():
        return fail(f"{home} is not a folder", OTHER_HOME)
    if (error := _write_error(folder)) is not None:
        return fail(f"{folder} cannot be written: {error}", OTHER_HOME)
    return f"{home}" if folder == home else f"{home} (made at the first start)"


@check(
    "permissions",
    Topic.MACHINE,
    "Pages, prices and stored secrets must be readable by their owner only.",
)
def check_permissions(settings: Settings) -> Result:
    """Whether other users can read what is stored."""
    opened = [
        str(folder)
        for folder in stored_in(settings)
        if folder.is_dir() and is_open_to_others(folder)
    ]
    if opened:
        names = " ".join(opened)
        return warn(f"other users can open {names}", f"Run: chmod 700 {names}")
    return "only their owner can open home and archive"


@check("space", Topic.MACHINE, "A full disk stops every commit; no data is lost.")
def check_space(settings: Settings) -> Result:
    """The free space at home and archive, whichever has less."""
    folders = [nearest_folder(folder) for folder in stored_in(settings)]
    free, folder = min((shutil.disk_usage(each).free, each) for each in folders)
    message = f"{gigabytes(free)} free at {folder}"
    if free < NO_SPACE:
        return fail(message, "Free some space, or run forager archive prune.")
    if free < LITTLE_SPACE:
        advice = "Free some space soon, or set archive_max_mb or archive_max_age_days."
        return warn(message, advice)
    return message


@check("storage", Topic.MACHINE, "A page is committed only after its response is in the archive.")
async def check_storage(settings: Settings) -> Result:
    place = archive_options(settings).place
    folder = local_folder(place)
    if folder is None:
        return await _check_bucket(masked_url(str(place)), open_image_files(settings))
    for each in (folder, folder / FOLDER):
        if (error := _write_error(each)) is not None:
            return fail(f"{each} cannot be written: {error}", OTHER_PLACE)
    return f"pages and images can be written to {folder}"


async def _check_bucket(name: str, files: Storage) -> Result:
    path = image_path(os.urandom(32), "bin")
    try:
        async with asyncio.timeout(BUCKET_LIMIT):
            await files.put_all(path, b"doctor")
            await files.delete(path)
    except TimeoutError:
        return fail(f"{name} does not answer within {BUCKET_LIMIT:g} s", OTHER_PLACE)
    return f"pages and images can be written to {name}"


def _write_error(folder: Path) -> str | None:
    """Why a folder, or the one that it would be made in, cannot be written."""
    try:
        # written for a test: permissions alone do not show read-only file systems
        with tempfile.TemporaryFile(dir=nearest_folder(folder)):
            return None
    except OSError as error:
        return error.strerror or error_text(error)


@check(
    "open_files", Topic.MACHINE, "Every connection is an open file: requests would fail at random."
)
def check_open_files(_settings: Settings) -> Result:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        return warn(f"at most {soft}", f"Raise it: ulimit -n {FEW_FILES * 4}")
    return "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft}"


@check(
    "memory", Topic.MACHINE, "A machine without memory kills runners, and their jobs start again."
)
def check_memory(settings: Settings) -> Result:
    """Whether the shared runners of a full worker would fit."""
    there, runners = memory_limit(), shared_runners(settings)
    wanted = runners * settings.job_memory_limit_mb << 20
    message = (
        f"{gigabytes(there)}; {counted(runners, 'runner')}"
        f" may use {settings.job_memory_limit_mb} MB each"
    )
    if wanted > there:
        return warn(message, "Lower worker_runners or job_memory_limit_mb.")
    return message


def memory_limit() -> int:
    """Memory of this machine, or of the container if that gets less."""
    limits = [psutil.virtual_memory().total]
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        limits.append(int(CGROUP_LIMIT.read_text(encoding="ascii")))
    return min(limits)


def stored_in(settings: Settings) -> list[Path]:
    """The folders of home and archive."""
    archive = local_folder(archive_options(settings).place)
    return [settings.home, *([] if archive is None else [archive])]


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next((p for p in (path, *path.parents) if os.path.isdir(p)), Path("/"))  # noqa: PTH112 - Path.is_dir raises where it may not look


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB"


@check("exposure", Topic.MACHINE, "Keys and pages cross the network unencrypted.")
def check_exposure(settings: Settings) -> Result:
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


@check("traces", Topic.MACHINE, "Traces are configured, but not sent.")
def check_traces(settings: Settings) -> Result:
    if not tracing.is_wanted(settings):
        return "not configured"
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return warn("OpenTelemetry is not installed", tracing.INSTALL)
    place = masked_url(settings.traces_url or "OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"are sent to {place}"
