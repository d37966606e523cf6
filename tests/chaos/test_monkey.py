"""The faults of a run are injected, also where they do not apply yet."""

from __future__ import annotations

import random
from typing import Any

import pytest

from chaos import monkey
from chaos.faults import Fault
from chaos.monkey import OTHERS, Monkey
from chaos.world import Hit, World

NOTHING: Any = None


async def test_a_fault_in_order_waits_until_it_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed runner restarts slowly on a busy machine, and only a running one can be frozen."""
    monkeypatch.setattr(monkey, "POLL_INTERVAL", 0.001)
    tries = 0

    async def freeze(world: World) -> Hit | None:
        nonlocal tries
        tries += 1
        return Hit("frozen") if tries > OTHERS else None

    async def progress() -> None:
        pass

    world = World(NOTHING, NOTHING, NOTHING, NOTHING, random.Random(1))
    faults = [Fault("freeze", 1, freeze)]
    injected = Monkey(world, 1, faults=faults, in_order=True, progress=progress)
    await injected.inject(1, every=0.0)
    assert [done.kind for done in injected.done] == ["freeze"]
