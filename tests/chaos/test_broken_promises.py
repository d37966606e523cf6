"""The harness is proven: it finds each promise that is broken on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_plan import SMALL, faults

from chaos.broken import Switch
from chaos.requests import Budget
from chaos.run import Result, run
from chaos.violation import Promise

pytestmark = pytest.mark.timeout(900)


def broken(result: Result) -> set[Promise]:
    return {violation.promise for violation in result.violations}


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
