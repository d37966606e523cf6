"""Gauges: present numbers, read from the tables by a scrape and cached for a while.

Expensive statements run less often, so that a scrape stays cheap with a million tasks. A gauge that
cannot be read is left out, and the others are shown.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg

from forager.db.database import Connection, Database, SessionLimits
from forager.logs import get_logger
from forager.metrics import store
from forager.metrics.meters import Family, Key, Labels, MeterKind
from forager.settings import Settings

log = get_logger("metrics")

LIMITS = SessionLimits(statement_ms=10_000, lock_ms=1_000, answer_ms=12_000)
TOO_LONG = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
KEPT_FOR = 5.0
# a value is cached for this many times the seconds that it took to read
KEPT_FACTOR = 50
KEPT_LONGEST = 300.0

JOB_STATES = ("pending", "processing", "paused", "completed", "failed", "cancelled")
TASK_STATES = ("pending", "queued", "crawling", "downloaded", "parsing", "completed", "failed")


class Gauge:
    """`always`: label values that are shown as zero where there is nothing."""

    def __init__(
        self,
        name: str,
        help: str,
        statement: LiteralString,
        labels: Labels = (),
        always: tuple[Labels, ...] = (),
    ) -> None:
        self.family = Family(name, MeterKind.GAUGE, help, labels)
        self.statement = statement
        self.always = always


@dataclass(slots=True)
class Gauges:
    """The gauges of one installation, as one process shows them."""

    database: Database
    settings: Settings
    # by name: until when, and the values
    _kept: dict[str, tuple[float, dict[Key, float]]] = field(default_factory=dict)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def values(self) -> dict[Key, float]:
        """All gauges that can be read; concurrent scrapes wait for one reading."""
        async with self._reading:
            if any(self._is_due(gauge) for gauge in GAUGES):
                await self._read_due()
        return {key: value for _, kept in self._kept.values() for key, value in kept.items()}

    async def _read_due(self) -> None:
        """On a separate connection, so that requests do not wait for a scrape."""
        own = self.database.with_own_pool(name="forager metrics", limits=LIMITS, max_size=1)
        async with own, own.connection() as connection:
            for gauge in GAUGES:
                if self._is_due(gauge):
                    await self._read(connection, gauge)

    async def _read(self, connection: Connection, gauge: Gauge) -> None:
        began = time.monotonic()
        try:
            rows = await store.select_gauge(connection, gauge.statement, self.settings)
            values = _values(gauge, rows)
        except TOO_LONG:
            log.warning("a gauge takes too long", gauge=gauge.family.name)
            values = {}
        now = time.monotonic()
        until = now + min(KEPT_LONGEST, max(KEPT_FOR, KEPT_FACTOR * (now - began)))
        self._kept[gauge.family.name] = (until, values)

    def _is_due(self, gauge: Gauge) -> bool:
        until, _ = self._kept.get(gauge.family.name, (0.0, {}))
        return time.monotonic() >= until


def _values(gauge: Gauge, rows: store.Rows) -> dict[Key, float]:
    name = gauge.family.name
    values = {(name, labels, ""): 0.0 for labels in gauge.always}
    for *labels, value in rows:
        values[name, tuple(map(str, labels)), ""] = float(value or 0)
    return values


def _each(*values: str) -> tuple[Labels, ...]:
    return tuple((value,) for value in values)


GAUGES = (
    Gauge("forager_jobs", "Jobs by state.", store.JOBS, ("state",), _each(*JOB_STATES)),
    Gauge("forager_tasks", "Tasks by state.", store.TASKS, ("state",), _each(*TASK_STATES)),
    Gauge(
        "forager_queue_oldest_seconds",
        "For how long the oldest job, task or message has waited that could have been begun.",
        store.OLDEST_WAITING,
        ("queue",),
        _each("jobs", "tasks", "webhooks", "dispatch", "index"),
    ),
    Gauge(
        "forager_pending_urls", "URLs that running crawls still have to fetch.", store.PENDING_URLS
    ),
    Gauge(
        "forager_dead_letters",
        "Tasks that failed permanently and wait for a person.",
        store.DEAD_LETTERS,
        ("kind",),
    ),
    Gauge(
        "forager_outbox_messages",
        "Messages that have not left yet.",
        store.UNSENT_MESSAGES,
        ("topic",),
        _each("webhooks", "crawl", "parse", "sections", "products"),
    ),
    Gauge(
        "forager_webhooks",
        "Webhooks by how they do.",
        store.WEBHOOKS,
        ("state",),
        _each("active", "failing", "disabled"),
    ),
    Gauge(
        "forager_proxies",
        "Proxies by how they do.",
        store.PROXIES,
        ("state",),
        _each("active", "failing", "disabled"),
    ),
    Gauge(
        "forager_parser_degraded_domains",
        "Domains whose pages are parsed much worse than in the last seven days.",
        store.DEGRADED_DOMAINS,
    ),
    Gauge(
        "forager_bypassed_parsers",
        "Parsers that workers bypass because they keep failing.",
        store.BYPASSED_PARSERS,
    ),
    Gauge("forager_database_bytes", "Size of the database.", store.DATABASE_SIZE),
    Gauge(
        "forager_database_connections",
        "Connections to the database's server, and how many it allows.",
        store.CONNECTIONS,
        ("what",),
    ),
    Gauge("forager_archive_bytes", "Size of the archive's segments.", store.ARCHIVE_SIZE),
    Gauge(
        "forager_workers",
        "Workers by role, and whether their heartbeat is current.",
        store.WORKERS,
        ("role", "state"),
        tuple((role, state) for role in ("jobs", "tasks") for state in ("alive", "unreachable")),
    ),
    Gauge(
        "forager_workers_braked",
        "Workers that claim no more jobs because of lag, memory or pages that wait for extraction.",
        store.BRAKED_WORKERS,
    ),
    Gauge(
        "forager_services",
        "Background services of running processes by name and state.",
        store.SERVICES,
        ("service", "state"),
    ),
    Gauge(
        "forager_service_failures",
        "Failed runs in a row of a background service, in the process where it is worst.",
        store.SERVICE_FAILURES,
        ("service",),
    ),
    Gauge(
        "forager_service_skipped",
        "Items that the last run of a background service skipped because they failed.",
        store.SERVICE_SKIPPED,
        ("service",),
    ),
)
