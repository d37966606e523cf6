"""Dead letters: tasks that failed permanently, to be listed, retried or dismissed."""

from __future__ import annotations

from dataclasses import dataclass

from forager.amounts import listed
from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import ErrorKind, InvalidInput, NotFound
from forager.fetch.domains.service import domains_below, domains_of
from forager.hints import Hint, action
from forager.services.service import in_chunks
from forager.tasks.store import dead_letters as store
from forager.tasks.store.dead_letters import DeadLetter, LetterGroup

__all__ = ["DeadLetter", "LetterFilter", "LetterGroup"]

MAX_ID = 2**63 - 1
# letters per transaction, so that retrying a million does not block other work
CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Conditions on letters; None: any."""

    ids: list[int] | None = None
    cause: str | None = None
    domain: str | None = None

    def __post_init__(self) -> None:
        if self.cause is not None and self.cause not in list(ErrorKind):
            raise InvalidInput(
                f"{self.cause!r} is no kind of error", hint=f"There are: {', '.join(ErrorKind)}."
            )
        for letter_id in self.ids or ():
            if not 0 < letter_id <= MAX_ID:
                raise no_such_letter(letter_id)

    async def parameters(
        self, connection: Connection, *, destroys: bool = False
    ) -> store.Conditions:
        """The filter for a statement; `destroys`: without a domain that covers the given one."""
        select = domains_below if destroys else domains_of
        domain_ids = None if self.domain is None else await select(connection, self.domain)
        return {"ids": self.ids, "cause": self.cause, "domain_ids": domain_ids}


async def group_letters(
    database: Database, wanted: LetterFilter, *, limit: int = 50
) -> list[LetterGroup]:
    """Open letters by cause and domain, the most frequent first."""
    async with database.connection() as connection:
        meant = await wanted.parameters(connection)
        return await store.select_groups(connection, meant, limit=limit)


async def list_letters(
    database: Database, wanted: LetterFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[DeadLetter]:
    """Open letters, newest first."""
    check_limit(limit)
    async with database.connection() as connection:
        meant = await wanted.parameters(connection)
        found = await store.select_letters(
            connection, meant, before=decode_number(cursor), limit=limit + 1
        )
    return page_of(found, limit, lambda letter: letter.id)


async def count_letters(database: Database, wanted: LetterFilter) -> int:
    """Number of open dead letters that match."""
    async with database.connection() as connection:
        return await store.count_letters(connection, await wanted.parameters(connection))


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
    return NotFound(
        f"there is no open dead letter {listed(ids)}",
        hint=Hint("{} lists dead letters.", action("dead-letters list")),
    )


async def retry_letters(database: Database, wanted: LetterFilter) -> int:
    """Retry the tasks now, with all their retries; returns how many."""
    return await _resolve(database, wanted, "retried")


async def drop_letters(database: Database, wanted: LetterFilter) -> int:
    """Dismiss the letters; their tasks stay failed. Returns how many."""
    return await _resolve(database, wanted, "dropped")


async def _resolve(database: Database, wanted: LetterFilter, resolution: str) -> int:
    meant = await database.run(wanted.parameters, destroys=resolution == "dropped")
    return await in_chunks(
        database, store.resolve, conditions=meant, resolution=resolution, limit=CHUNK
    )
