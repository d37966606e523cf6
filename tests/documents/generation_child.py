"""A crawl in a separate process that prints what it committed, then waits inside a commit."""

from __future__ import annotations

import asyncio
import sys

from pydantic import SecretStr

from built_site import Crawls, pages
from forager.db.database import Database
from forager.jobs.kinds import load_kinds
from forager.jobs.queue import Queue
from forager.settings import Settings


async def main(url: str) -> None:
    load_kinds()
    settings = Settings(database_url=SecretStr(url), log_level="critical")
    async with Database(url, name="forager test child") as database:
        crawl = await Crawls(database, Queue(database, settings), settings).start()
        await crawl.write(pages({"a": "changed", "b": None}))
        half = crawl.writer.plan(pages({"c": "half"}), {})
        async with crawl.context.commit() as connection:
            await crawl.writer.write(connection, half)
            lease = crawl.context.lease
            print(lease.job_id, lease.number, lease.worker_id, flush=True)
            await asyncio.sleep(60)


asyncio.run(main(sys.argv[1]))
