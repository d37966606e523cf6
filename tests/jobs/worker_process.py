"""A worker as a separate process: `python worker_process.py SETTINGS_AS_JSON DATABASE_URL`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from forager.db.database import Database
from forager.jobs.supervisor import Supervisor
from forager.logs import configure_logs
from forager.settings import Settings


async def main(settings: Settings, url: str) -> None:
    async with Database(url, name="forager worker") as database:
        supervisor = Supervisor(database, settings)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        print(supervisor.worker_id, flush=True)
        await supervisor.run()


if __name__ == "__main__":
    configure_logs("warning")
    asyncio.run(main(Settings(**json.loads(sys.argv[1])), sys.argv[2]))
