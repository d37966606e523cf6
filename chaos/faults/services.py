"""Faults of background services: a step that raises, as with an invalid row or a bug."""

from __future__ import annotations

import asyncio
import contextlib

from chaos.store import services
from chaos.world import Hit, World
from forager.errors import DatabaseUnavailable

POLL_INTERVAL = 0.2


async def break_scheduler(world: World) -> Hit | None:
    """Make every scheduler tick raise for some seconds. The restart is checked at the end."""
    seconds = world.chance.uniform(0.5, 4.0)
    with contextlib.suppress(DatabaseUnavailable):
        async with world.cluster.database.connection() as connection:
            await services.break_ticks(connection)
        try:
            await asyncio.sleep(seconds)
        finally:
            await _repair(world)
        return Hit(f"the scheduler raised for {seconds:.1f} s", lasted=seconds)
    return None


async def _repair(world: World) -> None:
    """Repair the scheduler, also during an outage caused by a later fault."""
    while True:
        with contextlib.suppress(DatabaseUnavailable):
            async with world.cluster.database.connection() as connection:
                await services.repair_ticks(connection)
            return
        await asyncio.sleep(POLL_INTERVAL)
