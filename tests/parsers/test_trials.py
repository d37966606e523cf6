"""A version on trial that hangs must not cost its time limit page after page."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.parsers.page_cache import CachedPage
from forager.parsers.reading import ReadingPool
from forager.parsers.rollouts import load_plan, roll_out
from forager.parsers.trials import MOST_BREAKS, PER_PROCESS, Trials, suspend
from forager.settings import Settings
from parsers.archived_kiosk import MODULE, Kiosk, item
from tasks.working import Tasks, at_work

PAGES = 12


pytestmark = pytest.mark.usefixtures("kiosk")


@pytest.fixture
def hurried(settings: Settings) -> Settings:
    return settings.model_copy(
        update={
            "parser_modules": (MODULE,),
            "extraction_time_limit": 1.0,
            "extraction_processes": 1,
        }
    )


def slow(number: int) -> bytes:
    return item(number, more="<p class='slow'>wait</p>")


async def test_a_trial_that_hangs_is_ended_and_reported(
    database: Database, hurried: Settings
) -> None:
    shop = Kiosk(database, hurried)
    await shop.archive((number, slow(number)) for number in range(1, PAGES + 1))
    await roll_out(database, Settings(), "kiosk", "1")
    await roll_out(database, Settings(), "kiosk", "10", canary=1.0)
    tasks = Tasks(database, hurried)
    await tasks.sql("UPDATE crawl_tasks SET updated_at = 'yesterday'")
    async with at_work(tasks):
        await tasks.all_when(shop.task_ids, "completed")
    read = dict(await tasks.sql("SELECT role, count(*) FROM extractions GROUP BY role"))
    assert read["active"] == PAGES
    assert MOST_BREAKS <= read["canary"] < MOST_BREAKS + PER_PROCESS
    decided = (await load_plan(database)).rollouts["kiosk"]
    assert (decided.active_version, decided.canary_version) == ("1", None)
    [event] = (await list_events(database, kind=EventKind.TRIAL_ENDED)).items
    assert (event.payload["parser"], event.payload["version"]) == ("kiosk", "10")
    assert "takes longer than 1 s" in event.payload["reason"]


@pytest.mark.long
async def test_only_what_breaks_in_a_row_counts(database: Database, hurried: Settings) -> None:
    await roll_out(database, Settings(), "kiosk", "1")
    await roll_out(database, Settings(), "kiosk", "10", canary=1.0)
    plan = await load_plan(database)
    active, canary = plan.versions_for(1)
    assert canary is not None
    good, bad = (
        CachedPage("http://kiosk.example/item/1", "text/html", body(1)) for body in (item, slow)
    )
    async with ReadingPool(hurried) as pool:
        trials = Trials(database, pool)
        for page in (bad, bad, good, bad):
            assert await trials.read(page, plan, active, canary) is not None
        # a page that no version can read says nothing about the canary
        assert await trials.read(bad, plan, active, canary, to_blame=False) is not None
        assert (await load_plan(database)).rollouts["kiosk"].canary_version == "10"
        for _ in range(MOST_BREAKS - 1):
            assert await trials.read(bad, plan, active, canary) is not None
        assert await trials.read(good, plan, active, canary) is None

        await roll_out(database, Settings(), "kiosk", "10", canary=1.0)
        again = await load_plan(database)
        assert await trials.read(good, again, active, canary) is not None


async def test_a_trial_is_ended_once(database: Database) -> None:
    await roll_out(database, Settings(), "kiosk", "1")
    await roll_out(database, Settings(), "kiosk", "2", canary=0.5)
    assert not await suspend(database, "kiosk", "10", "another version")
    assert await suspend(database, "kiosk", "2", "it hangs")
    assert not await suspend(database, "kiosk", "2", "it hangs")
    assert len((await list_events(database, kind=EventKind.TRIAL_ENDED)).items) == 1
