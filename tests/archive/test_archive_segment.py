"""Segment names say who wrote them and lead nowhere else."""

from __future__ import annotations

from datetime import date

import pytest

from forager.archive.segment import ArchiveRef, SegmentName, parse_segment_name, refs_of
from forager.errors import InvalidInput

DAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    "name",
    [
        SegmentName(DAY, "0195f0c2-7c6b-7e11-8b3f-3f0c9f1d2a3b", 7, 0),
        SegmentName(DAY, "worker-3", 2**62, 12345),
        SegmentName(DAY, "a.b-1-0000", 0, 1),
    ],
)
def test_a_name_is_read_back(name: SegmentName) -> None:
    assert parse_segment_name(str(name)) == name


def test_the_form_of_a_name() -> None:
    assert str(SegmentName(DAY, "job", 7, 3)) == "2026/03/01/job-7-0003.warc.zst"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../../etc/passwd",
        "2026/03/01/../../../x-1-0000.warc.zst",
        "/2026/03/01/x-1-0000.warc.zst",
        "2026/03/01/x-1-0000.warc.zst\n",
        "2026/03/01/x-1-0000.warc.zst/..",
        "2026/13/01/x-1-0000.warc.zst",
        "2026/03/01/X-1-0000.warc.zst",
        "2026/03/01/x\x00-1-0000.warc.zst",
        "2026/03/01/..-1-0000.warc.zst",
        "2026/03/01/x-1-0000.warc",
        "2026/03/01/x-1-0000.warc.gz",
        "\u0662026/03/01/x-1-0000.warc.zst",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        parse_segment_name(name)


@pytest.mark.parametrize("owner", ["", "..", "a/b", "A", "-a", "a" * 101, "a\n"])
def test_bad_owners_are_refused(owner: str) -> None:
    with pytest.raises(InvalidInput):
        SegmentName(DAY, owner, 1, 0)


def test_bad_counts_are_refused() -> None:
    with pytest.raises(InvalidInput):
        SegmentName(DAY, "job", -1, 0)


def test_references_follow_each_other() -> None:
    assert refs_of("s", 10, [b"abc", b"", b"d"]) == [
        ArchiveRef("s", 10, 3),
        ArchiveRef("s", 13, 0),
        ArchiveRef("s", 13, 1),
    ]
