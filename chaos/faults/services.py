"""Faults of background services: a step that raises, as a bad row or a bug makes it."""

from __future__ import annotations

import asyncio
import contextlib

from chaos.store import services
from chaos.world import Hit, World
from forager.errors import DatabaseUnavailable

POLL_INTERVAL = 0.2


async def break_scheduler(world: World) -> Hit | None:
    """Every tick raises for a while. That the scheduler is restarted is checked at the end."""
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
    """Also through an outage: no later fault may leave it broken."""
    while True:
        with contextlib.suppress(DatabaseUnavailable):
            async with world.cluster.database.connection() as connection:
                await services.repair_ticks(connection)
            return
        await asyncio.sleep(POLL_INTERVAL)
