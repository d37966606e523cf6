"""Names in the broker are a promise: workers of another version look for the same queues."""

from __future__ import annotations

from forager.dispatch.message import Band, Route, routes_of


def test_queues_are_named_by_stage_region_and_band() -> None:
    assert Route("crawl", Band.HIGH).queue == "forager.crawl.high"
    assert Route("parse", Band.LOW, "eu-west").queue == "forager.parse.eu-west.low"
    assert Route("crawl", Band.NORMAL, "eu").task == "forager.crawl"


def test_no_name_of_a_region_is_taken_for_none() -> None:
    free = {route.queue for route in routes_of(None)}
    for region in ("any", "none", "high", "normal", "low", "crawl"):
        own = {route.queue for route in routes_of(region) if route.region == region}
        assert not own & free


def test_a_worker_without_a_region_gets_tasks_without_a_region() -> None:
    assert {route.region for route in routes_of(None)} == {None}
    assert len(routes_of(None, renders=False)) == 6


def test_only_workers_with_a_browser_consume_what_needs_one() -> None:
    rendered = set(routes_of(None)) - set(routes_of(None, renders=False))
    assert {route.queue for route in rendered} == {
        "forager.render.high",
        "forager.render.normal",
        "forager.render.low",
    }


def test_a_worker_of_one_stage_leaves_the_other_queues_alone() -> None:
    assert {route.stage for route in routes_of("eu", "download")} == {"crawl", "render"}
    assert {route.stage for route in routes_of("eu", "parse")} == {"parse"}


def test_a_worker_of_a_region_gets_both_and_its_region_first() -> None:
    routes = routes_of("eu")
    assert {route.region for route in routes} == {None, "eu"}
    assert [route.region for route in routes[:9]] == ["eu"] * 9


def test_shares_fall_with_the_band() -> None:
    assert Band.HIGH.share > Band.NORMAL.share > Band.LOW.share > 0
