"""The feeder: tells the engine of every row that has changed, as the row is now.

A message is deleted after the engine has kept what it tells of, and shows it to searches. Whoever
dies before that leaves it to be told again; an engine that knows better already says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from forager.db.database import Database
from forager.db.patience import TROUBLE, Patience
from forager.index.bulk import Action
from forager.index.client import EngineClient
from forager.index.errors import EngineUnavailable, IndexMissing
from forager.index.kind import Kind
from forager.index.mapping import LAYOUT
from forager.index.store import indexes, messages
from forager.index.store.indexes import IndexState
from forager.index.store.messages import IndexMessage
from forager.index.writing import IndexWriter
from forager.logs import get_logger
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("index")

POLL_INTERVAL = 1.0
PER_CLAIM = 1_000
# more than all calls for one claim can take
LEASE = 300.0
# what was refused once is likely to be refused again
REFUSED_FOR = 86400.0
TOUCH_EVERY = 60.0
# searches that began with the old index have ended by then
OLD_FOR = 60.0


class Feeder:
    """Any number of processes may run one."""

    def __init__(
        self, database: Database, client: EngineClient, prefix: str, kinds: Sequence[Kind]
    ) -> None:
        self._database = database
        self._client = client
        self._prefix = prefix
        self._kinds = kinds
        self._touched: dict[str, float] = {}
        # what the engine does not take of one kind keeps the others waiting no longer
        self._patience = {
            kind.name: Patience(
                log, f"the search engine cannot be fed with {kind.name}", also=(EngineUnavailable,)
            )
            for kind in kinds
        }

    @classmethod
    def of(cls, database: Database, settings: Settings, kinds: Sequence[Kind]) -> Feeder:
        assert settings.opensearch_url is not None
        client = EngineClient(settings.opensearch_url.get_secret_value())
        return cls(database, client, settings.opensearch_prefix, kinds)

    def service(self) -> Service:
        return Service(
            name="search index feed",
            every=POLL_INTERVAL,
            step=self.run_once,
            chunk=PER_CLAIM,
            first_within=0.0,
            resources=lambda: self._client,
        )

    async def run_once(self) -> int:
        """Tell what is due, of each kind at most one claim; how many messages that were."""
        fed = 0
        for kind in self._kinds:
            with self._patience[kind.name]:
                fed += await self.feed(kind)
        return fed

    async def feed(self, kind: Kind) -> int:
        async with self._database.connection() as connection:
            state = await indexes.select_index(connection, kind.name)
            if state is None:
                return 0
            is_due = await messages.has_due(connection, kind.name)
        await self._look_after(kind, state)
        targets = targets_of(state)
        if not (targets and is_due) or not await self._all_there(kind, targets):
            return 0
        return await self._tell(kind, targets)

    async def _claim(self, kind: Kind, targets: dict[str, str]) -> list[IndexMessage]:
        """Messages for these indexes; none if others are to be told of them meanwhile.

        With the row held, whatever is claimed was committed before another index is begun, and is
        filled into that one.
        """
        async with self._database.transaction() as connection:
            state = await indexes.hold_index(connection, kind.name)
            if state is None or targets_of(state) != targets:
                return []
            return await messages.claim(connection, kind.name, limit=PER_CLAIM, lease_seconds=LEASE)

    async def _tell(self, kind: Kind, targets: dict[str, str]) -> int:
        claimed = await self._claim(kind, targets)
        try:
            refused = await self._send(kind, list(targets), claimed)
        except BaseException:
            await self._release(claimed)
            raise
        told = [message.id for message in claimed if message.ref_id not in refused]
        async with self._database.transaction() as connection:
            await messages.delete_told(connection, told)
            if refused:
                log.error("the search engine refuses entries", kind=kind.name, entries=refused)
                errors = {m.id: refused[m.ref_id] for m in claimed if m.ref_id in refused}
                await messages.postpone(connection, errors, seconds=REFUSED_FOR)
        return len(claimed)

    async def _send(
        self, kind: Kind, targets: list[str], claimed: Sequence[IndexMessage]
    ) -> dict[int, str]:
        """What became of rows, and what the engine refused."""
        if not claimed:
            return {}
        versions: dict[int, int] = {}
        for message in claimed:
            versions[message.ref_id] = max(message.id, versions.get(message.ref_id, 0))
        writer = IndexWriter(self._database, self._client, kind)
        sizes = await writer.sizes(list(versions))
        gone = [
            Action(entry_id, message.ref_id, versions[message.ref_id])
            for message in claimed
            if message.ref_id not in sizes
            for entry_id in kind.gone(message)
        ]
        outcome = await writer.delete(targets, gone)
        outcome.add(await writer.write(targets, sizes, versions.__getitem__))
        for target in targets:
            await self._client.refresh(target)
        return outcome.refused

    async def _release(self, claimed: Sequence[IndexMessage]) -> None:
        # if the database is away too, they are told again when the lease is over
        with contextlib.suppress(*TROUBLE):
            async with self._database.connection() as connection:
                await messages.release(connection, [message.id for message in claimed])

    # --- looking after the index -----------------------------------------------------------------

    async def _all_there(self, kind: Kind, targets: dict[str, str]) -> bool:
        """An index that was made again under its name is empty: it is another."""
        for name, uuid in targets.items():
            if await self._client.uuid_of(name) != uuid:
                log.error("an index of the search engine is gone", kind=kind.name, index=name)
                async with self._database.transaction() as connection:
                    await indexes.forget_lost(connection, kind.name, uuid)
                return False
        return True

    async def _look_after(self, kind: Kind, state: IndexState) -> None:
        now = time.monotonic()
        if now - self._touched.get(kind.name, -TOUCH_EVERY) >= TOUCH_EVERY:
            async with self._database.connection() as connection:
                await indexes.touch(connection, kind.name)
            self._touched[kind.name] = now
            await _point(self._client, self._prefix, state)
        if state.old is not None and state.age is not None and state.age > OLD_FOR:
            # whoever made the index anew has died before this
            await replace_old(self._database, self._client, self._prefix, state)


def targets_of(state: IndexState) -> dict[str, str]:
    """The indexes to write to, by name, with their ids; of another Forager's layout, none.

    While one is made anew for another version, only workers of that version write.
    """
    if state.building is not None and state.building_layout != LAYOUT:
        return {}
    found = (
        (state.name, state.uuid, state.layout),
        (state.building, state.building_uuid, state.building_layout),
    )
    return {name: uuid for name, uuid, layout in found if name and uuid and layout == LAYOUT}


async def replace_old(
    database: Database, client: EngineClient, prefix: str, state: IndexState
) -> None:
    """Let the alias mean the index in use, and delete the one that it has replaced."""
    await _point(client, prefix, state)
    if state.old is not None:
        await client.delete(state.old)
        async with database.connection() as connection:
            await indexes.forget_old(connection, state.kind, state.old)


async def _point(client: EngineClient, prefix: str, state: IndexState) -> None:
    if state.name is not None:
        # one that is lost is noticed when it is to be told something
        with contextlib.suppress(IndexMissing):
            await client.point(alias_of(prefix, state.kind), state.name)


def alias_of(prefix: str, kind: str) -> str:
    """For people's own questions; Forager asks by the name that PostgreSQL knows."""
    return f"{prefix}-{kind}"
