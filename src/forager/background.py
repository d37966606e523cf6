"""What runs beside the work in every worker: looking after all that is kept, and what is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forager.archive.upkeep import ArchiveUpkeep
from forager.crawl.admission import start_due_refresh
from forager.crawl.upkeep import CrawlUpkeep
from forager.db.database import Database
from forager.dispatch.services import Service, dispatch_services
from forager.documents.refresher import Refresher
from forager.documents.upkeep import DocumentUpkeep
from forager.fetch.client import ClientOptions
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.user_agent import agent_header
from forager.images.upkeep import ImageUpkeep
from forager.index.upkeep import IndexUpkeep
from forager.logs import get_logger
from forager.metrics.recorder import recording
from forager.products.archiving_upkeep import ArchivingUpkeep
from forager.products.audit import AuditUpkeep
from forager.secrets import Vault
from forager.settings import Search, Settings
from forager.tasks.scheduler import Scheduler
from forager.tasks.upkeep import TaskUpkeep
from forager.tasks.workers.recovery import TaskRecovery
from forager.webhooks.delivery import Deliverer
from forager.webhooks.outbox_upkeep import OutboxUpkeep

log = get_logger("background")


@asynccontextmanager
async def background_services(database: Database, settings: Settings) -> AsyncIterator[None]:
    """Run all of them for as long as the block runs. Any number of workers may do so at once."""
    prober = ProxyProber(
        database,
        Vault(settings),
        ClientOptions(user_agent=agent_header(settings)),
        region=settings.region,
    )
    services: tuple[Service, ...] = (
        ArchiveUpkeep(database, settings),
        CrawlUpkeep(database),
        DocumentUpkeep(database),
        Refresher(database, settings, start_due_refresh),
        Scheduler(database, settings),
        Deliverer(database, settings),
        TaskRecovery(database, settings),
        TaskUpkeep(database, settings),
        ImageUpkeep(database, settings),
        OutboxUpkeep(database),
        AuditUpkeep(database, settings),
        ArchivingUpkeep(database, settings),
        prober,
        *dispatch_services(database, settings),
        _index_service(database, settings),
    )
    tasks = [
        asyncio.create_task(service.run(), name=type(service).__name__) for service in services
    ]
    for task in tasks:
        task.add_done_callback(_say_if_it_failed)
    try:
        async with recording(database, settings):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _index_service(database: Database, settings: Settings) -> Service:
    """What feeds the search engine; without one, what tidies up after it."""
    if settings.search is not Search.OPENSEARCH:
        return IndexUpkeep(database)
    from forager.documents.search.indexing import INDEXED_SECTIONS
    from forager.index.feeder import Feeder
    from forager.products.indexing import INDEXED_PRODUCTS

    return Feeder.of(database, settings, (INDEXED_SECTIONS, INDEXED_PRODUCTS))


def _say_if_it_failed(task: asyncio.Task[None]) -> None:
    """A service that fails takes no job with it, but must not do so in silence."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background service ended", service=task.get_name(), error=repr(error))
