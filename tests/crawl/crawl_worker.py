"""A worker as a separate process: `python crawl_worker.py SETTINGS_AS_JSON [DATABASE_URL]`.

Without a URL it uses the embedded server of the settings' home, and starts it again if it dies.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from forager.db.database import open_database
from forager.jobs.supervisor import Supervisor
from forager.logs import configure_logs
from forager.render.finding import find_browser
from forager.settings import Settings


async def main(settings: Settings) -> None:
    async with open_database(settings, name="forager worker") as database:
        renders = find_browser(settings).path is not None
        supervisor = Supervisor(database, settings, renders=renders)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        print(supervisor.worker_id, flush=True)
        await supervisor.run()


if __name__ == "__main__":
    configure_logs("critical")
    given = json.loads(sys.argv[1])
    if len(sys.argv) > 2:
        given["database_url"] = sys.argv[2]
    asyncio.run(main(Settings(**given)))
