"""The smallest job: counts to a number, one commit per step. `forager doctor --job` runs it."""

from __future__ import annotations

import asyncio
from typing import Any

from forager.errors import InvalidInput
from forager.jobs.context import JobContext
from forager.jobs.kinds import Completed, JobKind, Outcome, Stopped, register

MAX_STEPS = 1_000_000


async def count(context: JobContext) -> Outcome:
    """Count from the last checkpoint to `steps`, with a pause of `seconds` at each step."""
    steps: int = context.job.payload["steps"]
    seconds: float = context.job.payload["seconds"]
    last = await context.checkpoint()
    done = last.processed if last else 0
    while done < steps:
        if context.stopping.is_set():
            return Stopped()
        await asyncio.sleep(seconds)
        async with context.commit() as connection:
            await context.save(connection, processed=done + 1, pending=steps - done - 1, data={})
        done += 1
    return Completed()


def check(payload: dict[str, Any]) -> dict[str, Any]:
    unknown = payload.keys() - {"steps", "seconds"}
    steps, seconds = payload.get("steps", 10), payload.get("seconds", 0.0)
    if unknown:
        raise InvalidInput(f"a selftest takes 'steps' and 'seconds', not {sorted(unknown)}")
    if not isinstance(steps, int) or not 0 <= steps <= MAX_STEPS:
        raise InvalidInput(f"'steps' must be a whole number from 0 to {MAX_STEPS}")
    if not isinstance(seconds, int | float) or not 0 <= seconds <= 3600:
        raise InvalidInput("'seconds' must be a number from 0 to 3600")
    return {"steps": steps, "seconds": seconds}


SELFTEST = register(JobKind("selftest", count, check))
