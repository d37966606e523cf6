"""Dead letters: tasks that failed permanently, to be listed, retried or dismissed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import ErrorKind, InvalidInput, NotFound
from forager.fetch.domains.service import domain_name, domains_below, domains_of
from forager.hints import Hint, action
from forager.tasks.store import dead_letters as store
from forager.tasks.store.dead_letters import DeadLetter, LetterFilter, LetterGroup

__all__ = ["DeadLetter", "LetterFilter", "LetterGroup"]

MAX_ID = 2**63 - 1
# letters per transaction, so that retrying a million does not block other work
CHUNK = 1_000
SHOWN = 20


def letter_filter(
    *, ids: Sequence[int] | None = None, cause: str | None = None, domain: str | None = None
) -> LetterFilter:
    if cause is not None and cause not in list(ErrorKind):
        raise InvalidInput(
            f"{cause!r} is no kind of error", hint=f"There are: {', '.join(ErrorKind)}."
        )
    for letter_id in ids or ():
        if not 0 < letter_id <= MAX_ID:
            raise no_such_letter(letter_id)
    return LetterFilter(
        ids=None if ids is None else tuple(ids),
        error_kind=cause,
        domain=None if domain is None else domain_name(domain),
    )


async def group_letters(
    database: Database, wanted: LetterFilter, *, limit: int = 50
) -> list[LetterGroup]:
    """Open letters by cause and domain, the most frequent first."""
    async with database.connection() as connection:
        return await store.select_groups(connection, await _meant(connection, wanted), limit=limit)


async def list_letters(
    database: Database, wanted: LetterFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[DeadLetter]:
    """Open letters, newest first."""
    check_limit(limit)
    async with database.connection() as connection:
        meant = await _meant(connection, wanted)
        found = await store.select_letters(
            connection, meant, before=decode_number(cursor), limit=limit + 1
        )
    return page_of(found, limit, lambda letter: letter.id)


async def count_letters(database: Database, wanted: LetterFilter) -> int:
    async with database.connection() as connection:
        return await store.count_letters(connection, await _meant(connection, wanted))


async def unknown_letters(database: Database, wanted: LetterFilter) -> list[int]:
    """The given ids that belong to no open letter; raises an error if none does."""
    if not wanted.ids:
        return []
    known = await database.run(store.select_open_ids, wanted.ids)
    unknown = [letter_id for letter_id in dict.fromkeys(wanted.ids) if letter_id not in known]
    if not known:
        raise no_such_letter(*unknown)
    return unknown


def no_such_letter(*ids: int) -> NotFound:
    shown = ", ".join(str(letter_id) for letter_id in ids[:SHOWN])
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return NotFound(
        f"there is no open dead letter {shown}{more}",
        hint=Hint("{} lists dead letters.", action("dead-letters list")),
    )


async def retry_letters(database: Database, wanted: LetterFilter) -> int:
    """Retry the tasks now, with all their retries; returns how many."""
    return await _resolve(database, wanted, "retried")


async def drop_letters(database: Database, wanted: LetterFilter) -> int:
    """Dismiss the letters; their tasks stay failed. Returns how many."""
    return await _resolve(database, wanted, "dropped")


async def _resolve(database: Database, wanted: LetterFilter, resolution: str) -> int:
    resolved = 0
    meant = await database.run(_meant, wanted, destroys=resolution == "dropped")
    while True:
        done = await database.run(store.resolve, meant, resolution=resolution, limit=CHUNK)
        resolved += done
        if done < CHUNK:
            return resolved


async def _meant(
    connection: Connection, wanted: LetterFilter, *, destroys: bool = False
) -> LetterFilter:
    if wanted.domain is None:
        return wanted
    ids = await (domains_below if destroys else domains_of)(connection, wanted.domain)
    return replace(wanted, domain_ids=tuple(ids))
