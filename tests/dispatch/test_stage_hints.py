"""Hints of a stage: offered, claimed, remembered and bounded."""

from __future__ import annotations

import asyncio

import pytest

from forager.tasks import hints as hints_module
from forager.tasks.hints import MOST, Hints, HintsClosed, StageHints
from forager.tasks.stages.attempt import Stage


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints_module, "OFFER_LIMIT", 0.01)


async def test_an_offer_waits_until_it_was_tried() -> None:
    hints = StageHints()
    woken = asyncio.Event()
    hints.attach(woken.set)
    offer = asyncio.ensure_future(hints.offer([1, 2]))
    await asyncio.sleep(0)
    assert len(hints) == 0, "there is no room yet"
    await hints.set_room(True)
    await woken.wait()
    assert hints.begin_claim(10) == [1, 2]
    assert not offer.done()
    await hints.end_claim([1], has_room=True)
    await offer
    assert hints.begin_claim(10) == [2], "could not be claimed yet, and is remembered"


async def test_a_look_that_began_before_an_offer_says_nothing_of_it() -> None:
    hints = StageHints()
    await hints.set_room(True)
    hints.begin_claim(10)
    offer = asyncio.ensure_future(hints.offer([1]))
    while not hints:
        await asyncio.sleep(0)
    await hints.end_claim([], has_room=True)
    await asyncio.sleep(0)
    assert not offer.done()
    hints.begin_claim(10)
    await hints.end_claim([1], has_room=True)
    await offer


async def test_a_worker_that_waits_too_long_for_capacity_leaves_the_hint(
    short_limits: None,
) -> None:
    hints = StageHints()
    await hints.offer([1])
    assert hints.begin_claim(10) == [1]


async def test_nothing_is_offered_twice_and_no_more_than_fits(short_limits: None) -> None:
    hints = StageHints()
    await hints.offer([1, 1])
    assert len(hints) == 1
    await hints.offer(range(2, MOST + 2))
    assert len(hints) == MOST
    assert hints.begin_claim(1) == [2], "the oldest is dropped: it will be sent again"


async def test_at_the_end_all_hints_are_passed_on() -> None:
    hints = Hints()
    stage = hints.of(Stage.DOWNLOAD)
    offer = asyncio.ensure_future(stage.offer([1]))
    await asyncio.sleep(0)
    assert await hints.close() == []
    with pytest.raises(HintsClosed):
        await offer
    with pytest.raises(HintsClosed):
        await stage.offer([2])


async def test_remembered_hints_are_passed_to_others(short_limits: None) -> None:
    hints = Hints()
    await hints.of(Stage.DOWNLOAD).offer([1])
    await hints.of(Stage.PARSE).offer([2])
    assert sorted(await hints.close()) == [1, 2]
