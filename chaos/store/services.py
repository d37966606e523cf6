"""SQL of service faults: a trigger makes the last statement of each tick raise."""

from __future__ import annotations

from datetime import datetime

from psycopg.rows import scalar_row

from forager.db.database import Connection


async def break_ticks(connection: Connection) -> None:
    await connection.execute(
        """
        CREATE OR REPLACE FUNCTION chaos.refuse_tick() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'chaos: this tick is refused';
        END $$
        """
    )
    await connection.execute(
        """
        CREATE OR REPLACE TRIGGER chaos_refuse_tick BEFORE UPDATE OF ticked_at ON task_control
            FOR EACH ROW EXECUTE FUNCTION chaos.refuse_tick()
        """
    )


async def repair_ticks(connection: Connection) -> None:
    await connection.execute("DROP TRIGGER IF EXISTS chaos_refuse_tick ON task_control")


async def has_ticked(connection: Connection, since: datetime) -> bool:
    """Whether a scheduler has completed a tick since then."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT ticked_at > %s FROM task_control", (since,))
    return bool(await cursor.fetchone())
