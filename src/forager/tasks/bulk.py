"""Doing something to a selection of tasks, however large, a batch at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from forager.db.database import Connection, Database
from forager.errors import NotFound
from forager.fetch.domains.matching import domains_below, domains_of
from forager.hints import Hint, action
from forager.tasks.selection import Selection
from forager.tasks.store import reads as store

BATCH = 2_000
SHOWN = 20


async def in_batches(
    database: Database,
    selection: Selection,
    work: Callable[[Connection, list[int]], Awaitable[None]],
    *,
    destroys: bool = False,
) -> int:
    """Each batch is a transaction, by ascending ids; how many tasks were found.

    What destroys does so at and below the host that is named, never in all that covers it.
    """
    domain_ids = await domain_ids_of(database, selection, destroys=destroys)
    after = found = 0
    while True:
        async with database.transaction() as connection:
            ids = await store.select_ids(
                connection, selection, domain_ids=domain_ids, after=after, limit=BATCH
            )
            if ids:
                await work(connection, ids)
        found += len(ids)
        if len(ids) < BATCH:
            break
        after = ids[-1]
    if selection.ids and not found:
        raise no_such_task(*selection.ids)
    return found


async def domain_ids_of(
    database: Database, selection: Selection, *, destroys: bool = False
) -> list[int] | None:
    if selection.domain is None:
        return None
    async with database.connection() as connection:
        return await (domains_below if destroys else domains_of)(connection, selection.domain)


def no_such_task(*named: object) -> NotFound:
    shown = ", ".join(str(each) for each in named[:SHOWN])
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return NotFound(
        f"there is no task {shown}{more}", hint=Hint("{} lists tasks.", action("tasks list"))
    )
