"""An export is one file that other tools read, complete or absent."""

from __future__ import annotations

import resource
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from archive.archive_samples import body_of, no_register, packed
from forager.archive.local import LocalStorage, whole_file
from forager.archive.reader import ExportReport, warc_codec, warc_parts
from forager.archive.segment import ArchiveRef
from forager.archive.warc_record import StorageFull
from forager.archive.writer import ArchiveWriter
from forager.errors import InvalidInput
from foreign_readers import by_fastwarc, by_warcio


async def stream(refs: Iterable[ArchiveRef]) -> AsyncIterator[ArchiveRef]:
    for ref in refs:
        yield ref


async def archived(storage: LocalStorage, owner: str = "job") -> list[ArchiveRef]:
    writer = ArchiveWriter(storage, owner, 1, no_register)
    refs = await writer.write([packed(number) for number in range(5)])
    await writer.close()
    return refs


async def export_warc(
    storage: LocalStorage, refs: Iterable[ArchiveRef], target: Path, **info: str
) -> ExportReport:
    with whole_file(target, overwrite=True) as file:
        report, codec = ExportReport(), warc_codec(target.name)
        async for part in warc_parts(storage, stream(refs), codec, info or {}, report):
            file.write(part)
        return report


@pytest.mark.parametrize("suffix", [".warc.zst", ".warc.gz", ".warc"])
async def test_chosen_records_of_any_segment(tmp_path: Path, suffix: str) -> None:
    storage = LocalStorage(tmp_path / "archive")
    refs = await archived(storage)
    target = tmp_path / f"out{suffix}"
    report = await export_warc(storage, [refs[3], refs[1]], target, isPartOf="job")
    assert (report.written, report.failed) == (2, [])
    for read in [by_fastwarc] if suffix == ".warc.zst" else [by_fastwarc, by_warcio]:
        info, *pages = read(target.read_bytes())
        assert info.kind == "warcinfo"
        assert b"isPartOf: job\r\n" in info.body
        assert [seen.body for seen in pages] == [body_of(3), body_of(1)]


async def test_damaged_and_missing_records_are_named(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "archive")
    good, bad, *_ = await archived(storage)
    path = tmp_path / "archive" / bad.segment
    data = bytearray(path.read_bytes())
    data[bad.offset + 500] ^= 1
    path.write_bytes(data)
    gone = ArchiveRef("2020/01/01/job-1-0000.warc.zst", 0, 10)
    report = await export_warc(storage, [good, bad, gone], tmp_path / "out.warc.gz")
    assert report.written == 1
    assert [ref for ref, _ in report.failed] == [bad, gone]
    assert len(by_warcio((tmp_path / "out.warc.gz").read_bytes())) == 2


async def test_a_failed_export_leaves_the_old_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "archive")
    refs = await archived(storage)
    target = tmp_path / "out.warc"
    target.write_bytes(b"the one of yesterday")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    try:
        with pytest.raises(StorageFull):
            await export_warc(storage, refs, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_bytes() == b"the one of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "out.warc"]


async def test_the_name_must_say_the_kind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="which kind"):
        await export_warc(LocalStorage(tmp_path), [], tmp_path / "out.zip")
