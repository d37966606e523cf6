"""A look at some references instead of all: do the records that rows count on still exist?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from forager.archive import store
from forager.archive.errors import ArchiveError
from forager.archive.reader import read_record
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.db.database import Database
from forager.errors import NotFound


@dataclass(frozen=True, slots=True)
class Look:
    """One reference, and what is wrong with the record there."""

    ref: ArchiveRef
    problem: str | None


async def sample_references(database: Database, storage: Storage, size: int) -> AsyncIterator[Look]:
    """Read some records that rows refer to, from as many segments as there can be."""
    async with database.connection() as connection:
        names = await store.select_some_segments(connection, limit=size)
        each = -(-size // max(1, len(names)))
        refs = await store.select_some_references(connection, names, each=each)
    for ref in refs[:size]:
        yield Look(ref, await _problem(database, storage, ref))


async def _problem(database: Database, storage: Storage, ref: ArchiveRef) -> str | None:
    try:
        await read_record(storage, ref)
    except (ArchiveError, NotFound) as error:
        # merged or forgotten since it was listed: nothing refers to it any more
        async with database.connection() as connection:
            return error.message if await store.is_referred_to(connection, ref) else None
    return None
