"""What was to be told to a broker is dropped where there is none: workers find it by themselves."""

from __future__ import annotations

from forager.db.database import Database
from forager.db.patience import Patience, keep_up
from forager.dispatch import store
from forager.logs import get_logger

log = get_logger("dispatch")

INTERVAL = 300.0
# so that nothing is taken from processes that still use the broker while it is being left
OLDER = 600.0
CHUNK = 10_000


class HintUpkeep:
    """Any number of processes may run one."""

    def __init__(self, database: Database, *, older: float = OLDER) -> None:
        self._database = database
        self._older = older

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        dropped = 0
        while True:
            async with self._database.connection() as connection:
                rows = await store.delete_hints(connection, older=self._older, limit=CHUNK)
            dropped += rows
            if rows < CHUNK:
                return dropped
