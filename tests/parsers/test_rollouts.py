"""Rollouts: active versions, canaries, and rollbacks."""

from __future__ import annotations

import os
import socket

import pytest

from forager.checks import Level
from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.jobs.workers import Registration
from forager.parsers.backtest import backtest
from forager.parsers.checks import check_parsers
from forager.parsers.overview import overview
from forager.parsers.pattern import GENERIC_VERSION
from forager.parsers.registry import installed_versions
from forager.parsers.rollouts import Rollout, RolloutPlan, Rollouts, load_plan, roll_back, roll_out
from forager.settings import Settings
from parsers.archived_kiosk import MODULE, Kiosk, item, silent_server
from support.sql import execute
from tasks.working import Tasks, at_work

SETTINGS = Settings()


pytestmark = pytest.mark.usefixtures("kiosk")


def test_without_a_decision_nothing_is_named() -> None:
    assert RolloutPlan().versions_for(7) == ({}, None)
    assert RolloutPlan().active_version("kiosk") == "10"
    assert RolloutPlan().active_version("unknown") is None


def test_a_share_of_the_tasks_is_tried_and_stays_the_same_when_it_grows() -> None:
    def tried(share: float) -> set[int]:
        plan = RolloutPlan({"kiosk": Rollout("kiosk", "1", None, "2", share)})
        found = set()
        for task_id in range(10_000):
            active, canary = plan.versions_for(task_id)
            assert active == {"kiosk": "1"}
            if canary is not None:
                assert canary == {"kiosk": "2"}
                found.add(task_id)
        return found

    tenth, half = tried(0.1), tried(0.5)
    assert 850 < len(tenth) < 1150
    assert tenth < half
    assert tried(1.0) == set(range(10_000))
    assert tried(0.1) == tenth


def test_a_canary_runs_only_where_it_is_installed() -> None:
    plan = RolloutPlan({"kiosk": Rollout("kiosk", "1", None, "3", 1.0)})
    assert plan.versions_for(1) == ({"kiosk": "1"}, None)


async def test_a_rollout_names_the_workers_that_cannot_follow(database: Database) -> None:
    old = Registration(
        database, new_id(), capacity=1, role="tasks", parsers=lambda: {"kiosk": ["1"]}
    )
    new = Registration(database, new_id(), capacity=1, role="tasks", parsers=installed_versions)
    await old.renew()
    await new.renew()
    await Registration(database, new_id(), capacity=1, role="jobs").renew()
    behind = (f"{socket.gethostname()} (pid {os.getpid()})",)
    assert (await roll_out(database, SETTINGS, "kiosk", "1")).missing_on == ()
    assert (await roll_out(database, SETTINGS, "kiosk", "2", canary=0.1)).missing_on == behind
    lines = {
        (each.name, each.version): each for each in (await overview(database, SETTINGS)).parsers
    }
    assert lines["kiosk", "2"].missing_on == behind
    assert lines["kiosk", "1"].missing_on == lines["kiosk", "10"].missing_on == ()
    check = await check_parsers(database, SETTINGS)
    assert check.level is Level.WARN
    assert f"kiosk 2: {behind[0]}" in check.examples[0]
    await old.end()
    assert (await roll_out(database, SETTINGS, "kiosk", "2")).missing_on == ()


async def test_steps_forward_and_back(database: Database) -> None:
    first = await roll_out(database, SETTINGS, "kiosk", "1")
    assert (first.active_version, first.previous_version) == ("1", "generic")
    trial = await roll_out(database, SETTINGS, "kiosk", "2", canary=0.25)
    assert (trial.active_version, trial.canary_version, trial.canary_share) == ("1", "2", 0.25)
    ended = await roll_back(database, "kiosk")
    assert (ended.active_version, ended.canary_version) == ("1", None)
    second = await roll_out(database, SETTINGS, "kiosk", "2")
    assert (second.active_version, second.previous_version) == ("2", "1")
    again = await roll_out(database, SETTINGS, "kiosk", "2")
    assert again.previous_version == "1"
    back = await roll_back(database, "kiosk")
    assert (back.active_version, back.previous_version) == ("1", None)
    with pytest.raises(NotAllowed, match="nothing to roll back"):
        await roll_back(database, "kiosk")


