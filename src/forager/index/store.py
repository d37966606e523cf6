"""SQL of the search indexes: one row for each kind, changed only as its reader knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values
from forager.outbox.store import enqueue


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of one kind: the one in use, the one that is being filled, the one to delete."""

    kind: str
    name: str | None
    uuid: str | None
    layout: int | None
    is_complete: bool
    building: str | None
    building_uuid: str | None
    building_layout: int | None
    filled_to: int
    old: str | None
    # seconds since the one in use became complete
    age: float | None


_STATE: LiteralString = """
    SELECT kind, name, uuid, layout, complete_since IS NOT NULL AS is_complete, building,
           building_uuid, building_layout, filled_to, old,
           extract(epoch FROM now() - complete_since)::float8 AS age
      FROM search_indexes WHERE kind = %s
"""


async def select_index(connection: Connection, kind: str) -> IndexState | None:
    """The index in use for a kind; None before the first one."""
    return await Rows(connection, IndexState).first(_STATE, (kind,))


async def hold_index(connection: Connection, kind: str) -> IndexState | None:
    """The state, locked: no other transaction begins or swaps an index before this one ends."""
    return await Rows(connection, IndexState).first(_STATE + "FOR SHARE", (kind,))


# --- rebuilding an index -------------------------------------------------------------------------


async def begin_building(
    connection: Connection, kind: str, *, name: str, layout: int, instead_of: str | None
) -> bool:
    """Record the name of a new index, unless another one was begun meanwhile."""
    return await Tuples(connection).changed(
        """
        INSERT INTO search_indexes AS i (kind, building, building_layout)
        VALUES (%(kind)s, %(name)s, %(layout)s)
            ON CONFLICT (kind) DO UPDATE
           SET building = excluded.building, building_uuid = NULL,
               building_layout = excluded.building_layout, filled_to = 0, fed_at = now()
         WHERE i.building IS NOT DISTINCT FROM %(instead_of)s
        """,
        {"kind": kind, "name": name, "layout": layout, "instead_of": instead_of},
    )


async def set_building_uuid(connection: Connection, kind: str, building: str, uuid: str) -> bool:
    """Feed this index with changes from now on, if it is still the one to be filled."""
    return await Tuples(connection).changed(
        "UPDATE search_indexes SET building_uuid = %s WHERE kind = %s AND building = %s",
        (uuid, kind, building),
    )


async def current_transaction(connection: Connection) -> int:
    """A number that is higher than that of every transaction that has written before."""
    return await Values(connection, int).one("SELECT pg_current_xact_id()::text::bigint")


async def all_have_ended(connection: Connection, transaction: int) -> bool:
    """Whether all transactions up to this one have committed or rolled back."""
    return await Values(connection, bool).one(
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > %s", (transaction,)
    )


async def select_next_ids(
    connection: Connection, table: LiteralString, *, after: int, last: int, limit: int
) -> list[int]:
    """The ids of rows to index, in their order."""
    return await Values(connection).all(
        f"SELECT id FROM {table} WHERE id > %s AND id <= %s ORDER BY id LIMIT %s",
        (after, last, limit),
    )


async def count_after(connection: Connection, table: LiteralString, after: int) -> tuple[int, int]:
    """How many rows follow, and the id of the last one."""
    return await Tuples(connection, tuple[int, int]).one(
        f"SELECT count(*), coalesce(max(id), 0) FROM {table} WHERE id > %s", (after,)
    )


async def advance(connection: Connection, kind: str, building: str, filled_to: int) -> bool:
    """Record how far an index is filled, if it is still the one to be filled."""
    return await Tuples(connection).changed(
        """
        UPDATE search_indexes SET filled_to = greatest(filled_to, %(filled_to)s), fed_at = now()
         WHERE kind = %(kind)s AND building = %(building)s
        """,
        {"kind": kind, "building": building, "filled_to": filled_to},
    )


async def complete(connection: Connection, kind: str, building: str) -> bool:
    """Switch searches to the filled index; the previous one is to be deleted."""
    return await Tuples(connection).changed(
        """
        UPDATE search_indexes
           SET old = name, name = building, uuid = building_uuid, layout = building_layout,
               complete_since = now(), building = NULL, building_uuid = NULL,
               building_layout = NULL, filled_to = 0
         WHERE kind = %s AND building = %s
        """,
        (kind, building),
    )


async def forget_old(connection: Connection, kind: str, old: str) -> None:
    """Note that the previous index of a kind was deleted."""
    await connection.execute(
        "UPDATE search_indexes SET old = NULL WHERE kind = %s AND old = %s", (kind, old)
    )


# --- maintenance ---------------------------------------------------------------------------------


async def touch(connection: Connection, kind: str) -> None:
    """Note that the index of a kind was fed now."""
    await connection.execute("UPDATE search_indexes SET fed_at = now() WHERE kind = %s", (kind,))


async def forget_lost(connection: Connection, kind: str, uuid: str) -> None:
    """Forget an index that the engine has lost."""
    await connection.execute(
        """
        UPDATE search_indexes
           SET name = CASE WHEN uuid = %(uuid)s THEN NULL ELSE name END,
               complete_since = CASE WHEN uuid = %(uuid)s THEN NULL ELSE complete_since END,
               uuid = nullif(uuid, %(uuid)s),
               building = CASE WHEN building_uuid = %(uuid)s THEN NULL ELSE building END,
               building_uuid = nullif(building_uuid, %(uuid)s)
         WHERE kind = %(kind)s
        """,
        {"kind": kind, "uuid": uuid},
    )
    await connection.execute(
        "DELETE FROM search_indexes WHERE kind = %s AND name IS NULL AND building IS NULL", (kind,)
    )


async def delete_unfed(connection: Connection, seconds: float) -> list[str]:
    """Forget indexes that no worker has fed for this long; return their kinds."""
    return await Values(connection).all(
        """
        DELETE FROM search_indexes WHERE fed_at < now() - make_interval(secs => %s) RETURNING kind
        """,
        (seconds,),
    )


# --- messages to the engine ----------------------------------------------------------------------


def enqueue_changes(kind: LiteralString, rows: LiteralString) -> LiteralString:
    """The INSERT of messages about the (id, sections) of a query, if there is an index."""
    return enqueue(
        f"""
        SELECT '{kind}', 0, changed.id,
               CASE WHEN changed.sections IS NOT NULL THEN ARRAY[changed.sections::bigint] END
          FROM ({rows}) AS changed (id, sections)
         WHERE EXISTS (SELECT FROM search_indexes WHERE kind = '{kind}')
        """
    )


async def enqueue_rows(connection: Connection, kind: LiteralString, ids: Sequence[int]) -> None:
    """Enqueue rows that this transaction has changed and holds, if there is an index."""
    rows: LiteralString = "SELECT id, NULL::integer FROM unnest(%s::bigint[]) AS u (id)"
    await connection.execute(enqueue_changes(kind, rows), (list(ids),))
