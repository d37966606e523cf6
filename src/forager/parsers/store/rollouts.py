"""SQL of rollouts: active and canary versions of parsers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from psycopg.rows import class_row

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows
from forager.parsers.pattern import GENERIC_NAME


@dataclass(frozen=True, slots=True)
class Rollout:
    """The decision about one parser."""

    parser: str
    active_version: str
    previous_version: str | None = None
    canary_version: str | None = None
    canary_share: float | None = None
    updated_at: datetime | None = None
    # running workers that lack the canary, or otherwise the active version
    missing_on: tuple[str, ...] = ()

    @property
    def is_generic(self) -> bool:
        """Whether the generic extraction reads the pages of this parser."""
        return self.active_version == GENERIC_NAME


@dataclass(frozen=True, slots=True)
class Bypass:
    """A parser that keeps breaking, and is not used for a while."""

    parser: str
    version: str
    reason: str
    until: datetime


_FIRST = RowArrays(
    "f",
    parser="text",
    active_version="text",
    canary_version="text",
    canary_share="double precision",
)
_COLUMNS: LiteralString = """
    parser, active_version, previous_version, canary_version, canary_share, updated_at
"""


async def select_rollouts(connection: Connection) -> list[Rollout]:
    """Which version of each parser is active, and which has a share of the pages."""
    return await Rows(connection, Rollout).all(
        f"SELECT {_COLUMNS} FROM parser_rollouts ORDER BY parser"
    )


async def note_bypass(connection: Connection, parser: str, reason: str, *, seconds: float) -> None:
    """Bypass a parser for a time; its pages are read by the generic extraction."""
    await connection.execute(
        """
        UPDATE parser_rollouts
           SET bypassed_until = now() + %s * interval '1 second', bypass_reason = %s
         WHERE parser = %s
        """,
        (seconds, reason[:2000], parser),
    )


async def select_bypassed(connection: Connection) -> list[Bypass]:
    """Parsers that are bypassed now."""
    return await Rows(connection, Bypass).all(
        """
        SELECT parser, active_version AS version, bypass_reason AS reason, bypassed_until AS until
          FROM parser_rollouts
         WHERE bypassed_until > now() ORDER BY parser
        """
    )


async def pin_versions(connection: Connection, rollouts: Sequence[Rollout]) -> None:
    """Store first decisions; one that was made meanwhile stays."""
    await connection.execute(
        f"""
        INSERT INTO parser_rollouts (parser, active_version, canary_version, canary_share)
        SELECT parser, active_version, canary_version, canary_share FROM {_FIRST}
            ON CONFLICT (parser) DO NOTHING
        """,
        _FIRST.values(rollouts),
    )


async def lock_rollout(connection: Connection, parser: str) -> Rollout | None:
    """The decision, locked until this transaction ends."""
    cursor = connection.cursor(row_factory=class_row(Rollout))
    # also without a row: two first decisions may be made at the same time
    await cursor.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('parser_rollouts ' || %s, 0))", (parser,)
    )
    await cursor.execute(f"SELECT {_COLUMNS} FROM parser_rollouts WHERE parser = %s", (parser,))
    return await cursor.fetchone()


async def put_rollout(connection: Connection, rollout: Rollout) -> Rollout:
    """Store the rollout of a parser, and return it."""
    return await Rows(connection, Rollout).one(
        f"""
        INSERT INTO parser_rollouts AS r
               (parser, active_version, previous_version, canary_version, canary_share)
        VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (parser) DO UPDATE
           SET active_version = excluded.active_version,
               previous_version = excluded.previous_version,
               canary_version = excluded.canary_version,
               canary_share = excluded.canary_share,
               bypassed_until = CASE WHEN r.active_version = excluded.active_version
                                     THEN r.bypassed_until END,
               updated_at = now()
        RETURNING {_COLUMNS}
        """,
        (
            rollout.parser,
            rollout.active_version,
            rollout.previous_version,
            rollout.canary_version,
            rollout.canary_share,
        ),
    )
