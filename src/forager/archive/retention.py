"""Retention: which segments to delete, and why. The caller counts references and deletes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal
from uuid import UUID


class RetentionReason(StrEnum):
    """Reasons to delete a segment."""

    UNREFERENCED = "nothing refers to it"
    AGE = "older than the age limit"
    SIZE = "the archive is over its size limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow:
    """A segment's row, with what other rows say about it."""

    name: str
    job_id: UUID | None
    lease: int
    bytes: int
    records: int
    created_at: datetime
    # when the youngest page in it was written: a segment is as old as that
    written_at: datetime
    closed_at: datetime | None
    going_at: datetime | None
    # part of a merge, and still there for readers that looked before
    keep_until: datetime | None
    references: int
    # its lease may still write
    open: bool

    def is_kept(self, now: datetime) -> bool:
        """Whether a hold keeps the segment at this time."""
        return self.keep_until is not None and self.keep_until > now


NEVER_MERGED: Literal[-1] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallSegment:
    """A closed segment that could be part of a larger one."""

    name: str
    job_id: UUID | None
    worker_id: UUID | None
    bytes: int
    records: int
    created_at: datetime
    written_at: datetime
    # of a finished merge: its size as a power of the fewest, so that each merge with its
    # like lifts it out of its tier, and a few new segments do not have it written again
    tier: int = NEVER_MERGED


@dataclass(frozen=True, slots=True)
class MovableSegment:
    """A segment that can be moved to another place."""

    name: str
    bytes: int
    open: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits. Pages that rows refer to are kept over any limit unless `drop_references` is set."""

    max_age: timedelta | None = None
    max_bytes: int | None = None
    drop_references: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """One segment to delete. If rows refer to it, they lose their reference first."""

    segment: SegmentRow
    reason: RetentionReason

    @property
    def drops_references(self) -> bool:
        """Whether rows refer to records that are deleted."""
        return self.segment.references > 0


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Segments to delete, and segments past a limit that stay because rows refer to them."""

    delete: list[Deletion] = field(default_factory=list)
    kept: list[Deletion] = field(default_factory=list)


def plan_retention(segments: Iterable[SegmentRow], policy: Policy, now: datetime) -> RetentionPlan:
    """Closed segments without references go; then the oldest, as far as the policy allows."""
    segments = list(segments)
    plan = RetentionPlan()
    total = sum(segment.bytes for segment in segments)
    closed = [segment for segment in segments if not segment.open]
    for segment in sorted(closed, key=lambda s: (s.references > 0, s.written_at, s.name)):
        reason = _reason(segment, policy, now, total)
        if reason is None:
            continue
        # a kept segment counts as gone too: otherwise all younger ones would be past the limit
        total -= segment.bytes
        allowed = not segment.references or policy.drop_references
        (plan.delete if allowed else plan.kept).append(Deletion(segment, reason))
    return plan


def _reason(
    segment: SegmentRow, policy: Policy, now: datetime, total: int
) -> RetentionReason | None:
    if not segment.references:
        return RetentionReason.UNREFERENCED
    if policy.max_age is not None and now - segment.written_at > policy.max_age:
        return RetentionReason.AGE
    if policy.max_bytes is not None and total > policy.max_bytes:
        return RetentionReason.SIZE
    return None
