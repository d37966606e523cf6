"""Expensive answers are cached for a while."""

from __future__ import annotations

import asyncio

import pytest

from forager.api import services
from forager.api.services import AnswerCache


class Counting:
    """Returns a new answer each time, after `go` is set."""

    def __init__(self) -> None:
        self.made = 0
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def make(self) -> int:
        self.made += 1
        self.begun.set()
        await self.go.wait()
        return self.made


@pytest.fixture
def counting() -> Counting:
    return Counting()


async def test_cheap_answers_are_computed_each_time(counting: Counting) -> None:
    kept = AnswerCache()
    counting.go.set()
    assert [await kept.get("a", counting.make) for _ in range(2)] == [1, 2]


async def test_expensive_answers_are_cached(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHEAP", 0.0)
    monkeypatch.setattr(services, "KEPT_FACTOR", 1e9)
    kept = AnswerCache()
    counting.go.set()
    assert [await kept.get("a", counting.make) for _ in range(2)] == [1, 1]
    assert await kept.get("b", counting.make) == 2


async def test_a_cached_answer_has_its_time(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = AnswerCache()
    counting.go.set()
    assert (await kept.look("a", counting.make)).at is None
    monkeypatch.setattr(services, "CHEAP", 0.0)
    monkeypatch.setattr(services, "KEPT_FACTOR", 1e9)
    first = await kept.look("a", counting.make)
    assert first.at is not None
    assert await kept.look("a", counting.make) is first


async def test_concurrent_requests_share_one_computation(counting: Counting) -> None:
    kept = AnswerCache()
    asking = [asyncio.create_task(kept.get("a", counting.make)) for _ in range(5)]
    await counting.begun.wait()
    asking[0].cancel()
    counting.go.set()
    assert await asyncio.gather(*asking[1:]) == [1, 1, 1, 1]
    assert asking[0].cancelled()


async def test_the_previous_answer_is_given_while_it_is_recomputed(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHEAP", 0.0)
    monkeypatch.setattr(services, "KEPT_FACTOR", 0)
    kept = AnswerCache()
    counting.go.set()
    assert await kept.get("a", counting.make) == 1
    counting.go.clear()
    counting.begun.clear()
    second = asyncio.create_task(kept.get("a", counting.make))
    await counting.begun.wait()
    assert await kept.get("a", counting.make) == 1
    counting.go.set()
    assert await second == 2


async def test_an_error_is_raised_and_not_cached(counting: Counting) -> None:
    async def fail() -> int:
        raise ValueError("no answer")

    kept = AnswerCache()
    with pytest.raises(ValueError, match="no answer"):
        await kept.get("a", fail)
    counting.go.set()
    assert await kept.get("a", counting.make) == 1
