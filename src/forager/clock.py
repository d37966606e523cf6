"""The clock by which a process waits and stops itself; what is shared is timed by the database."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

# unlike the monotonic clock it also runs while the machine sleeps, as leases and slots do
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_clock_gettime = time.clock_gettime


def local_time() -> float:
    """Seconds since boot, sleep included; the same for all processes of a machine."""
    return _clock_gettime(_CLOCK)


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, but no longer than this."""
    # not wait_for: in Python 3.11 it can lose a cancellation
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
