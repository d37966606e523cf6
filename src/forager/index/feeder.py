"""The feeder: sends every changed row to the search engine, as the row is now.

A message is deleted after the engine has stored the entry and shows it to searches. A process that
dies before that leaves the message to be sent again; an engine that has a later version says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from uuid import UUID

from forager.db.database import Database
from forager.db.outages import Outage
from forager.index import store
from forager.index.client import EngineClient
from forager.index.kind import LAYOUT, EngineUnavailable, IndexKind, IndexMissing
from forager.index.store import IndexState
from forager.index.writing import BulkAction, IndexWriter
from forager.logs import get_logger
from forager.outbox import service as outbox
from forager.outbox.claim import claimed
from forager.outbox.message import Failure, Lane, Message
from forager.services.service import Service

log = get_logger("index")

POLL_INTERVAL = 1.0
PER_CLAIM = 1_000
# longer than all calls for one claim can take
LEASE = 300.0
# an entry that was refused once is likely to be refused again
REFUSED_FOR = 86400.0
TOUCH_EVERY = 60.0
# searches that began with the old index have ended by then
OLD_FOR = 60.0


class Feeder:
    """Any number of processes may run one."""

    def __init__(
        self,
        database: Database,
        client: EngineClient,
        prefix: str,
        kinds: Sequence[IndexKind],
        process_id: UUID | None = None,
    ) -> None:
        self._database = database
        self._process_id = process_id
        self._client = client
        self._prefix = prefix
        self._kinds = kinds
        self._touched: dict[str, float] = {}
        # per kind, so that a rejected batch of one kind cannot starve the others
        self._outage = {
            kind.name: Outage(
                log, f"the search engine cannot be fed with {kind.name}", also=(EngineUnavailable,)
            )
            for kind in kinds
        }

    def service(self) -> Service:
        """The background service that sends changes to the search engine."""
        return Service(
            name="search index feed",
            every=POLL_INTERVAL,
            step=self.run_once,
            chunk=PER_CLAIM,
            first_within=0.0,
            resources=lambda: self._client,
        )

    async def run_once(self) -> int:
        """Send due messages, at most one claim of each kind; return their number."""
        fed = 0
        for kind in self._kinds:
            with self._outage[kind.name]:
                fed += await self.feed(kind)
        return fed

    async def feed(self, kind: IndexKind) -> int:
        """Send the changes of a kind; how many messages were handled."""
        async with self._database.connection() as connection:
            state = await store.select_index(connection, kind.name)
            if state is None:
                return 0
            is_due = await outbox.has_due(connection, kind.name)
        await self._maintain(kind, state)
        targets = targets_of(state)
        if not (targets and is_due) or not await self._all_there(kind, targets):
            return 0
        return await self._feed(kind, targets)

    async def _claim(self, kind: IndexKind, targets: dict[str, str]) -> list[Message]:
        """Messages for these indexes; none if the indexes have changed meanwhile.

        While the row is held, every claimed message was committed before another index is begun,
        and that index is filled with its change.
        """
        async with self._database.transaction() as connection:
            state = await store.hold_index(connection, kind.name)
            if state is None or targets_of(state) != targets:
                return []
            lane = Lane(kind.name, limit=PER_CLAIM)
            return await outbox.claim(connection, [lane], lease=LEASE, claimed_by=self._process_id)

    async def _feed(self, kind: IndexKind, targets: dict[str, str]) -> int:
        messages = await self._claim(kind, targets)
        if not messages:
            return 0
        async with claimed(self._database, messages) as claim:
            refused = await self._send(kind, list(targets), messages)
            if refused:
                log.error("the search engine refuses entries", kind=kind.name, entries=refused)
            await claim.settle(
                [each.id for each in messages if each.ref_id not in refused],
                [
                    Failure(each.id, refused[each.ref_id], REFUSED_FOR)
                    for each in messages
                    if each.ref_id in refused
                ],
            )
        return len(messages)

    async def _send(
        self, kind: IndexKind, targets: list[str], messages: Sequence[Message]
    ) -> dict[int, str]:
        """Write or delete the entries of rows; return the rows that the engine refused."""
        versions: dict[int, int] = {}
        for message in messages:
            versions[message.ref_id] = max(message.id, versions.get(message.ref_id, 0))
        writer = IndexWriter(self._database, self._client, kind)
        sizes = await writer.sizes(list(versions))
        gone = [
            BulkAction(entry_id, message.ref_id, versions[message.ref_id])
            for message in messages
            if message.ref_id not in sizes
            for entry_id in kind.gone(message)
        ]
        outcome = await writer.delete(targets, gone)
        outcome.add(await writer.write(targets, sizes, versions.__getitem__))
        for target in targets:
            await self._client.refresh(target)
        return outcome.refused

    # --- maintenance ---------------------------------------------------------------------------

    async def _all_there(self, kind: IndexKind, targets: dict[str, str]) -> bool:
        """Whether the engine has these indexes; one created again has another id, and is empty."""
        for name, uuid in targets.items():
            if await self._client.uuid_of(name) != uuid:
                log.error("the search engine has lost an index", kind=kind.name, index=name)
                async with self._database.transaction() as connection:
                    await store.forget_lost(connection, kind.name, uuid)
                return False
        return True

    async def _maintain(self, kind: IndexKind, state: IndexState) -> None:
        now = time.monotonic()
        if now - self._touched.get(kind.name, -TOUCH_EVERY) >= TOUCH_EVERY:
            await self._database.run(store.touch, kind.name)
            self._touched[kind.name] = now
            await _point(self._client, self._prefix, state)
        if state.old is not None and state.age is not None and state.age > OLD_FOR:
            # the process that rebuilt the index died before this step
            await replace_old(self._database, self._client, self._prefix, state)


def targets_of(state: IndexState) -> dict[str, str]:
    """The indexes to write to, by name, with their ids; none with the layout of another version.

    While an index is rebuilt for another version, only workers of that version write.
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
    """Point the alias at the index in use, and delete the one that it has replaced."""
    await _point(client, prefix, state)
    if state.old is not None:
        await client.delete(state.old)
        await database.run(store.forget_old, state.kind, state.old)


async def _point(client: EngineClient, prefix: str, state: IndexState) -> None:
    if state.name is not None:
        # a lost index is noticed when it is fed
        with contextlib.suppress(IndexMissing):
            await client.point(alias_of(prefix, state.kind), state.name)


def alias_of(prefix: str, kind: str) -> str:
    """For queries by other programs; Forager uses the name that is stored in PostgreSQL."""
    return f"{prefix}-{kind}"
