"""Names of segments, and references to records inside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from secrets import token_hex
from typing import Any
from uuid import UUID

from forager.errors import InvalidInput

# lower case only: two names must not become one file where the file system folds case
_OWNER = r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?"
_JOB_OWNER = re.compile(r"job-([0-9a-f]{32})-[0-9a-f]{8}")
_COUNT = re.compile(r"[0-9]{1,15}")
_OWNER_ONLY = re.compile(_OWNER)
_NAME = re.compile(
    r"(?P<day>[0-9]{4}/[0-9]{2}/[0-9]{2})/"
    rf"(?P<owner>{_OWNER})-(?P<lease>[0-9]{{1,19}})-(?P<seq>[0-9]{{4,9}})"
    r"\.warc\.zst"
)


@dataclass(frozen=True, slots=True)
class ArchiveRef:
    """The position of one compressed record. Only bytes that are safely written have one."""

    segment: str
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length

    def __str__(self) -> str:
        return f"{self.segment}:{self.offset}:{self.length}"


@dataclass(frozen=True, slots=True)
class SegmentName:
    """Day of opening, the job or worker that writes, its lease, and a count: never used twice."""

    day: date
    owner: str
    lease: int
    seq: int

    def __post_init__(self) -> None:
        if not _OWNER_ONLY.fullmatch(self.owner):
            raise InvalidInput(f"{self.owner!r} cannot own an archive segment")
        if self.lease < 0 or not 0 <= self.seq < 10**9:
            raise InvalidInput(f"lease {self.lease} and sequence {self.seq} must be small counts")

    def __str__(self) -> str:
        return f"{self.day:%Y/%m/%d}/{self.owner}-{self.lease}-{self.seq:04d}.warc.zst"


def job_owner(job_id: UUID) -> str:
    """The owner of the segments of one call of a job's handler.

    A handler may be called again under the same lease, and segments are never reopened.
    """
    return f"job-{job_id.hex}-{token_hex(4)}"


def job_of(owner: str) -> UUID | None:
    """The job that an owner stands for, if it is one."""
    found = _JOB_OWNER.fullmatch(owner)
    return None if found is None else UUID(found[1])


def parse_segment_name(name: str) -> SegmentName:
    """Read a name back; anything but a segment's exact name (such as `../x`) is refused."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidInput(f"{name!r} is not the name of an archive segment")
    try:
        day = date.fromisoformat(match["day"].replace("/", "-"))
    except ValueError:
        raise InvalidInput(f"{name!r} names a day that does not exist") from None
    return SegmentName(day, match["owner"], int(match["lease"]), int(match["seq"]))


def parse_ref(text: str) -> ArchiveRef:
    """Read a reference back from `SEGMENT:OFFSET:LENGTH`."""
    name, *numbers = text.split(":")
    parse_segment_name(name)
    if len(numbers) != 2 or not all(map(_COUNT.fullmatch, numbers)):
        raise InvalidInput(
            f"{text!r} is not a reference into the archive",
            hint="A reference is SEGMENT:OFFSET:LENGTH.",
        )
    return ArchiveRef(name, *map(int, numbers))


def refs_of(segment: str, offset: int, frames: Sequence[bytes]) -> list[ArchiveRef]:
    """References to frames that were written one after the other from an offset."""
    lengths = [len(frame) for frame in frames]
    starts = accumulate(lengths, initial=offset)
    return [ArchiveRef(segment, *place) for place in zip(starts, lengths, strict=False)]


def ref_columns(refs: Sequence[ArchiveRef | None]) -> dict[str, list[Any]]:
    """The columns of rows that refer to these records."""
    return {
        "segment": [ref and ref.segment for ref in refs],
        "segment_offset": [None if ref is None else ref.offset for ref in refs],
        "segment_length": [None if ref is None else ref.length for ref in refs],
    }


@dataclass(frozen=True, slots=True)
class SegmentGrowth:
    """A segment's new end, and how many records one commit refers to."""

    segment: str
    end: int
    records: int
