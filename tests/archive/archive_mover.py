"""A process that moves the archive, and is killed at the worst of moments.

usage: archive_mover.py DATABASE SOURCE TARGET before-put|after-put|after-mark
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from obstore.store import LocalStore

from forager.archive.local import LocalStorage
from forager.archive.migration import StorageMove
from forager.archive.objects import ObjectStorage
from forager.db.database import Database

PLACE = "s3://bucket/folder"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class FatalStorage(LocalStorage):
    moment = ""

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        if self.moment == "before-put":
            die()
        await super().put(segment, parts)
        if self.moment == "after-put":
            die()


async def main(url: str, source: str, target: str, moment: str) -> None:
    storage = FatalStorage(Path(target))
    storage.moment = moment
    async with Database(url) as database:
        move = StorageMove(database, ObjectStorage(LocalStore(Path(source))), storage, PLACE)
        await move.run(lambda _: die())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
