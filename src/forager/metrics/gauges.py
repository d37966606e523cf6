"""Gauges: how things stand now. Read when somebody asks, and remembered for a while.

What costs much is asked less often, so that a scrape stays cheap with a million tasks; what cannot
be read is left out, and the rest is shown all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg

from forager.db.database import Connection, Database, SessionLimits
from forager.logs import get_logger
from forager.metrics import gauge_store as store
from forager.metrics.gauge_store import Rows
from forager.metrics.meters import Family, Key, Kind, Labels
from forager.settings import Settings

log = get_logger("metrics")

LIMITS = SessionLimits(statement_ms=10_000, lock_ms=1_000, answer_ms=12_000)
TOO_LONG = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
KEPT_FOR = 5.0
# for so many times as long as it took to read
REST = 50
KEPT_LONGEST = 300.0

JOB_STATES = ("pending", "processing", "paused", "completed", "failed", "cancelled")
TASK_STATES = (
    "pending",
    "queued",
    "crawling",
    "downloaded",
    "parsing",
    "completed",
    "failed",
)


@dataclass(frozen=True, slots=True)
class Gauge:
    """`always`: label values that are shown as zero where there is nothing."""

    family: Family
    read: Callable[[Connection], Awaitable[Rows]]
    always: tuple[Labels, ...] = ()


@dataclass(slots=True)
class _Kept:
    until: float
    values: dict[Key, float]


@dataclass(slots=True)
class Gauges:
    """The gauges of one installation, as one process shows them."""

    database: Database
    settings: Settings
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def values(self) -> dict[Key, float]:
        """All that can be read; whoever comes while they are read waits for that."""
        async with self._reading:
            if any(self._is_due(gauge) for gauge in self.all()):
                await self._read_due()
        return {key: value for kept in self._kept.values() for key, value in kept.values.items()}

    def all(self) -> tuple[Gauge, ...]:
        stale_after = self.settings.stale_after
        return (*GAUGES, _workers(stale_after), *_services(stale_after))

    async def _read_due(self) -> None:
        """On a connection of its own: requests wait for no scrape."""
        own = self.database.apart(name="forager metrics", limits=LIMITS, max_size=1)
        async with own, own.connection() as connection:
            for gauge in self.all():
                if self._is_due(gauge):
                    await self._read(connection, gauge)

    async def _read(self, connection: Connection, gauge: Gauge) -> None:
        began = time.monotonic()
        try:
            values = _values(gauge, await gauge.read(connection))
        except TOO_LONG:
            log.warning("a gauge takes too long", gauge=gauge.family.name)
            values = {}
        now = time.monotonic()
        until = now + min(KEPT_LONGEST, max(KEPT_FOR, REST * (now - began)))
        self._kept[gauge.family.name] = _Kept(until, values)

    def _is_due(self, gauge: Gauge) -> bool:
        kept = self._kept.get(gauge.family.name)
        return kept is None or time.monotonic() >= kept.until


def _values(gauge: Gauge, rows: Rows) -> dict[Key, float]:
    name = gauge.family.name
    values = {(name, labels, ""): 0.0 for labels in gauge.always}
    for *labels, value in rows:
        values[name, tuple(map(str, labels)), ""] = float(value or 0)
    return values


def _gauge(
    name: str,
    help: LiteralString,
    read: Callable[[Connection], Awaitable[Rows]],
    labels: Labels = (),
    always: tuple[Labels, ...] = (),
) -> Gauge:
    return Gauge(Family(name, Kind.GAUGE, help, labels), read, always)


def _each(values: tuple[str, ...]) -> tuple[Labels, ...]:
    return tuple((value,) for value in values)


def _workers(stale_after: float) -> Gauge:
    return _gauge(
        "forager_workers",
        "Workers by what they do, and whether they were heard of lately.",
        lambda connection: store.count_workers(connection, stale_after),
        ("role", "state"),
        tuple((role, state) for role in ("jobs", "tasks") for state in ("alive", "silent")),
    )


def _services(stale_after: float) -> tuple[Gauge, ...]:
    return (
        _gauge(
            "forager_services",
            "Background services of running processes by name and state.",
            lambda connection: store.count_services(connection, stale_after),
            ("service", "state"),
        ),
        _gauge(
            "forager_service_failures",
            "Failed runs in a row of a background service, in the process where it is worst.",
            lambda connection: store.max_service_failures(connection, stale_after),
            ("service",),
        ),
        _gauge(
            "forager_service_skipped",
            "Items that the last run of a background service skipped because they failed.",
            lambda connection: store.max_service_skipped(connection, stale_after),
            ("service",),
        ),
    )


GAUGES = (
    _gauge("forager_jobs", "Jobs by state.", store.count_jobs, ("state",), _each(JOB_STATES)),
    _gauge("forager_tasks", "Tasks by state.", store.count_tasks, ("state",), _each(TASK_STATES)),
    _gauge(
        "forager_queue_oldest_seconds",
        "For how long the oldest job, task or message has waited that could have been begun.",
        store.oldest_waiting,
        ("queue",),
        _each(("jobs", "tasks", "webhooks", "dispatch", "index")),
    ),
    _gauge(
        "forager_pending_urls",
        "URLs that running crawls still have to fetch.",
        store.sum_pending_urls,
    ),
    _gauge(
        "forager_dead_letters",
        "Tasks that failed for good and wait for a person.",
        store.count_dead_letters,
        ("kind",),
    ),
    _gauge(
        "forager_outbox_messages",
        "Messages that have not left yet.",
        store.count_unsent,
        ("topic",),
        _each(("webhooks", "crawl", "parse", "sections", "products")),
    ),
    _gauge(
        "forager_webhooks",
        "Webhooks by how they do.",
        store.count_webhooks,
        ("state",),
        _each(("active", "failing", "disabled")),
    ),
    _gauge(
        "forager_proxies",
        "Proxies by how they do.",
        store.count_proxies,
        ("state",),
        _each(("active", "failing", "disabled")),
    ),
    _gauge("forager_database_bytes", "Size of the database.", store.database_size),
    _gauge(
        "forager_database_connections",
        "Connections to the database's server, and how many it allows.",
        store.count_connections,
        ("what",),
    ),
    _gauge("forager_archive_bytes", "Size of the archive's segments.", store.archive_size),
)
