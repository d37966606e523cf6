"""Roll-outs: what counts, what is tried, and how it is undone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from catalog.archived_kiosk import Kiosk, item, kiosk_parsers, silent_server
from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.catalog.backtest import backtest
from forager.catalog.parser_overview import overview
from forager.catalog.rollouts import Rollout, RolloutPlan, Rollouts, load_plan, roll_back, roll_out
from forager.catalog.store.archived_pages import archived_pages
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.extract.product.page import open_page
from forager.parsers.registry import ParsedProduct, parse_product
from forager.settings import Settings


@pytest.fixture(autouse=True)
def kiosk() -> Iterator[None]:
    with kiosk_parsers():
        yield


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


async def test_steps_forward_and_back(database: Database) -> None:
    first = await roll_out(database, "kiosk", "1")
    assert (first.active_version, first.previous_version) == ("1", "10")
    trial = await roll_out(database, "kiosk", "2", canary=0.25)
    assert (trial.active_version, trial.canary_version, trial.canary_share) == ("1", "2", 0.25)
    ended = await roll_back(database, "kiosk")
    assert (ended.active_version, ended.canary_version) == ("1", None)
    second = await roll_out(database, "kiosk", "2")
    assert (second.active_version, second.previous_version) == ("2", "1")
    again = await roll_out(database, "kiosk", "2")
    assert again.previous_version == "1"
    back = await roll_back(database, "kiosk")
    assert (back.active_version, back.previous_version) == ("1", None)
    with pytest.raises(NotAllowed, match="nothing to roll back"):
        await roll_back(database, "kiosk")


async def test_rolling_out_what_is_tried_ends_the_trial(database: Database) -> None:
    await roll_out(database, "kiosk", "1")
    await roll_out(database, "kiosk", "2", canary=0.1)
    done = await roll_out(database, "kiosk", "2")
    assert (done.active_version, done.previous_version, done.canary_version) == ("2", "1", None)


async def test_a_first_trial_of_the_newest_runs_beside_the_one_before_it(
    database: Database,
) -> None:
    trial = await roll_out(database, "kiosk", "10", canary=1.0)
    assert (trial.active_version, trial.canary_version) == ("2", "10")


async def test_what_cannot_be_rolled_out(database: Database) -> None:
    with pytest.raises(NotFound, match="no version 3"):
        await roll_out(database, "kiosk", "3")
    with pytest.raises(NotFound, match="no parser"):
        await roll_out(database, "nobody", "1")
    with pytest.raises(InvalidInput, match="not a share"):
        await roll_out(database, "kiosk", "2", canary=1.5)
    await roll_out(database, "kiosk", "2")
    with pytest.raises(InvalidInput, match="nothing to try"):
        await roll_out(database, "kiosk", "2", canary=0.1)
    with pytest.raises(NotAllowed, match="in version 1 only"):
        await roll_out(database, "amazon", "1", canary=0.1)


async def test_a_version_that_is_gone_cannot_be_returned_to(database: Database) -> None:
    await roll_out(database, "kiosk", "1")
    await roll_out(database, "kiosk", "2")
    async with database.connection() as connection:
        await connection.execute("UPDATE parser_rollouts SET previous_version = '0.9'")
    with pytest.raises(NotFound, match=r"no version 0\.9"):
        await roll_back(database, "kiosk")


async def test_running_workers_follow(database: Database) -> None:
    patient, eager = Rollouts(refresh=3600), Rollouts(refresh=0)
    assert (await patient.current(database)).versions_for(1) == ({}, None)
    await roll_out(database, "kiosk", "1")
    assert (await eager.current(database)).versions_for(1) == ({"kiosk": "1"}, None)
    assert (await patient.current(database)).versions_for(1) == ({}, None)


async def test_an_overview_names_what_runs_and_what_is_missing(
    database: Database, settings: Settings
) -> None:
    await roll_out(database, "kiosk", "1")
    await roll_out(database, "kiosk", "2", canary=0.1)
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO parser_rollouts (parser, active_version) VALUES ('gone', '4')"
        )
    found = await overview(database, settings)
    states = {(each.name, each.version): each.state for each in found.parsers}
    assert states == {
        ("amazon", "1"): "active",
        ("generic", "1"): "active",
        ("gone", "4"): "missing",
        ("kiosk", "1"): "active",
        ("kiosk", "2"): "canary",
        ("kiosk", "10"): "idle",
    }


async def test_a_parser_is_changed_tried_and_rolled_back_without_one_request(
    database: Database, settings: Settings
) -> None:
    """The whole story, from the archive alone; the shop's server is up and hears nothing."""
    async with silent_server() as (host, visitors):
        shop = Kiosk(database, settings, host)
        await shop.archive((n, item(n, was="£20" if n < 4 else None)) for n in range(1, 21))
        await roll_out(database, "kiosk", "1")

        report = await backtest(database, settings, "kiosk", version="2", against="1")
        assert report.pages == 20
        assert report.fields["price"].changed == 3
        assert report.fields["brand"].equal + report.fields["brand"].gained == 20
        assert report.fields["sku"].lost == 20

        await roll_out(database, "kiosk", "2", canary=0.5)
        plan = await load_plan(database)
        tried = {task: plan.versions_for(task)[1] for task in shop.task_ids}
        assert 0 < sum(canary is not None for canary in tried.values()) < 20
        for task_id, parsed, canary in await read_tasks(database, settings, plan):
            assert parsed.version == "1"
            assert parsed.product.sku is not None
            assert (canary is not None) == (tried[task_id] is not None)
            if canary is not None:
                assert (canary.version, canary.product.sku) == ("2", None)

        await roll_out(database, "kiosk", "2")
        active = await read_tasks(database, settings, await load_plan(database))
        assert {parsed.version for _, parsed, _ in active} == {"2"}
        assert sum(parsed.product.price == Decimal(20) for _, parsed, _ in active) == 3

        await roll_back(database, "kiosk")
        active = await read_tasks(database, settings, await load_plan(database))
        assert {(parsed.version, canary) for _, parsed, canary in active} == {("1", None)}
        assert all(parsed.product.sku for _, parsed, _ in active)
        assert visitors == []


async def read_tasks(
    database: Database, settings: Settings, plan: RolloutPlan
) -> list[tuple[int, ParsedProduct, ParsedProduct | None]]:
    """Every task's page from the archive, in the versions that the plan has for it."""
    storage = archive_options(settings).open()
    read = []
    async for row in archived_pages(database, domain_id=None, history=False):
        archived = await read_response(storage, row.ref)
        page = open_page(archived.body, archived.url, headers=archived.headers)
        active, canary = plan.versions_for(row.task_id)
        tried = parse_product(page, canary) if canary else None
        read.append((row.task_id, parse_product(page, active), tried))
    return read
