"""Faults of processes: killed, or frozen and thawed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from uuid import UUID

import psutil

from chaos.cluster import Cluster
from chaos.faults import victims
from chaos.faults.victims import Victim
from chaos.short_limits import PAST_THE_LEASE
from chaos.store import checks
from chaos.world import Hit, World
from forager.errors import DatabaseUnavailable

Find = Callable[[Cluster], list[Victim]]

SHORT = (0.3, 4.0)
LONG = (PAST_THE_LEASE, PAST_THE_LEASE + 4.0)


async def kill_supervisor(world: World) -> Hit | None:
    return await _kill(world, victims.supervisors)


async def kill_runner(world: World) -> Hit | None:
    return await _kill(world, victims.runners)


async def kill_task_worker(world: World) -> Hit | None:
    return await _kill(world, victims.task_workers)


async def kill_extractor(world: World) -> Hit | None:
    return await _kill(world, victims.extractors)


async def kill_api(world: World) -> Hit | None:
    return await _kill(world, lambda cluster: victims.services(cluster, "api"))


async def kill_scheduler(world: World) -> Hit | None:
    return await _kill(world, lambda cluster: victims.services(cluster, "scheduler"))


async def freeze(world: World) -> Hit | None:
    """Freeze any process for a moment."""
    return await _freeze(world, _anybody, SHORT)


async def freeze_runner(world: World) -> Hit | None:
    """Freeze a runner for longer than its lease."""
    return await _freeze(world, victims.runners, LONG)


async def freeze_supervisor(world: World) -> Hit | None:
    """Freeze a supervisor for longer than the leases of its jobs."""
    return await _freeze(world, _supervisors_with_runners, LONG)


async def freeze_task_worker(world: World) -> Hit | None:
    return await _freeze(world, victims.task_workers, LONG)


def _supervisors_with_runners(cluster: Cluster) -> list[Victim]:
    return [victim for victim in victims.supervisors(cluster) if victim.worker]


def _anybody(cluster: Cluster) -> list[Victim]:
    services = [*victims.services(cluster, "api"), *victims.services(cluster, "scheduler")]
    workers = [*victims.supervisors(cluster), *victims.runners(cluster)]
    return [*workers, *victims.task_workers(cluster), *victims.extractors(cluster), *services]


def _pick(chance: random.Random, found: list[Victim]) -> Victim | None:
    return chance.choice(found) if found else None


async def _jobs(world: World, victim: Victim) -> frozenset[UUID]:
    """The jobs that end with a process."""
    if victim.worker is None:
        return frozenset()
    with contextlib.suppress(DatabaseUnavailable):
        return frozenset(await world.cluster.database.run(checks.select_jobs_of, victim.worker))
    return frozenset()


async def _kill(world: World, find: Find) -> Hit | None:
    victim = _pick(world.chance, find(world.cluster))
    if victim is None:
        return None
    jobs = await _jobs(world, victim)
    with contextlib.suppress(psutil.Error):
        victim.process.kill()
    return Hit(f"killed {victim.role} {victim.process.pid}", jobs)


async def _freeze(world: World, find: Find, length: tuple[float, float]) -> Hit | None:
    victim = _pick(world.chance, find(world.cluster))
    if victim is None:
        return None
    seconds = world.chance.uniform(*length)
    jobs = await _jobs(world, victim)
    try:
        with contextlib.suppress(psutil.Error):
            victim.process.suspend()
        await asyncio.sleep(seconds)
    finally:
        with contextlib.suppress(psutil.Error):
            victim.process.resume()
    what = f"froze {victim.role} {victim.process.pid} for {seconds:.1f} s"
    return Hit(what, jobs, seconds)
