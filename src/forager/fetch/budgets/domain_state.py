"""SQL expressions on a row `domains d`, which statements about budgets and tasks contain."""

from __future__ import annotations

from typing import LiteralString

LEAD = 2.0
"""Slots further away than this many seconds are not reserved: a reservation is soon used."""
SHORTEST_HALVING = 30.0
"""The extra delay halves when this many seconds, or twice the delay, pass without an error."""
FURTHEST_AHEAD = 60.0
"""More than slots and permits are reserved ahead: a later time is from a clock that was wrong."""

# the current extra delay of `domains d`: it halves over time without a write
SLOW_NOW: LiteralString = f"""
    (SELECT CASE WHEN slow.seconds < 0.1 THEN 0 ELSE slow.seconds END
       FROM (SELECT d.slow_delay / 2 ^ least(20, floor(
                 greatest(0, extract(epoch FROM clock_timestamp() - d.slowed_at)::float8)
                 / greatest({SHORTEST_HALVING}, 2 * d.slow_delay)))) AS slow (seconds))
"""

# the end of the last reservation is this far away at most, unless the clock was set back since
LAST_SLOT: LiteralString = f"(d.slot_delay + {FURTHEST_AHEAD}) * interval '1 second'"
SLOT_IS_STRAY: LiteralString = f"d.next_slot_at > now() + {LAST_SLOT}"

# A host may ask for days, so the end of a block shows no error of the clock: its beginning does.
BLOCK_IS_STRAY: LiteralString = f"d.blocked_at > now() + {FURTHEST_AHEAD} * interval '1 second'"
BLOCKED_UNTIL: LiteralString = f"CASE WHEN {BLOCK_IS_STRAY} THEN NULL ELSE d.blocked_until END"
