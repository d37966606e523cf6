"""The background services of a worker, in one list. Any number of workers may run them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from uuid import UUID

from forager.analytics.sync import sync_services
from forager.archive.deletion import clean_up_archive
from forager.crawl.admission import start_due_refresh
from forager.crawl.clean_up import clean_up_crawls
from forager.crawl.events import JobReporter
from forager.crawl.reports.minutes import sampling_service as crawl_sampling
from forager.db.database import Database
from forager.db.retention import delete_rows
from forager.dispatch.services import dispatch_services
from forager.documents.change_events import ChangeReporter
from forager.documents.cleanup import DocumentCleanup
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.documents.search.semantic import Embedding
from forager.documents.sources import Refresher
from forager.events.service import OLD_EVENTS
from forager.failures.service import OLD_ERRORS
from forager.fetch.client import ClientOptions
from forager.fetch.host_history.record import OLD_MINUTES
from forager.fetch.proxies.costs import OLD_USAGE
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.response import agent_header
from forager.images.files import delete_unused_files
from forager.index.engine import index_service
from forager.logs import get_logger
from forager.metrics.backlog import sampling_service as backlog_sampling
from forager.metrics.recorder import recording
from forager.outbox.recovery import OutboxRecovery
from forager.parsers.rates import OLD_RATES
from forager.processes.identity import process_name
from forager.products.audit import audit_if_due
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.unseen import unseen_services
from forager.secrets import Vault
from forager.services.report import identify, run_services
from forager.services.service import Service, in_chunks
from forager.settings import Settings
from forager.tasks.scheduler import Scheduler
from forager.tasks.workers.recovery import OLD_ROWS, TaskRecovery
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import clean_up_webhooks

HOUR = 3600.0


@asynccontextmanager
async def background_services(
    database: Database, settings: Settings, *, command: str = "worker"
) -> AsyncIterator[None]:
    """Run all of them for as long as the block runs."""
    identity = identify(command, process_name())
    services = worker_services(database, settings, identity.id)
    async with recording(database, settings), run_services(database, settings, identity, services):
        yield


def worker_services(database: Database, settings: Settings, process_id: UUID) -> list[Service]:
    """All background services of a worker."""
    both = (database, settings)
    prober = ProxyProber(
        database,
        Vault(settings),
        ClientOptions(user_agent=agent_header(settings)),
        region=settings.region,
    )
    return [
        Scheduler(database, settings).service(),
        TaskRecovery(database, settings).service(),
        Refresher(database, settings, start_due_refresh).service(),
        Deliverer(database, settings, process_id).service(),
        ChangeReporter(database, process_id).service(),
        JobReporter(database, settings, process_id).service(),
        OutboxRecovery(database, settings).service(),
        prober.service(),
        backlog_sampling(database),
        crawl_sampling(database),
        *dispatch_services(database, settings, process_id),
        index_service(database, settings, (INDEXED_SECTIONS, INDEXED_PRODUCTS), process_id),
        *DocumentCleanup(database).services(),
        Embedding(*both).service(),
        *unseen_services(database, settings),
        *sync_services(database, settings),
        Service(name="crawl cleanup", every=600.0, step=partial(clean_up_crawls, *both)),
        Service(name="archive cleanup", every=HOUR, step=partial(clean_up_archive, *both)),
        Service(name="history cleanup", every=HOUR, step=partial(delete_old_history, *both)),
        Service(name="image cleanup", every=HOUR, step=partial(delete_unused_files, *both)),
        Service(name="webhook cleanup", every=HOUR, step=partial(clean_up_webhooks, database)),
        Service(name="audit", every=HOUR, step=partial(audit_if_due, *both)),
    ]


log = get_logger("tasks")

CHUNK = 10_000


async def delete_old_history(database: Database, settings: Settings, *, chunk: int = CHUNK) -> int:
    """Delete rows older than the history to keep; return their number."""
    deleted = 0
    for rows in (OLD_ERRORS, OLD_EVENTS, OLD_RATES, OLD_USAGE, OLD_MINUTES, *OLD_ROWS):
        deleted += await in_chunks(
            database, delete_rows, rows=rows, days=settings.history_days, limit=chunk
        )
    if deleted:
        log.info("old history of tasks deleted", rows=deleted)
    return deleted
