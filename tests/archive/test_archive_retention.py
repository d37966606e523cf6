"""Nothing that is referred to goes unless the policy says so; nothing that is open goes at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from forager.archive.retention import Policy, RetentionReason, SegmentRow, plan_retention

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def segment(
    name: str, days: int, *, size: int = 100, references: int = 1, is_open: bool = False
) -> SegmentRow:
    written_at = NOW - timedelta(days=days)
    return SegmentRow(
        name=name,
        job_id=None,
        lease=0,
        bytes=size,
        records=1,
        created_at=written_at,
        written_at=written_at,
        closed_at=None,
        going_at=None,
        keep_until=None,
        references=references,
        open=is_open,
    )


def names(deletions: list[object]) -> list[tuple[str, RetentionReason]]:
    return [(d.segment.name, d.reason) for d in deletions]  # type: ignore[attr-defined]


def test_without_limits_only_what_nothing_refers_to_goes() -> None:
    segments = [segment("a", 900), segment("b", 1, references=0)]
    plan = plan_retention(segments, Policy(), NOW)
    assert names([*plan.delete]) == [("b", RetentionReason.UNREFERENCED)]
    assert plan.kept == []
    assert sum(each.segment.bytes for each in plan.delete) == 100


def test_an_open_segment_is_left_alone() -> None:
    policy = Policy(max_age=timedelta(days=1), max_bytes=0, drop_references=True)
    segments = [segment("a", 9, references=0, is_open=True), segment("b", 9, is_open=True)]
    assert plan_retention(segments, policy, NOW).delete == []


def test_age_is_that_of_the_youngest_page() -> None:
    old = segment("old", 40)
    used = replace(segment("used", 40), written_at=NOW - timedelta(days=2))
    policy = Policy(max_age=timedelta(days=30), drop_references=True)
    plan = plan_retention([used, old], policy, NOW)
    assert names([*plan.delete]) == [("old", RetentionReason.AGE)]
    assert plan.delete[0].drops_references


def test_what_is_referred_to_is_kept_and_reported() -> None:
    plan = plan_retention([segment("a", 40)], Policy(max_age=timedelta(days=30)), NOW)
    assert plan.delete == []
    assert names([*plan.kept]) == [("a", RetentionReason.AGE)]


def test_the_oldest_go_until_the_rest_fits() -> None:
    segments = [segment(str(days), days) for days in (1, 2, 3, 4)]
    policy = Policy(max_bytes=250, drop_references=True)
    plan = plan_retention(segments, policy, NOW)
    assert names([*plan.delete]) == [("4", RetentionReason.SIZE), ("3", RetentionReason.SIZE)]


def test_what_nothing_refers_to_goes_before_what_is_older() -> None:
    segments = [segment("old", 9), segment("loose", 1, references=0)]
    plan = plan_retention(segments, Policy(max_bytes=150, drop_references=True), NOW)
    assert names([*plan.delete]) == [("loose", RetentionReason.UNREFERENCED)]


def test_only_as_many_are_reported_as_would_have_to_go() -> None:
    segments = [segment(str(days), days) for days in (1, 2, 3)]
    plan = plan_retention(segments, Policy(max_bytes=250), NOW)
    assert names([*plan.kept]) == [("3", RetentionReason.SIZE)]


states = st.builds(
    segment,
    name=st.text("abc", min_size=1, max_size=3),
    days=st.integers(0, 100),
    size=st.integers(0, 1000),
    references=st.integers(0, 2),
    is_open=st.booleans(),
)
policies = st.builds(
    Policy,
    max_age=st.none() | st.integers(0, 100).map(lambda days: timedelta(days=days)),
    max_bytes=st.none() | st.integers(0, 5000),
    drop_references=st.booleans(),
)


@given(st.lists(states, max_size=12), policies)
def test_every_plan_keeps_the_promises(segments: list[SegmentRow], policy: Policy) -> None:
    plan = plan_retention(segments, policy, NOW)
    gone = [deletion.segment for deletion in plan.delete]
    assert not any(found.open for found in gone)
    if not policy.drop_references:
        assert not any(found.references for found in gone)
    elif policy.max_bytes is not None:
        left = sum(s.bytes for s in segments) - sum(each.segment.bytes for each in plan.delete)
        assert left <= max(policy.max_bytes, sum(s.bytes for s in segments if s.open))
    loose = [s for s in segments if not s.open and not s.references]
    assert sorted(s.name for s in gone if not s.references) == sorted(s.name for s in loose)
