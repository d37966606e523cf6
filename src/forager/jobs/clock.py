"""The clock a worker uses to stop itself; everything shared is timed by the database."""

from __future__ import annotations

import time

# unlike the monotonic clock it also runs while the machine sleeps, as leases do
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def awake_and_asleep() -> float:
    """Seconds since boot, sleep included; the same for all processes of a machine."""
    return time.clock_gettime(_CLOCK)
