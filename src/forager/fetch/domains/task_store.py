"""SQL of domains for their tasks: rows for new hosts, and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class Cover:
    """The row that covers a host."""

    id: int
    allow_private: bool


async def select_covers(connection: Connection, names: Sequence[str]) -> dict[str, Cover]:
    """Of these names, those that have a row."""
    cursor = await connection.execute(
        "SELECT domain_name, id, allow_private FROM domains WHERE domain_name = ANY(%s)",
        (list(names),),
    )
    return {row[0]: Cover(row[1], row[2]) for row in await cursor.fetchall()}


async def insert_domains(connection: Connection, domains: Mapping[str, str]) -> None:
    """Rows for these names and base URLs, in one order for everybody who inserts."""
    names = sorted(domains)
    await connection.execute(
        """
        INSERT INTO domains (domain_name, base_url)
        SELECT * FROM unnest(%s::text[], %s::text[])
        ON CONFLICT (domain_name) DO NOTHING
        """,
        (names, [domains[name] for name in names]),
    )


async def allow_private(connection: Connection, domain_ids: Sequence[int]) -> None:
    """Their rows are locked in one order, as everybody does who changes several."""
    await connection.execute(
        """
        WITH locked AS MATERIALIZED (
            SELECT id FROM domains
             WHERE id = ANY(%s) AND NOT allow_private
             ORDER BY id
               FOR NO KEY UPDATE
        )
        UPDATE domains d
           SET allow_private = true, updated_at = now()
          FROM locked
         WHERE d.id = locked.id
        """,
        (list(domain_ids),),
    )


async def hold_domain(connection: Connection, domain_id: int, hold: str | None) -> bool:
    cursor = await connection.execute(
        """
        UPDATE domains
           SET task_hold = %(hold)s, updated_at = now()
         WHERE id = %(id)s AND task_hold IS DISTINCT FROM %(hold)s
        """,
        {"id": domain_id, "hold": hold},
    )
    return cursor.rowcount > 0
