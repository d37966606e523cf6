"""A process that merges segments, and is killed at the worst of moments.

usage: archive_merger.py DATABASE FOLDER before-put|after-put|before-commit|after-commit
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from obstore.store import LocalStore

from forager.archive.merging import merge_segments
from forager.archive.objects import ObjectStorage
from forager.archive.store import merges
from forager.db.database import Connection, Database

LIMIT = 1_000_000


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class FatalStorage(ObjectStorage):
    moment = ""

    async def put(self, segment: str, parts: AsyncIterator[bytes]) -> None:
        if self.moment == "before-put":
            die()
        await super().put(segment, parts)
        if self.moment == "after-put":
            die()


async def die_in_the_transaction(
    connection: Connection, names: Sequence[str], *, seconds: float
) -> None:
    """It is the last statement before the commit."""
    die()


async def main(url: str, folder: str, moment: str) -> None:
    storage = FatalStorage(LocalStore(Path(folder)))
    storage.moment = moment
    if moment == "before-commit":
        merges.keep_segments = die_in_the_transaction
    async with Database(url) as database:
        await merge_segments(database, storage, LIMIT)
    die()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
