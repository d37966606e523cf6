"""Faults of machines: a full disk, a clock jump."""

from __future__ import annotations

import asyncio

from chaos.world import Hit, World

STEPS = (-7200.0, -90.0, 90.0, 3600.0, 86400.0 * 400)


async def fill_disk(world: World) -> Hit | None:
    seconds = world.chance.uniform(0.5, 4.0)
    world.control.fill_disk(True)
    try:
        await asyncio.sleep(seconds)
    finally:
        world.control.fill_disk(False)
    return Hit(f"no space for the archive for {seconds:.1f} s", lasted=seconds)


async def step_clock(world: World) -> Hit | None:
    workers = [m.slot for m in world.cluster.members if m.slot.startswith("worker")]
    slot, step = world.chance.choice(workers), world.chance.choice(STEPS)
    world.control.step_clock(slot, step)
    return Hit(f"the clock of {slot} is off by {step:+.0f} s")
