"""Messages go when they were given up or taken long ago."""

from __future__ import annotations

from forager.db.database import Connection, Database
from forager.db.patience import Patience, keep_up
from forager.logs import get_logger
from forager.webhooks.outbox import CHUNK, in_chunks, tidy
from forager.webhooks.store.events import WEBHOOKS
from forager.webhooks.store.webhooks import delete_orphans

log = get_logger("webhooks")

INTERVAL = 3600.0


class OutboxUpkeep:
    """Any number of processes may run one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> None:
        await keep_up(self.run_once, Patience(log, "outbox upkeep put off"), every=INTERVAL)

    async def run_once(self) -> int:
        """Give up what is too old, and delete what nobody will look at; how many messages."""
        tidied = await tidy(self._database, WEBHOOKS)
        return tidied.given_up + tidied.purged + await in_chunks(self._database, _delete_orphans)


async def _delete_orphans(connection: Connection) -> int:
    return await delete_orphans(connection, CHUNK)