async def test_rolling_out_what_is_tried_ends_the_trial(database: Database) -> None:
    await roll_out(database, SETTINGS, "kiosk", "1")
    await roll_out(database, SETTINGS, "kiosk", "2", canary=0.1)
    done = await roll_out(database, SETTINGS, "kiosk", "2")
    assert (done.active_version, done.previous_version, done.canary_version) == ("2", "1", None)


async def test_a_first_version_runs_as_a_canary_until_a_user_decides(database: Database) -> None:
    """The generic extraction stays active; parsers that are part of Forager are."""
    plan = await Rollouts().current(database)
    assert plan.versions_for(1) == ({"amazon": "1", "kiosk": "bypassed"}, {"kiosk": "10"})
    found = await overview(database, SETTINGS)
    [first] = [each for each in found.parsers if each.is_first]
    assert (first.name, first.version, first.state) == ("kiosk", "10", "canary")
    assert (
        "tried beside the generic extraction: kiosk 10"
        in (await check_parsers(database, SETTINGS)).message
    )
    done = await roll_out(database, SETTINGS, "kiosk", "10")
    assert (done.active_version, done.canary_version) == ("10", None)
    back = await roll_back(database, "kiosk")
    assert back.is_generic
    assert (await load_plan(database)).versions_for(1)[0]["kiosk"] == "bypassed"


async def test_the_use_of_a_parser_is_ended(database: Database) -> None:
    await roll_out(database, SETTINGS, "kiosk", "2")
    done = await roll_out(database, SETTINGS, "kiosk", "generic")
    assert (done.active_version, done.previous_version) == ("generic", "2")
    assert (await roll_back(database, "kiosk")).active_version == "2"


async def test_what_cannot_be_rolled_out(database: Database) -> None:
    with pytest.raises(NotFound, match="no version 3"):
        await roll_out(database, SETTINGS, "kiosk", "3")
    with pytest.raises(NotFound, match="no parser"):
        await roll_out(database, SETTINGS, "unknown", "1")
    with pytest.raises(InvalidInput, match="not a share"):
        await roll_out(database, SETTINGS, "kiosk", "2", canary=1.5)
    await roll_out(database, SETTINGS, "kiosk", "2")
    with pytest.raises(InvalidInput, match="nothing to try"):
        await roll_out(database, SETTINGS, "kiosk", "2", canary=0.1)
    with pytest.raises(InvalidInput, match="nothing to try"):
        await roll_out(database, SETTINGS, "amazon", "1", canary=0.1)


async def test_a_version_that_is_gone_cannot_be_returned_to(database: Database) -> None:
    await roll_out(database, SETTINGS, "kiosk", "1")
    await roll_out(database, SETTINGS, "kiosk", "2")
    await execute(database, "UPDATE parser_rollouts SET previous_version = '0.9'")
    with pytest.raises(NotFound, match=r"no version 0\.9"):
        await roll_back(database, "kiosk")


async def test_running_workers_follow(database: Database) -> None:
    await roll_out(database, SETTINGS, "kiosk", "10")
    cached, fresh = Rollouts(refresh=3600), Rollouts(refresh=0)
    assert await kiosk_of(cached, database) == "10"
    await roll_out(database, SETTINGS, "kiosk", "1")
    assert await kiosk_of(fresh, database) == "1"
    assert await kiosk_of(cached, database) == "10"


async def kiosk_of(rollouts: Rollouts, database: Database) -> str | None:
    return (await rollouts.current(database)).versions_for(1)[0].get("kiosk")


