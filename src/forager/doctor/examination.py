"""The examination: every check in an order in which each can rely on those before it."""

from __future__ import annotations

from collections.abc import Callable

from forager.db.database import Database, Server, reach_server
from forager.db.schema import SCHEMA_VERSION
from forager.doctor import ground, installation, products, work
from forager.doctor import ground as server
from forager.doctor.archive import (
    check_archive,
    check_archive_space,
    check_clickhouse,
    check_storage,
)
from forager.doctor.check import Check, Level, failed_with
from forager.doctor.external import check_broker, check_search
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
    note(await check_storage(settings))
    note(check_archive_space(settings))
    note(installation.check_exposure(settings))
    note(installation.check_traces(settings))
    if note(ground.check_server(settings)) is not Level.FAIL:
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
        if note(await ground.check_connection(database)) is Level.FAIL:
            return
        if database.pool_url is not None:
            note(await ground.check_pool(database))
        version = await ground.check_schema(database)
        note(version)
        note(await ground.check_clock(database))
        note(await ground.check_notifications(database))
        note(await server.check_connections(database))
        note(await server.check_vacuum(database))
        note(await server.check_transactions(database))
        if version.finding == SCHEMA_VERSION:
            await _examine_work(database, settings, note)


async def _examine_work(
    database: Database, settings: Settings, note: Callable[[Check], Level]
) -> None:
    note(await installation.check_versions(database))
    note(await work.check_workers(database, settings))
    note(await work.check_services(database, settings))
    note(await work.check_stale_jobs(database, settings))
    note(await work.check_stuck_jobs(database, settings))
    note(await work.check_waiting_jobs(database))
    note(await work.check_tasks(database, settings))
    note(await work.check_regions(database, settings))
    if settings.dispatch is Dispatch.CELERY:
        note(await check_broker(database, settings))
    if settings.search is Search.OPENSEARCH:
        note(await check_search(database, settings))
    if settings.clickhouse_url is not None:
        note(await check_clickhouse(settings))
    note(await products.check_dead_letters(database))
    note(await products.check_proxies(database, settings))
    note(await products.check_webhooks(database, settings))
    note(await products.check_parsers(database, settings))
    note(await check_archive(database, settings))
    note(await installation.check_keys(database))
