"""A small run of the harness, and the faults of a run by name."""

from __future__ import annotations

from chaos.faults import FAULTS, Fault
from chaos.run import Plan

# large enough for a machine that is ten times slower; nothing waits for it to pass
WAIT_LIMIT = 500.0
SMALL = Plan(
    seed=7,
    faults=0,
    seconds=0.0,
    workers=1,
    hosts=1,
    pages=60,
    products=12,
    lost_answers=0.0,
    recovery_limit=WAIT_LIMIT,
)


def faults(*kinds: str) -> list[Fault]:
    chosen = [fault for fault in FAULTS if fault.kind in kinds]
    assert len(chosen) == len(kinds)
    return chosen