async def test_the_first_version_of_a_worker_counts_until_a_user_decides(
    database: Database,
) -> None:
    """A newer version that is installed later is not rolled out by that."""
    await execute(
        database, "INSERT INTO parser_rollouts (parser, active_version) VALUES ('kiosk', '2')"
    )
    assert await kiosk_of(Rollouts(), database) == "2"
    # where the version that counts is not installed, the newest does its work
    await execute(database, "UPDATE parser_rollouts SET active_version = '7'")
    plan = await Rollouts().current(database)
    assert "kiosk" not in plan.versions_for(1)[0]
    assert plan.active_version("kiosk") == "10"


async def test_an_overview_names_what_runs_and_what_is_missing(
    database: Database, settings: Settings
) -> None:
    await roll_out(database, SETTINGS, "kiosk", "1")
    await roll_out(database, SETTINGS, "kiosk", "2", canary=0.1)
    await execute(
        database, "INSERT INTO parser_rollouts (parser, active_version) VALUES ('gone', '4')"
    )
    found = await overview(database, settings)
    states = {(each.name, each.version): each.state for each in found.parsers}
    assert states == {
        ("amazon", "1"): "active",
        ("generic", GENERIC_VERSION): "active",
        ("gone", "4"): "missing",
        ("kiosk", "1"): "active",
        ("kiosk", "2"): "canary",
        ("kiosk", "10"): "idle",
    }


async def test_a_parser_is_changed_tried_and_rolled_back_without_one_request(
    database: Database, settings: Settings
) -> None:
    """A rollout with a running worker; the server of the shop gets no request."""
    settings = settings.model_copy(update={"parser_modules": (MODULE,)})
    async with silent_server() as (host, visitors):
        shop = Kiosk(database, settings, host)
        await shop.archive((n, item(n, was="£20" if n < 4 else None)) for n in range(1, 21))
        await roll_out(database, SETTINGS, "kiosk", "1")
        assert await parse_all(shop) == {("1", "active"): 20}

        report = await backtest(database, settings, "kiosk", version="2", against="1")
        assert report.pages == 20
        assert report.fields["price"].changed == 3
        assert report.fields["sku"].lost == 20

        await roll_out(database, SETTINGS, "kiosk", "2", canary=0.5)
        plan = await load_plan(database)
        tried = [task for task in shop.task_ids if plan.versions_for(task)[1] is not None]
        assert 0 < len(tried) < 20
        assert await parse_all(shop) == {("1", "active"): 20, ("2", "canary"): len(tried)}
        assert await products_of(shop) == {("1", False): 20}

        await roll_out(database, SETTINGS, "kiosk", "2")
        assert await parse_all(shop) == {("2", "active"): 20}
        assert await products_of(shop) == {("2", True): 20}

        await roll_back(database, "kiosk")
        assert await parse_all(shop) == {("1", "active"): 20}
        assert await products_of(shop) == {("1", False): 20}
        assert visitors == []


async def parse_all(shop: Kiosk) -> dict[tuple[str, str], int]:
    """Let a worker parse every task's archived page; how many were read by whom."""
    tasks = Tasks(shop.database, shop.settings)
    [[last]] = await tasks.sql("SELECT coalesce(max(id), 0) FROM extractions")
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded', updated_at = 'yesterday'")
    async with at_work(tasks):
        await tasks.all_when(shop.task_ids, "completed")
    rows = await tasks.sql(
        """
        SELECT parser_version, role, count(*) FROM extractions
         WHERE parser = 'kiosk' AND id > %s GROUP BY 1, 2
        """,
        last,
    )
    return {(version, role): count for version, role, count in rows}


async def products_of(shop: Kiosk) -> dict[tuple[str, bool], int]:
    """By version, and whether the number has got lost: how many products there are."""
    rows = await Tasks(shop.database, shop.settings).sql(
        "SELECT parser_version, sku IS NULL, count(*) FROM products GROUP BY 1, 2"
    )
    return {(version, lost): count for version, lost, count in rows}
