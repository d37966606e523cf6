"""Visits that ask at the same time share one query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from forager.db.shared_query import SharedQuery


class Table:
    """A query that returns on demand, and records its keys."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.open = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self, keys: Sequence[int]) -> dict[int, str]:
        self.asked.append(list(keys))
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return {key: f"row {key}" for key in keys if key < 10}


async def _turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_all_that_ask_while_a_query_runs_share_the_next() -> None:
    table = Table()
    query = SharedQuery(table.ask)
    first = asyncio.create_task(query.find(1))
    await _turn()
    others = [asyncio.create_task(query.find(key)) for key in (2, 3, 2, 99)]
    await _turn()
    table.open.set()
    assert await first == "row 1"
    assert await asyncio.gather(*others) == ["row 2", "row 3", "row 2", None]
    assert table.asked == [[1], [2, 3, 99]]


async def test_an_error_reaches_all_that_share_the_query_and_nobody_else() -> None:
    table = Table()
    table.error = OSError("away")
    table.open.set()
    query = SharedQuery(table.ask)
    answers = await asyncio.gather(query.find(1), query.find(2), return_exceptions=True)
    assert set(answers) == {table.error}
    table.error = None
    assert await query.find(1) == "row 1"


async def test_a_visit_that_leaves_takes_nobody_with_it() -> None:
    table = Table()
    query = SharedQuery(table.ask)
    leaving, staying = (asyncio.create_task(query.find(1)) for _ in range(2))
    await _turn()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    table.open.set()
    assert await staying == "row 1"
