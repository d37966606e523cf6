"""Embedding in the background: a process makes the vectors of what a command has published.

It may end at any time: each run continues where the last one stopped. It does not count as a user
of the embedded server, so that the server can be stopped meanwhile.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forager.db.database import Database
from forager.db.embedded.linger import prolong
from forager.db.outages import TRANSIENT_ERRORS
from forager.documents.search.embedding import is_configured
from forager.documents.search.semantic import SERVICE, Embedding
from forager.documents.store import embeddings as store
from forager.errors import ForagerError
from forager.logs import configure_logs
from forager.services.report import list_service_processes
from forager.settings import Settings, load_settings

LOCK = "embedding.lock"
# of an endpoint that answers slowly: the next command continues
LIMIT = 3600
# seconds after which an embedded server is asked to run on
_RENEWAL = 5.0
_LOWEST_PRIORITY = 19
# bytes of the lock file
_RUNS, _WAITS = 0, 1


async def embed_in_background(database: Database, settings: Settings) -> bool:
    """Start a process that embeds what is missing; False if it has to be done here.

    A worker embeds by itself, so that nothing is started beside one.
    """
    if not is_configured(settings) or not await database.run(store.can_be_embedded):
        return True
    processes = await list_service_processes(database, settings)
    living = [each for each in processes if not each.is_gone]
    if any(service.name == SERVICE for each in living for service in each.services):
        return True
    # the end of process 1, as in a container, and that of the server would end the process too
    if os.getpid() == 1 or (settings.database_url is None and not settings.database_linger_seconds):
        return False
    _start(settings)
    return True


def _start(settings: Settings) -> None:
    """Start it in a session of its own, as an orphan: its end is not waited for."""
    given = {"FORAGER_HOME": str(settings.home)}
    if settings.database_url is not None:
        given["FORAGER_DATABASE_URL"] = settings.database_url.get_secret_value()
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", sys.executable, "-m", __name__],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **given},
        start_new_session=True,
        check=False,
    )


def main() -> None:
    os.nice(_LOWEST_PRIORITY)
    signal.alarm(LIMIT)
    settings = load_settings(log_level="critical")
    configure_logs(settings.log_level)
    with suppress(*TRANSIENT_ERRORS, ForagerError, OSError), _turn(settings.home) as is_mine:
        if is_mine:
            asyncio.run(embed_all(settings))


@contextmanager
def _turn(home: Path) -> Iterator[bool]:
    """Wait for the process that embeds now. At most one waits: it sees what all others want."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / LOCK).open("ab") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _WAITS)
        except BlockingIOError:
            yield False
            return
        fcntl.lockf(file, fcntl.LOCK_EX, 1, _RUNS)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _WAITS)
        yield True


async def embed_all(settings: Settings) -> None:
    """Embed what is missing, for as long as the server runs."""
    while (url := _server_url(settings)) is not None:
        async with Database(url, name="forager embedding", max_size=1) as database:
            embedding = Embedding(database, settings)
            started = time.monotonic()
            while time.monotonic() - started < _RENEWAL:
                if not await embedding.run_once():
                    return


def _server_url(settings: Settings) -> str | None:
    """The URL of the server; an embedded one will linger from now on."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return prolong(settings.home, settings.database_linger_seconds)


if __name__ == "__main__":
    main()
