"""A market of twenty shops through a day of faults: histories and events stay exact."""

from __future__ import annotations

import pytest

from forager.tasks.alarms import list_alarms
from market.judging import check_market
from market.shops import Fault
from market.simulation import DAY, SCHEDULE, open_market
from tasks.working import Tasks

# a product whose page is permanently gone, in a healthy shop
GONE = (10, "p1")


@pytest.mark.timeout(300)
async def test_a_market_through_a_day_of_faults(tasks: Tasks) -> None:
    async with open_market(tasks) as market:
        for hour in range(DAY):
            if hour == 1:
                market.all[GONE[0]].gone.add(GONE[1])
            if hour == 4:
                await market.kill_worker()
            await market.pass_an_hour()
            if hour == 3:
                found = await list_alarms(tasks.database)
                [same] = [alarm for alarm in found if alarm.reason == "same_page"]
                assert same.domain == market.all[7].host
            if hour == 5:
                # one shop is known to be ill, and nothing of it was given up
                [alarm] = [a for a in await list_alarms(tasks.database) if a.reason == "gone"]
                assert alarm.domain == market.all[3].host
        await market.settle()
        events = await check_market(market)
    assert await tasks.sql("SELECT count(*) FROM dead_letters") == [(0,)]
    assert await list_alarms(tasks.database) == []
    assert events["domain.alarm"] == events["domain.recovered"] > 0
    assert {shop.number for shop in market.all if set(shop.requests) - {"None"}} == set(SCHEDULE)
    assert market.all[4].requests[Fault.HANGS] > 0
