"""From rows to entries: read in the database, made beside the event loop, sent to every target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from forager.db.database import Database
from forager.index.bulk import Action, Outcome, parts, payload_of, send
from forager.index.client import EngineClient, writing_alias
from forager.index.errors import EngineBusy
from forager.index.kind import Kind
from forager.metrics.recorded import INDEX_ENTRIES

# while an engine takes one part in, another one is made
AT_ONCE = 2

# between attempts at a part for which the engine has no room now
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)


class IndexWriter:
    """Writes rows of one kind as they are now. No transaction is open while an engine answers."""

    def __init__(self, database: Database, client: EngineClient, kind: Kind) -> None:
        self._database = database
        self._client = client
        self._kind = kind

    async def sizes(self, ref_ids: Sequence[int]) -> dict[int, int]:
        async with self._database.connection() as connection:
            return await self._kind.sizes(connection, ref_ids)

    async def write(
        self, targets: Sequence[str], sizes: dict[int, int], version: Callable[[int], int]
    ) -> Outcome:
        """Rows of these sizes, each under the version that is given for it."""
        outcome = Outcome()
        free = asyncio.Semaphore(AT_ONCE)

        async def write_part(part: list[int]) -> None:
            async with free:
                outcome.add(await self._write_part(targets, part, version))

        try:
            async with asyncio.TaskGroup() as group:
                for part in parts(sizes):
                    group.create_task(write_part(part))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return outcome

    async def _write_part(
        self, targets: Sequence[str], part: list[int], version: Callable[[int], int]
    ) -> Outcome:
        async with self._database.connection() as connection:
            rows = await self._kind.select(connection, part)
        actions, payload = await asyncio.to_thread(self._made, rows, version)
        return await self._send(targets, actions, payload)

    async def delete(self, targets: Sequence[str], actions: Sequence[Action]) -> Outcome:
        return await self._send(targets, actions, payload_of(actions))

    def _made(
        self, rows: Sequence[Any], version: Callable[[int], int]
    ) -> tuple[list[Action], bytes]:
        entries = map(self._kind.entry, rows)
        actions = [Action.write(entry, version(entry.ref_id)) for entry in entries]
        return actions, payload_of(actions)

    async def _send(
        self, targets: Sequence[str], actions: Sequence[Action], payload: bytes
    ) -> Outcome:
        outcome = Outcome()
        for target in targets if actions else ():
            told = await self._sent(target, actions, payload)
            for what, amount in told.counts.items():
                INDEX_ENTRIES.add(self._kind.name, what, amount=amount)
            outcome.add(told)
        return outcome

    async def _sent(self, target: str, actions: Sequence[Action], payload: bytes) -> Outcome:
        """Sent again for a while if the engine is busy; what it has taken in already, it knows."""
        alias = writing_alias(target)
        for wait in WAITS:
            try:
                return await send(self._client, alias, actions, payload)
            except EngineBusy:
                await asyncio.sleep(wait)
        return await send(self._client, alias, actions, payload)
