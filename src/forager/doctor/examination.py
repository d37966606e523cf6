"""The examination: all checks, in an order in which each can rely on those before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from forager.db.database import Database, Server, reach_server
from forager.db.schema import SCHEMA_VERSION
from forager.doctor import installation, products, server, work
from forager.doctor.archive import (
    check_archive,
    check_archive_space,
    check_clickhouse,
    check_storage,
)
from forager.doctor.check import Check, Level, failed_with
from forager.doctor.external import check_broker, check_browser, check_search
from forager.doctor.machine import check_machine
from forager.doctor.trial import Watch, run_trial
from forager.errors import ForagerError
from forager.settings import Dispatch, Search, Settings


async def examine(
    settings: Settings, report: Callable[[Check], None], *, watch: Watch | None = None
) -> list[Check]:
    """Run all checks; `report` gets each finding at once. With `watch`, a real job runs as well."""
    checks: list[Check] = []

    def note(check: Check) -> Level:
        checks.append(check)
        report(check)
        return check.level

    for check in check_machine(settings):
        note(check)
    note(await check_browser(settings))
    note(await check_storage(settings))
    note(check_archive_space(settings))
    note(installation.check_exposure(settings))
    note(installation.check_traces(settings))
    if note(server.check_server(settings)) is not Level.FAIL:
        try:
            # held to the end, so that an embedded server is started once
            with reach_server(settings) as reached:
                await _examine_database(reached, settings, note)
                if watch is not None and not any(c.level is Level.FAIL for c in checks):
                    note(await run_trial(settings, watch))
        except ForagerError as error:
            note(failed_with("database", error))
    return checks


async def _examine_database(
    reached: Server, settings: Settings, note: Callable[[Check], Level]
) -> None:
    async with Database(reached.url, name="forager doctor", pool_url=reached.pool_url) as database:
        if note(await server.check_connection(database, settings)) is Level.FAIL:
            return
        if database.pool_url is not None:
            note(await server.check_pool(database, settings))
        version = await server.check_schema(database, settings)
        note(version)
        checks = [*SERVER_CHECKS]
        if version.finding == SCHEMA_VERSION:
            checks += _work_checks(settings)
        for check in checks:
            note(await check(database, settings))


DatabaseCheck = Callable[[Database, Settings], Awaitable[Check]]

SERVER_CHECKS: tuple[DatabaseCheck, ...] = (
    server.check_clock,
    server.check_notifications,
    server.check_connections,
    server.check_vacuum,
    server.check_transactions,
)


def _work_checks(settings: Settings) -> Iterator[DatabaseCheck]:
    """The checks of everything that is configured."""
    yield installation.check_versions
    yield work.check_workers
    yield work.check_services
    yield work.check_stale_jobs
    yield work.check_stuck_jobs
    yield work.check_waiting_jobs
    yield work.check_tasks
    yield work.check_regions
    if settings.dispatch is Dispatch.CELERY:
        yield check_broker
    if settings.search is Search.OPENSEARCH:
        yield check_search
    if settings.clickhouse_url is not None:
        yield check_clickhouse
    yield products.check_dead_letters
    yield products.check_alarms
    yield products.check_bypassed
    yield products.check_rates
    yield products.check_proxies
    yield products.check_webhooks
    yield products.check_parsers
    yield check_archive
    yield installation.check_keys
