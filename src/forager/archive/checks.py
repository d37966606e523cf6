"""Checks of the archive: a sample for the doctor, and every segment for `archive verify`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from forager.amounts import counted
from forager.archive.audit import AuditedSegment, SegmentProblem, audit_sample, repair
from forager.archive.options import archive_options
from forager.archive.storage import Storage
from forager.checks import Check, Finding, Level, Result, Topic, check, fail, warn
from forager.db.database import Database
from forager.settings import Settings

SAMPLE = 50
REPAIR = "Run forager archive verify --fix."
RESTORE = "Restore them from a backup, then run forager archive verify."
LOST = "Lost responses can be neither replayed nor exported."


@check("archive", Topic.WORK, LOST)
async def check_archive(database: Database, settings: Settings, sample: int = SAMPLE) -> Result:
    """Read a sample; `forager archive verify` reads all records."""
    storage = archive_options(settings).open()
    read, unreadable = await audit_sample(database, storage, sample)
    if unreadable:
        found = [f"{ref}: {problem}" for ref, problem in unreadable.items()]
        return fail(f"records of the {read} sampled that cannot be read", RESTORE, found=found)
    return f"{counted(read, 'record')} of a sample can be read"


@check("segments", Topic.ARCHIVE, LOST)
def check_segments(segments: Sequence[AuditedSegment]) -> Result:
    records = sum(segment.records for segment in segments)
    return f"{counted(len(segments), 'segment')} with {counted(records, 'record')} read"


def _check_problem(problem: SegmentProblem, segments: Sequence[AuditedSegment]) -> Result:
    found = [each for each in segments if problem in each.problems]
    if not found:
        return "none"
    return warn(
        problem.value,
        REPAIR if problem.can_be_repaired else None if problem.harmless else RESTORE,
        found=[f"{each.segment}: {each.detail}" if each.detail else each.segment for each in found],
        level=Level.WARN if problem.harmless else Level.FAIL,
    )


PROBLEM_CHECKS = [
    Check(
        f"{problem.name.lower()}_segments",
        Topic.ARCHIVE,
        "No referenced response is lost." if problem.harmless else LOST,
        partial(_check_problem, problem),
    )
    for problem in SegmentProblem
]


async def repair_all(
    database: Database, storage: Storage, segments: Sequence[AuditedSegment]
) -> Finding:
    """Repair segments, and say what was done to each."""
    done = {each.segment: await repair(database, storage, each) for each in segments}
    return Finding(
        check="repair",
        topic=Topic.ARCHIVE,
        level=Level.OK,
        message="segments repaired",
        count=len(done),
        examples=[f"{segment}: {', '.join(repairs)}" for segment, repairs in done.items()],
    )
