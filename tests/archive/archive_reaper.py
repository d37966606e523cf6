"""A process that deletes a segment, and is killed at the worst of moments.

usage: archive_reaper.py DATABASE FOLDER SEGMENT before-file|after-file
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from forager.archive.deletion import delete_segment
from forager.archive.local import LocalStorage
from forager.db.database import Database


class FatalStorage(LocalStorage):
    """Deleting is the last thing it does, or the thing it dies before."""

    moment = ""

    async def delete(self, segment: str) -> None:
        if self.moment == "after-file":
            await super().delete(segment)
        os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, folder: str, segment: str, moment: str) -> None:
    storage = FatalStorage(Path(folder))
    storage.moment = moment
    async with Database(url) as database:
        await delete_segment(database, storage, segment, drop_references=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
