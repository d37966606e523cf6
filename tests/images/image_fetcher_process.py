"""An image fetcher that dies after it has written a file, before it refers to it."""

from __future__ import annotations

import asyncio
import os
import signal

from forager.archive.local import LocalStorage
from forager.db.database import open_database
from forager.fetch.polite import Fetching
from forager.images.fetcher import ImageFetcher
from forager.images.files import IMAGE_FILES
from forager.settings import load_settings


class Doomed(LocalStorage):
    async def put_all(self, name: str, data: bytes) -> None:
        await super().put_all(name, data)
        os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    settings = load_settings()
    async with (
        open_database(settings, name="forager images") as database,
        Fetching(database, settings) as fetching,
    ):
        images = ImageFetcher(database, settings, fetching)
        images._files = Doomed(settings.home / "archive", IMAGE_FILES)
        await images.run_once()


asyncio.run(main())
