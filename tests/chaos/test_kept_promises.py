"""The harness finds no violation where Forager keeps its promises, whatever is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_plan import SMALL, faults

from chaos.requests import Budget
from chaos.run import run

pytestmark = pytest.mark.timeout(900)


async def test_a_run_in_which_all_promises_are_kept() -> None:
    plan = replace(
        SMALL,
        workers=2,
        hosts=2,
        pages=160,
        faults=8,
        seconds=8.0,
        lost_answers=0.005,
        kinds=faults(
            "kill runner",
            "kill supervisor",
            "kill task worker",
            "kill API",
            "restart PostgreSQL",
            "terminate sessions",
            "cut line",
            "disk full",
            "step clock",
            "service raises",
            "pause",
            "roll back",
        ),
    )
    result = await run(plan)
    assert result.violations == []
    assert len(result.done) == plan.faults
    assert result.pages >= plan.pages
    assert result.messages >= plan.products
    assert result.checks


async def test_crawls_survive_every_loss_of_their_shared_runner() -> None:
    """All losses in one run: half of the processor time of a run is the start of its cluster."""
    kinds = [
        "kill runner",
        "freeze runner past lease",
        "kill supervisor",
        "block runner",
        "exhaust memory",
    ]
    crawls = 12
    plan = replace(
        SMALL,
        capacity=crawls + len(kinds),
        hosts=crawls,
        pages=24 * crawls,
        products=1,
        budget=Budget(delay=0.3, concurrency=2),
        faults=len(kinds),
        kinds=sorted(faults(*kinds), key=lambda fault: kinds.index(fault.kind)),
        in_order=True,
    )
    result = await run(plan)
    assert result.violations == []
    assert sorted(done.kind for done in result.done) == sorted(kinds)
    assert set(result.jobs) == {"completed"}
