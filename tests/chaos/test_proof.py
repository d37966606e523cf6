"""The harness is proven: it finds each promise that is broken on purpose, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.broken import Switch
from chaos.faults import FAULTS, Fault
from chaos.requests import Budget
from chaos.run import Plan, Result, run
from chaos.violation import Promise

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
pytestmark = pytest.mark.timeout(900)


def faults(*kinds: str) -> list[Fault]:
    chosen = [fault for fault in FAULTS if fault.kind in kinds]
    assert len(chosen) == len(kinds)
    return chosen


def broken(result: Result) -> set[Promise]:
    return {violation.promise for violation in result.violations}


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


@pytest.mark.parametrize(
    "promises",
    [
        {Switch.DOUBLE_COUNT: Promise.LEDGER},
        # each breaks one promise, so that one run shows them all
        {
            Switch.CHECKPOINT_OUTSIDE: Promise.LEDGER,
            Switch.NO_OUTBOX: Promise.MESSAGES,
            Switch.NO_BUDGET: Promise.BUDGET,
            Switch.FETCH_TWICE: Promise.FETCHED_ONCE,
        },
    ],
)
async def test_promises_that_are_broken_without_any_fault(promises: dict[Switch, Promise]) -> None:
    # a pace that even the slowest machine exceeds without a limit
    pace = Budget(delay=0.2, concurrency=2) if Switch.NO_BUDGET in promises else SMALL.budget
    expected = frozenset(promises.values())
    result = await run(
        replace(
            SMALL, switch=",".join(promises), budget=pace, until_violation=True, expected=expected
        )
    )
    assert expected <= broken(result)


async def test_a_frozen_supervisor_whose_runner_continues_without_a_lease() -> None:
    """Slow enough that the job is still there when others take it over."""
    plan = replace(
        SMALL,
        workers=2,
        pages=1000,
        products=1,
        budget=Budget(delay=0.2, concurrency=2),
        faults=4,
        seconds=20.0,
        kinds=faults("freeze supervisor past lease"),
        switch=Switch.NO_LEASE_CHECK,
        until_violation=True,
        # a task that is settled twice may be found first
        expected=frozenset({Promise.ONE_WRITER}),
    )
    result = await run(plan)
    assert Promise.ONE_WRITER in broken(result)
