"""Rebuilding an index beside the one in use: fill, catch up, swap, delete.

From the first step on, all changes are sent to the new index as well. Filled entries have the
lowest version, so that they never replace a later change. The next run resumes a killed one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import NotAllowed
from forager.hints import Hint, action
from forager.index import store
from forager.index.client import EngineClient
from forager.index.feeder import PER_CLAIM, REFUSED_FOR, Feeder, alias_of, replace_old
from forager.index.kind import LAYOUT, IndexKind, template
from forager.index.store import IndexState
from forager.index.writing import IndexWriter
from forager.logs import get_logger
from forager.outbox import service as outbox

log = get_logger("index")

ROWS = 2_000
# lower than the number of any message
FILLED = 0
# searches in the old index have ended by then
GRACE = 5.0
BARRIER_LIMIT = 600.0
BARRIER_LOOK = 0.05


# the kind, the number of rows so far, and their total
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """A new index; `rows` are those that were filled in by this run."""

    kind: str
    index: str
    rows: int
    seconds: float
    # an earlier run had started it
    resumed: bool


class Reindexer:
    """Builds a new index beside the one in use, and switches to it when it is complete."""

    def __init__(
        self,
        database: Database,
        client: EngineClient,
        prefix: str,
        *,
        grace: float = GRACE,
        progress: Progress = lambda _kind, _rows, _total: None,
    ) -> None:
        self._database = database
        self._client = client
        self._prefix = prefix
        self._grace = grace
        self._progress = progress

    async def run(self, kind: IndexKind) -> Reindexed:
        """Rebuild the index of a kind, or resume an index that was not completed."""
        began = time.monotonic()
        state, resumed = await self._begin(kind)
        assert state.building is not None
        await self._await_writers()
        rows = await self._fill(kind, state.building, state.filled_to)
        await self._catch_up(kind)
        await self._client.refresh(state.building)
        await self._swap(kind, state.building)
        return Reindexed(kind.name, state.building, rows, time.monotonic() - began, resumed)

    # --- the beginning ----------------------------------------------------------------------------

    async def _begin(self, kind: IndexKind) -> tuple[IndexState, bool]:
        name = alias_of(self._prefix, kind.name)
        await self._client.request(
            "PUT", f"_index_template/{name}", template(f"{name}-*", kind.properties)
        )
        state = await self._state(kind)
        if state is not None and state.old is not None:
            await replace_old(self._database, self._client, self._prefix, state)
        if state is not None and await self._can_resume(state):
            return state, True
        await self._create(kind, state)
        state = await self._state(kind)
        assert state is not None
        return state, False

    async def _can_resume(self, state: IndexState) -> bool:
        if state.building is None or state.building_uuid is None:
            return False
        if state.building_layout != LAYOUT:
            return False
        return await self._client.uuid_of(state.building) == state.building_uuid

    async def _create(self, kind: IndexKind, state: IndexState | None) -> None:
        abandoned = None if state is None else state.building
        index = f"{alias_of(self._prefix, kind.name)}-{new_id().hex[-12:]}"
        # the name is stored before the index is created: after a kill, another run deletes it
        async with self._database.connection() as connection:
            if not await store.begin_building(
                connection, kind.name, name=index, layout=LAYOUT, instead_of=abandoned
            ):
                return
        if abandoned is not None:
            await self._client.delete(abandoned)
        uuid = await self._client.create(index)
        ours = await self._database.run(store.set_building_uuid, kind.name, index, uuid)
        if not ours:
            await self._client.delete(index)

    async def _await_writers(self) -> None:
        """Wait for transactions that began before the index was known: they enqueue no messages."""
        async with self._database.transaction() as connection:
            own = await store.current_transaction(connection)
        limit = time.monotonic() + BARRIER_LIMIT
        while True:
            async with self._database.connection() as connection:
                if await store.all_have_ended(connection, own):
                    return
            if time.monotonic() > limit:
                raise NotAllowed(
                    "a transaction has been open for too long for an index to be filled",
                    hint=Hint("{} shows which one.", action("doctor")),
                )
            await asyncio.sleep(BARRIER_LOOK)

    # --- filling ----------------------------------------------------------------------------

    async def _fill(self, kind: IndexKind, index: str, filled_to: int) -> int:
        writer = IndexWriter(self._database, self._client, kind)
        # later rows arrive as messages: a fill that read them too might never reach the end
        total, last = await self._database.run(store.count_after, kind.table, filled_to)
        rows = 0
        while filled_to < last:
            ids = await self._database.run(
                store.select_next_ids, kind.table, after=filled_to, last=last, limit=ROWS
            )
            if not ids:
                break
            outcome = await writer.write([index], await writer.sizes(ids), lambda _: FILLED)
            filled_to = ids[-1]
            await self._remember(kind, index, filled_to, outcome.refused)
            rows += len(ids)
            self._progress(kind.name, rows, max(rows, total))
        return rows

    async def _remember(
        self, kind: IndexKind, index: str, filled_to: int, refused: dict[int, str]
    ) -> None:
        async with self._database.transaction() as connection:
            if refused:
                log.error("the search engine refuses entries", kind=kind.name, entries=refused)
                await outbox.insert_failed(connection, kind.name, refused, wait=REFUSED_FOR)
            if not await store.advance(connection, kind.name, index, filled_to):
                raise NotAllowed(
                    f"the index {index} is not to be filled any more",
                    hint=Hint(
                        "Another {} has completed it, or the engine has lost it. Run it again if"
                        " searches report an incomplete index.",
                        action("search reindex"),
                    ),
                )

    # --- the end ----------------------------------------------------------------------------

    async def _catch_up(self, kind: IndexKind) -> None:
        """Send changes until few are left; the feeder sends the rest."""
        feeder = Feeder(self._database, self._client, self._prefix, [kind])
        while await feeder.feed(kind) >= PER_CLAIM:
            pass

    async def _swap(self, kind: IndexKind, index: str) -> None:
        await self._database.run(store.complete, kind.name, index)
        state = await self._state(kind)
        if state is None or state.name != index:
            raise NotAllowed(
                f"the search engine has lost the index {index} while it was filled",
                hint=Hint("Run {} again.", action("search reindex")),
            )
        await self._client.point(alias_of(self._prefix, kind.name), index)
        if state.old is not None:
            await asyncio.sleep(self._grace)
            await replace_old(self._database, self._client, self._prefix, state)

    async def _state(self, kind: IndexKind) -> IndexState | None:
        return await self._database.run(store.select_index, kind.name)
