"""A pool of sandboxes: a user whose requests hang costs the others little."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from forager.errors import GiveUp
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxLimits
from forager.processes.turns import TurnRefused

MODULE = "misbehaving_server"
LIMIT = 120.0


@pytest.fixture
async def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SandboxPool]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    limits = SandboxLimits(processes=2, seconds=0.5, memory_mb=300)
    pool = SandboxPool(MODULE, str(tmp_path).encode(), limits)
    yield pool
    await pool.close()


async def request(pool: SandboxPool, what: str, user: str) -> str:
    async with asyncio.timeout(LIMIT):
        response, _ = await pool.request({}, what.encode(), user=user)
    return str(response["said"])


async def test_a_user_whose_requests_hang_delays_only_its_own(pool: SandboxPool) -> None:
    hanging = [asyncio.create_task(request(pool, "spin", "hanging")) for _ in range(40)]
    await asyncio.wait(hanging, return_when=asyncio.FIRST_COMPLETED)
    for _ in range(20):
        assert await request(pool, "echo", "shop") == "attempt 1"
    # each costs two processes: only a few of them have failed meanwhile
    assert sum(each.done() for each in hanging) < 15
    pool.drop("hanging")
    ends = await asyncio.gather(*hanging, return_exceptions=True)
    assert {type(end) for end in ends} == {GiveUp, TurnRefused}
    assert sum(isinstance(end, TurnRefused) for end in ends) > 20


async def test_a_user_whose_request_succeeds_gets_all_turns_again(pool: SandboxPool) -> None:
    what = ["spin", *["echo"] * 30]
    ends = await asyncio.gather(
        *(request(pool, each, "shop") for each in what), return_exceptions=True
    )
    assert isinstance(ends[0], GiveUp)
    assert {end for end in ends[1:] if isinstance(end, str)} <= {"attempt 1", "attempt 2"}
    assert len([end for end in ends if isinstance(end, str)]) == 30
