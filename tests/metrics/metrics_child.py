"""A process that records and adds for ever, and says how much it has added: URL as argument."""

from __future__ import annotations

import asyncio
import sys

from pydantic import SecretStr

from forager.db.database import Database
from forager.metrics.meters import Counter
from forager.metrics.recorder import Recorder
from forager.settings import Settings


async def main(url: str) -> None:
    counter = Counter("things_total", "", ("kind",))
    settings = Settings(database_url=SecretStr(url))
    recorder = Recorder(Database(url), settings, meters=[counter])
    total = 0
    while True:
        for _ in range(10):
            counter.add("child")
        await recorder.run_once()
        total += 10
        print(total, flush=True)


asyncio.run(main(sys.argv[1]))
