"""Faults of PostgreSQL and of the connections to it."""

from __future__ import annotations

import asyncio
import contextlib

import psutil

from chaos.store import checks
from chaos.world import Hit, World
from forager.errors import DatabaseUnavailable

BACKEND = "postgres: "
OWN_NAMES = ("forager chaos",)


async def restart_server(world: World) -> Hit | None:
    # on a busy machine it may take longer than a start may take; workers start it then
    with contextlib.suppress(DatabaseUnavailable):
        await world.cluster.restart_server()
    return Hit("PostgreSQL stopped immediately and restarted")


async def terminate_sessions(world: World) -> Hit | None:
    share = world.chance.uniform(0.2, 1.0)
    with contextlib.suppress(DatabaseUnavailable):
        async with world.cluster.database.connection() as connection:
            ended = await checks.terminate_sessions(connection, share)
        return Hit(f"{ended} sessions terminated")
    return None


async def kill_backend(world: World) -> Hit | None:
    """Kill a backend: all other sessions end, and the server recovers."""
    postmaster = world.cluster.server.pid
    if postmaster is None:
        return None
    with contextlib.suppress(psutil.Error):
        found = [p for p in psutil.Process(postmaster).children() if _is_session(p)]
        if found:
            victim = world.chance.choice(found)
            victim.kill()
            return Hit(f"killed PostgreSQL backend {victim.pid}")
    return None


def _is_session(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        title = " ".join(process.cmdline())
        # "postgres: user database host state": auxiliary processes have no host
        return title.startswith(BACKEND) and "[local]" in title
    return False


async def delay_line(world: World) -> Hit | None:
    seconds, delay = world.chance.uniform(1.0, 4.0), world.chance.uniform(0.02, 0.4)
    world.cluster.line.delay = delay
    try:
        await asyncio.sleep(seconds)
    finally:
        world.cluster.line.delay = 0.0
    return Hit(f"connections slower by {delay * 1000:.0f} ms for {seconds:.1f} s", lasted=seconds)


async def cut_line(world: World) -> Hit | None:
    """Cut all connections, and refuse new ones for some seconds."""
    seconds = world.chance.choice([0.0, 0.0, world.chance.uniform(0.5, 4.0)])
    world.cluster.line.is_down = True
    cut = world.cluster.line.cut()
    try:
        await asyncio.sleep(seconds)
    finally:
        world.cluster.line.is_down = False
    return Hit(f"{cut} connections cut, new ones refused for {seconds:.1f} s", lasted=seconds)


async def half_open_line(world: World) -> Hit | None:
    """Keep connections open without transferring anything."""
    return Hit(f"{world.cluster.line.silence()} connections half open")
