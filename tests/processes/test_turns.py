"""Users take turns, however many calls each of them has waiting."""

from __future__ import annotations

import asyncio

from forager.processes.turns import FairTurns, TurnRefused


async def test_a_user_with_many_calls_does_not_delay_the_others() -> None:
    turns, order, may_end = FairTurns(1), list[str](), asyncio.Event()

    async def call(user: str) -> None:
        async with turns.turn(user):
            order.append(user)
            await may_end.wait()

    users = ["first", *["busy"] * 5, "a", "b"]
    calls = [asyncio.create_task(call(user)) for user in users]
    await asyncio.sleep(0)
    assert turns.waiting == 7
    may_end.set()
    await asyncio.gather(*calls)
    assert order == ["first", "busy", "a", "b", "busy", "busy", "busy", "busy"]
    assert turns.waiting == 0


async def test_a_cancelled_call_loses_no_turn() -> None:
    turns = FairTurns(1)
    async with turns.turn("a"):
        waiting = [asyncio.create_task(_turn(turns, user)) for user in "bcd"]
        await asyncio.sleep(0)
        waiting[0].cancel()  # while it waits
        assert turns.waiting == 2
    waiting[1].cancel()  # just after it was granted
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in results] == [True, True, False]
    await _turn(turns, "e")


async def test_a_limited_user_has_one_turn_at_a_time() -> None:
    turns, may_end = FairTurns(3), asyncio.Event()

    async def call(user: str) -> None:
        async with turns.turn(user):
            await may_end.wait()

    turns.limit("slow")
    calls = [asyncio.create_task(call(user)) for user in ("slow", "slow", "slow", "quick")]
    await asyncio.sleep(0)
    assert turns.waiting == 2
    turns.unlimit("slow")
    assert turns.waiting == 1
    turns.drop("slow")
    may_end.set()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [type(None), type(None), TurnRefused, type(None)]


async def _turn(turns: FairTurns, user: str) -> None:
    async with turns.turn(user):
        pass
