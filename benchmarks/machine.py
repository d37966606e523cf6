"""The machine of a measurement, without which its numbers mean little."""

from __future__ import annotations

import os
import platform
import statistics
import sysconfig
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from forager import __version__

SYNCS = 200


def describe_machine(folder: Path) -> list[tuple[str, str]]:
    """Processor, memory, disk and versions; `folder` is where the measured data will be."""
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    return [
        ("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("processor", f"{_processor()}, {psutil.cpu_count()} cores"),
        ("memory", f"{memory:.0f} GB"),
        ("disk", f"one 8 kB write + fdatasync takes {_sync_ms(folder):.2f} ms (median of {SYNCS})"),
        ("load average at the start", f"{load:.1f}"),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Forager", __version__),
        ("Python", _python()),
        ("psycopg", version("psycopg")),
    ]


def _python() -> str:
    """The Python version and how it was built: without optimization it is 10 % slower."""
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    optimised = "--enable-optimizations" in arguments
    return platform.python_version() + ("" if optimised else ", built without PGO")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _sync_ms(folder: Path) -> float:
    """The minimum time of a durable commit on this disk."""
    path = folder / "sync-probe"
    sync = getattr(os, "fdatasync", os.fsync)
    times = []
    with path.open("wb", buffering=0) as file:
        file.write(bytes(8192 * 16))
        for number in range(SYNCS):
            start = time.perf_counter()
            os.pwrite(file.fileno(), bytes(8192), number % 16 * 8192)
            sync(file.fileno())
            times.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(times) * 1000
