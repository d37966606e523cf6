"""Writing entries: rows are read, serialized in a thread, and sent to every target index."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from forager.db.database import Database
from forager.index.client import NOT_FOUND, NOT_NOW, TOO_MANY, EngineClient, writing_alias
from forager.index.kind import EngineBusy, EngineUnavailable, Entry, IndexMissing, Kind
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
        return await self._database.run(self._kind.sizes, ref_ids)

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
        rows = await self._database.run(self._kind.select, part)
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
            answered = await self._sent(target, actions, payload)
            for what, amount in answered.counts.items():
                INDEX_ENTRIES.add(self._kind.name, what, amount=amount)
            outcome.add(answered)
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


# what a call may roughly hold
PART_BYTES = 1024 * 1024
PART_ROWS = 250
SHOWN = 300

CREATED = (200, 201)
CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Action:
    """An entry to write, or to delete if it has no body."""

    id: str
    ref_id: int
    version: int
    body: bytes | None = None

    @classmethod
    def write(cls, entry: Entry, version: int) -> Action:
        return cls(entry.id, entry.ref_id, version, entry.body)

    def lines(self) -> bytes:
        what = "delete" if self.body is None else "index"
        head = {what: {"_id": self.id, "version": self.version, "version_type": "external"}}
        return orjson.dumps(head) + b"\n" + (b"" if self.body is None else self.body + b"\n")


@dataclass(slots=True)
class Outcome:
    """How many entries were written, deleted, or known in a later version; what was refused."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[int, str] = field(default_factory=dict)

    def add(self, other: Outcome) -> None:
        self.counts.update(other.counts)
        self.refused.update(other.refused)


async def send(
    client: EngineClient, alias: str, actions: Sequence[Action], payload: bytes
) -> Outcome:
    """One call; `payload` are the lines of the actions, `alias` is one of the index to change."""
    answer = await client.ask("POST", f"{alias}/_bulk", payload, require_alias="true")
    items = answer.get("items")
    if not isinstance(items, list) or len(items) != len(actions):
        raise EngineUnavailable("the search engine has not answered for every entry")
    said = [_Said.of(item) for item in items]
    if any(each.index == alias and each.error is None for each in said):
        # only writing requires an alias: who deletes in a lost index makes one of that name
        await client.delete(alias)
        raise IndexMissing(f"the search engine does not have an index with the alias {alias}")
    outcome = Outcome()
    for action, each in zip(actions, said, strict=True):
        _settle(outcome, action, each)
    return outcome


@dataclass(frozen=True, slots=True)
class _Said:
    """The outcome of one entry."""

    status: int
    index: str | None
    error: str | None

    @classmethod
    def of(cls, item: Any) -> _Said:
        try:
            [said] = item.values()
            error = said.get("error")
            shown = None if error is None else orjson.dumps(error).decode()[:SHOWN]
            return cls(int(said["status"]), said.get("_index"), shown)
        except (KeyError, TypeError, ValueError, AttributeError) as strange:
            raise EngineUnavailable(f"the search engine answers strangely: {strange!r}") from None


def _settle(outcome: Outcome, action: Action, said: _Said) -> None:
    status = said.status
    deleting = action.body is None
    if status in CREATED or (deleting and status == NOT_FOUND and said.error is None):
        outcome.counts["deleted" if deleting else "written"] += 1
    elif status == CONFLICT:
        outcome.counts["known"] += 1
    elif status == TOO_MANY:
        raise EngineBusy(f"the search engine is busy: {said.error}")
    elif 400 <= status < 500 and status != NOT_FOUND and status not in NOT_NOW:
        outcome.counts["refused"] += 1
        outcome.refused[action.ref_id] = said.error or "no reason given"
    else:
        raise EngineUnavailable(f"the search engine cannot take entries now: {said.error}")


def parts(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Rows in groups that are not too large for one call; a row that is, goes alone."""
    part: list[int] = []
    size = 0
    for ref_id, row_size in sizes.items():
        if part and (size + row_size > PART_BYTES or len(part) >= PART_ROWS):
            yield part
            part, size = [], 0
        part.append(ref_id)
        size += row_size
    if part:
        yield part


def payload_of(actions: Iterable[Action]) -> bytes:
    return b"".join(action.lines() for action in actions)
