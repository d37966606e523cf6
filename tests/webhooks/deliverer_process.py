"""A deliverer in a separate process, to be killed."""

from __future__ import annotations

import asyncio

from forager.db.database import open_database
from forager.processes.identity import process_name
from forager.services.report import identify, run_services
from forager.settings import load_settings
from forager.webhooks.delivery import Deliverer


async def main() -> None:
    settings = load_settings()
    async with open_database(settings, name="forager deliverer") as database:
        identity = identify("deliverer", process_name())
        deliverer = Deliverer(database, settings, identity.id)
        async with run_services(database, settings, identity, [deliverer.service()]):
            await asyncio.Event().wait()


asyncio.run(main())
