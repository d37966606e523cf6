"""Actions of users: pause, resume, cancel, retry, publish and roll back at any time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from chaos.user import ApiUnavailable
from chaos.world import Hit, World


async def pause(world: World) -> Hit | None:
    return await _move(world, "pause", ("pending", "processing"))


async def resume(world: World) -> Hit | None:
    return await _move(world, "resume", ("paused",))


async def cancel(world: World) -> Hit | None:
    return await _move(world, "cancel", ("pending", "processing", "paused"))


async def retry(world: World) -> Hit | None:
    return await _move(world, "retry", ("failed",))


async def roll_back(world: World) -> Hit | None:
    return await _publish(world, "rollback")


async def publish(world: World) -> Hit | None:
    return await _publish(world, "publish")


async def _move(world: World, action: str, statuses: tuple[str, ...]) -> Hit | None:
    try:
        jobs: list[dict[str, Any]] = await world.user.jobs(*statuses)
        if not jobs:
            return None
        job = world.chance.choice(sorted(jobs, key=lambda job: str(job["source"])))
        done = await world.user.move(job["id"], action)
    except ApiUnavailable:
        return None
    message = f"{action} {job['source']}" + ("" if done else ": refused")
    return Hit(
        message, frozenset({UUID(job["id"])}) if action == "resume" and done else frozenset()
    )


async def _publish(world: World, action: str) -> Hit | None:
    host = world.chance.choice(world.site.docs)
    try:
        done = await world.user.ask("POST", f"/sources/{host.name}/{action}")
    except ApiUnavailable:
        return None
    return None if done is None else Hit(f"{action} {host.name} to {done['number']}")
