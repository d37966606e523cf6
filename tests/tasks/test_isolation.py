"""Results that cannot be written together."""

from __future__ import annotations

from collections.abc import Sequence

from forager.errors import StatementTimedOut
from forager.failures.cause import Cause
from forager.tasks.stages.settle import commit_isolated


async def test_a_batch_that_takes_too_long_is_written_in_parts() -> None:
    written: list[int] = []
    refused: list[int] = []

    async def commit(items: Sequence[int]) -> None:
        if len(items) > 2 or 7 in items:
            raise StatementTimedOut("canceling statement due to statement timeout")
        written.extend(items)

    async def refuse(item: int, cause: Cause) -> None:
        assert "statement timeout" in cause.message
        refused.append(item)

    await commit_isolated(range(10), commit, refuse)
    assert sorted(written) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert refused == [7]
