"""Writing entries: rows are read, serialized in a thread, and sent to every target index."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from forager.db.database import Database
from forager.errors import error_text
from forager.index.client import NOT_FOUND, TOO_MANY, EngineClient, is_refusal, writing_alias
from forager.index.kind import EngineBusy, EngineUnavailable, IndexKind, IndexMissing
from forager.metrics.catalog import INDEX_ENTRIES

# while the engine stores one part, the next one is serialized
AT_ONCE = 2

# seconds between attempts while the engine is busy
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)


class IndexWriter:
    """Writes rows of one kind as they are now. No transaction is open while an engine answers."""

    def __init__(self, database: Database, client: EngineClient, kind: IndexKind) -> None:
        self._database = database
        self._client = client
        self._kind = kind

    async def sizes(self, ref_ids: Sequence[int]) -> dict[int, int]:
        """How large the entries of rows are, so that requests stay small."""
        return await self._database.run(self._kind.sizes, ref_ids)

    async def write(
        self, targets: Sequence[str], sizes: dict[int, int], version: Callable[[int], int]
    ) -> WriteResult:
        """Rows of these sizes, each under the version that is given for it."""
        outcome = WriteResult()
        free = asyncio.Semaphore(AT_ONCE)

        async def write_part(part: list[int]) -> None:
            async with free:
                rows = await self._database.run(self._kind.select, part)
                actions, payload = await asyncio.to_thread(self._serialize, rows, version)
                outcome.add(await self._send(targets, actions, payload))

        try:
            async with asyncio.TaskGroup() as group:
                for part in parts(sizes):
                    group.create_task(write_part(part))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return outcome

    async def delete(self, targets: Sequence[str], actions: Sequence[BulkAction]) -> WriteResult:
        """Delete entries from all targets."""
        return await self._send(targets, actions, payload_of(actions))

    def _serialize(
        self, rows: Sequence[Any], version: Callable[[int], int]
    ) -> tuple[list[BulkAction], bytes]:
        entries = map(self._kind.entry, rows)
        actions = [
            BulkAction(entry.id, entry.ref_id, version(entry.ref_id), entry.body)
            for entry in entries
        ]
        return actions, payload_of(actions)

    async def _send(
        self, targets: Sequence[str], actions: Sequence[BulkAction], payload: bytes
    ) -> WriteResult:
        outcome = WriteResult()
        for target in targets if actions else ():
            sent = await self._send_to(target, actions, payload)
            for what, amount in sent.counts.items():
                INDEX_ENTRIES.add(self._kind.name, what, amount=amount)
            outcome.add(sent)
        return outcome

    async def _send_to(
        self, target: str, actions: Sequence[BulkAction], payload: bytes
    ) -> WriteResult:
        """Send, and retry while the engine is busy; it recognizes entries that it has stored."""
        alias = writing_alias(target)
        for wait in WAITS:
            try:
                return await send(self._client, alias, actions, payload)
            except EngineBusy:
                await asyncio.sleep(wait)
        return await send(self._client, alias, actions, payload)


# the approximate size of a request
PART_BYTES = 1024 * 1024
PART_ROWS = 250
SHOWN = 300

CREATED = (200, 201)
CONFLICT = 409


@dataclass(frozen=True, slots=True)
class BulkAction:
    """An entry to write, or to delete if it has no body."""

    id: str
    ref_id: int
    version: int
    body: bytes | None = None

    def lines(self) -> bytes:
        what = "delete" if self.body is None else "index"
        head = {what: {"_id": self.id, "version": self.version, "version_type": "external"}}
        return orjson.dumps(head) + b"\n" + (b"" if self.body is None else self.body + b"\n")


@dataclass(slots=True)
class WriteResult:
    """Numbers of entries that were written, deleted or known in a later version; refused rows."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[int, str] = field(default_factory=dict)

    def add(self, other: WriteResult) -> None:
        self.counts.update(other.counts)
        self.refused.update(other.refused)


async def send(
    client: EngineClient, alias: str, actions: Sequence[BulkAction], payload: bytes
) -> WriteResult:
    """One call; `payload` are the lines of the actions, `alias` is one of the index to change."""
    response = await client.request("POST", f"{alias}/_bulk", payload, require_alias="true")
    items = response.get("items")
    if not isinstance(items, list) or len(items) != len(actions):
        raise EngineUnavailable("the search engine has not answered for every entry")
    results = [_result(item) for item in items]
    if any(index == alias and error is None for _, index, error in results):
        # only writing requires an alias: a deletion in a lost index creates one of that name
        await client.delete(alias)
        raise IndexMissing(f"the search engine does not have an index with the alias {alias}")
    outcome = WriteResult()
    for action, (status, _, error) in zip(actions, results, strict=True):
        _count(outcome, action, status, error)
    return outcome


def _result(item: Any) -> tuple[int, str | None, str | None]:
    """The status of one entry, the index that it is in, and the error."""
    try:
        [result] = item.values()
        error = result.get("error")
        shown = None if error is None else orjson.dumps(error).decode()[:SHOWN]
        return int(result["status"]), result.get("_index"), shown
    except (KeyError, TypeError, ValueError, AttributeError) as strange:
        raise EngineUnavailable(
            f"the search engine answers strangely: {error_text(strange)}"
        ) from None


def _count(outcome: WriteResult, action: BulkAction, status: int, error: str | None) -> None:
    deleting = action.body is None
    if status in CREATED or (deleting and status == NOT_FOUND and error is None):
        outcome.counts["deleted" if deleting else "written"] += 1
    elif status == CONFLICT:
        outcome.counts["known"] += 1
    elif status == TOO_MANY:
        raise EngineBusy(f"the search engine is busy: {error}")
    elif is_refusal(status):
        outcome.counts["refused"] += 1
        outcome.refused[action.ref_id] = error or "no reason given"
    else:
        raise EngineUnavailable(f"the search engine cannot take entries now: {error}")


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


def payload_of(actions: Iterable[BulkAction]) -> bytes:
    return b"".join(action.lines() for action in actions)
