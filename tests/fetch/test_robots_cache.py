from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forager.fetch.robots.cache import (
    LIFETIME,
    MIN_LIFETIME,
    NO_ANSWER,
    CachedRobots,
    RobotsAction,
    lifetime,
    remember,
    robots_policy,
)

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FORBID = b"User-agent: *\nDisallow: /\n"


def fails(previous: CachedRobots | None, now: datetime, status: int = NO_ANSWER) -> CachedRobots:
    return remember(previous, status=status, body=b"", now=now)


@pytest.mark.parametrize(
    ("status", "redirects", "action"),
    [
        (200, 0, RobotsAction.PARSE),
        (204, 0, RobotsAction.PARSE),
        (301, 0, RobotsAction.FOLLOW),
        (308, 4, RobotsAction.FOLLOW),
        (302, 5, RobotsAction.ALLOW_ALL),
        (304, 0, RobotsAction.ALLOW_ALL),
        (401, 0, RobotsAction.ALLOW_ALL),
        (403, 0, RobotsAction.ALLOW_ALL),
        (404, 0, RobotsAction.ALLOW_ALL),
        (429, 0, RobotsAction.DEFER),
        (500, 0, RobotsAction.DEFER),
        (503, 0, RobotsAction.DEFER),
        (NO_ANSWER, 0, RobotsAction.DEFER),
        (999, 0, RobotsAction.DEFER),
    ],
)
def test_policy_by_status(status: int, redirects: int, action: RobotsAction) -> None:
    policy = robots_policy(status, redirects=redirects)
    assert policy.action is action
    assert "robots.txt" in policy.reason


def test_after_thirty_days_without_answer_there_are_no_rules() -> None:
    month = timedelta(days=30)
    assert robots_policy(503, unreachable_for=month).action is RobotsAction.ALLOW_ALL
    assert robots_policy(NO_ANSWER, unreachable_for=month - MINUTE).action is RobotsAction.DEFER
    assert robots_policy(429, unreachable_for=month).action is RobotsAction.DEFER


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, LIFETIME),
        ("", LIFETIME),
        ("public, max-age=3600", timedelta(hours=1)),
        ('max-age="3600"', timedelta(hours=1)),
        ("s-maxage=5", LIFETIME),
        ("max-age=0", MIN_LIFETIME),
        ("max-age=9999999999", LIFETIME),
        ("max-age=x", LIFETIME),
        ("no-store, max-age=3600", MIN_LIFETIME),
    ],
)
def test_lifetime(header: str | None, expected: timedelta) -> None:
    assert lifetime(header) == expected


def test_an_answer_is_kept_for_its_lifetime() -> None:
    kept = remember(None, status=200, body=FORBID, now=NOW, cache_control="max-age=3600")
    assert kept == CachedRobots(FORBID, NOW, NOW + timedelta(hours=1), 200)
    assert kept.is_fresh(NOW)
    assert not kept.is_fresh(NOW + timedelta(hours=1))
    robots = kept.robots(NOW)
    assert robots is not None
    assert not robots.verdict("https://x/", "Forager").allowed


def test_a_missing_file_allows_all_whatever_its_body() -> None:
    robots = remember(None, status=404, body=FORBID, now=NOW).robots(NOW)
    assert robots is not None
    assert robots.verdict("https://x/", "Forager").allowed


def test_a_host_that_never_answered_is_deferred_and_asked_ever_less_often() -> None:
    kept = fails(None, NOW)
    assert kept.robots(NOW) is None
    assert kept.expires_at == NOW + MINUTE
    kept = fails(kept, NOW + 5 * MINUTE, 503)
    assert (kept.fetched_at, kept.status) == (NOW, 503)
    assert kept.expires_at == NOW + 10 * MINUTE
    kept = fails(kept, NOW + timedelta(days=1))
    assert kept.expires_at == NOW + timedelta(days=1, hours=1)
    assert kept.robots(NOW + timedelta(days=30)) is not None


def test_an_old_copy_is_obeyed_while_the_host_fails() -> None:
    good = remember(None, status=200, body=FORBID, now=NOW)
    kept = fails(good, NOW + timedelta(days=2), 503)
    assert (kept.body, kept.status, kept.fetched_at) == (FORBID, 200, NOW)
    assert kept.is_fresh(NOW + timedelta(days=2))
    assert kept.robots(NOW + timedelta(days=40)) is not None


def test_an_answer_ends_the_failure() -> None:
    kept = remember(fails(None, NOW), status=200, body=FORBID, now=NOW + MINUTE)
    assert (kept.status, kept.fetched_at) == (200, NOW + MINUTE)


def test_retry_after_is_obeyed_within_a_day() -> None:
    busy = remember(None, status=429, body=b"", now=NOW, retry_after=7200)
    assert busy.expires_at == NOW + timedelta(hours=2)
    silly = remember(None, status=429, body=b"", now=NOW, retry_after=1e30)
    assert silly.expires_at == NOW + LIFETIME
