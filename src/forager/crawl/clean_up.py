"""Clean-up after a crawl in the foreground: for people who never run a worker."""

from __future__ import annotations

import asyncio

from forager.archive.upkeep import ArchiveUpkeep
from forager.crawl.upkeep import CrawlUpkeep
from forager.db.database import Database
from forager.db.patience import TROUBLE
from forager.documents.upkeep import DocumentUpkeep
from forager.errors import ForagerError
from forager.jobs.upkeep import Upkeep
from forager.logs import get_logger
from forager.settings import Settings

log = get_logger("crawl")

# what is not deleted by then is left to the next crawl
SECONDS = 10.0


async def clean_up(database: Database, settings: Settings, *, seconds: float = SECONDS) -> None:
    """Delete old and abandoned data, as workers do; stopped anywhere, it leaves nothing half done.

    A crawl has ended well by now: trouble is logged, and takes nothing from that.
    """
    upkeeps = (
        Upkeep(database, settings),
        CrawlUpkeep(database),
        DocumentUpkeep(database),
        ArchiveUpkeep(database, settings),
    )
    try:
        async with asyncio.timeout(seconds):
            for upkeep in upkeeps:
                await upkeep.run_once()
    except TimeoutError:
        log.info("clean-up is continued after the next crawl", seconds=seconds)
    except (*TROUBLE, ForagerError, OSError) as error:
        log.warning("clean-up failed", error=str(error))
