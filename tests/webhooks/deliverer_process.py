"""A deliverer in a process of its own, to be killed."""

from __future__ import annotations

import asyncio

from forager.db.database import open_database
from forager.settings import load_settings
from forager.webhooks.delivery import Deliverer


async def main() -> None:
    settings = load_settings()
    async with open_database(settings, name="forager deliverer") as database:
        await Deliverer(database, settings).run()


asyncio.run(main())
