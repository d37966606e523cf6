"""The writer returns only references that are safe, whatever happens around it."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import threading
from pathlib import Path

import pytest

from archive.archive_samples import body_of, no_register, packed, page, storage_of
from forager.archive.local import LocalStorage
from forager.archive.reader import SegmentScan, read_response
from forager.archive.segment import parse_segment_name
from forager.archive.warc_record import ArchiveError, Codec, SegmentExists, StorageFull, compress
from forager.archive.writer import ArchiveWriter
from forager.errors import InvalidInput
from foreign_readers import by_fastwarc


@pytest.mark.parametrize("kind", ["local", "objects"])
async def test_batches_come_back_in_their_order(tmp_path: Path, kind: str) -> None:
    storage = storage_of(kind, tmp_path)
    writer = ArchiveWriter(storage, "job", 3, no_register)
    first, second, third = (packed(number) for number in range(3))
    refs = [*await writer.write([first, second]), *await writer.write([third])]
    await writer.close()
    bodies = [(await read_response(storage, ref)).body for ref in refs]
    assert bodies == [body_of(number) for number in range(3)]
    # an object cannot grow, so there the second batch is a separate segment
    assert len({ref.segment for ref in refs}) == (1 if kind == "local" else 2)
    assert await writer.write([]) == []


async def test_other_tools_read_a_segment(tmp_path: Path) -> None:
    writer = ArchiveWriter(LocalStorage(tmp_path), "job", 3, no_register)
    refs = await writer.write([packed(number) for number in range(20)])
    await writer.close()
    data = (tmp_path / refs[0].segment).read_bytes()
    info, *pages = by_fastwarc(data)
    assert info.kind == "warcinfo"
    assert [seen.body for seen in pages] == [body_of(number) for number in range(20)]


async def test_the_row_comes_before_the_bytes(tmp_path: Path) -> None:
    rows: list[str] = []

    async def register(segment: str) -> None:
        assert not (tmp_path / segment).exists()
        rows.append(segment)

    writer = ArchiveWriter(LocalStorage(tmp_path), "job", 3, register, segment_limit=10_000)
    refs = [ref for number in range(12) for ref in await writer.write([packed(number)])]
    await writer.close()
    assert list(dict.fromkeys(ref.segment for ref in refs)) == rows
    assert [parse_segment_name(row).seq for row in rows] == [0, 1, 2]
    assert all((tmp_path / row).stat().st_size < 13_000 for row in rows)


async def test_a_row_that_cannot_be_made_means_no_bytes(tmp_path: Path) -> None:
    rows: list[str] = []

    async def register(segment: str) -> None:
        rows.append(segment)
        if len(rows) == 1:
            raise TimeoutError("committed, perhaps")

    storage = LocalStorage(tmp_path)
    writer = ArchiveWriter(storage, "job", 3, register)
    with pytest.raises(TimeoutError):
        await writer.write([packed(0)])
    assert await storage.list_segments() == []
    (ref,) = await writer.write([packed(0)])
    await writer.close()
    assert ref.segment == rows[1] != rows[0]


async def test_a_batch_that_did_not_fit_can_be_written_again(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    writer = ArchiveWriter(storage, "job", 3, no_register)
    (first,) = await writer.write([packed(0, 50_000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, hard))
    try:
        for _ in range(2):
            with pytest.raises(StorageFull):
                await writer.write([packed(1, 20_000), packed(2, 20_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    refs = [first, *await writer.write([packed(1, 20_000), packed(2, 20_000)])]
    await writer.close()
    scan = SegmentScan(storage, first.segment)
    assert [ref async for ref, record in scan if record.kind == "response"] == refs
    assert scan.tail is None


async def test_a_name_in_use_is_passed_over_by_the_next_try(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    first, second = (ArchiveWriter(storage, "job", 3, no_register) for _ in range(2))
    await first.write([packed(0)])
    with pytest.raises(SegmentExists):
        await second.write([packed(1)])
    (ref,) = await second.write([packed(1)])
    assert parse_segment_name(ref.segment).seq == 1
    await first.close()
    await second.close()


@pytest.mark.skipif(sys.platform != "linux", reason="holds up a Linux system call")
async def test_cancelling_a_write_leaves_the_segment_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread cannot be stopped: what comes next has to wait for it."""
    storage = LocalStorage(tmp_path)
    writer = ArchiveWriter(storage, "job", 3, no_register)
    await writer.write([packed(0)])
    syncing, go_on = threading.Event(), threading.Event()
    real = os.fdatasync

    def slow(fd: int) -> None:
        syncing.set()
        go_on.wait(30)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", slow)
    cancelled = asyncio.create_task(writer.write([packed(1)]))
    await asyncio.to_thread(syncing.wait, 30)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    after = asyncio.create_task(writer.write([packed(2)]))
    go_on.set()
    (ref,) = await after
    await writer.close()
    assert (await read_response(storage, ref)).body == body_of(2)
    scan = SegmentScan(storage, ref.segment)
    urls = [record.url async for _, record in scan if record.kind == "response"]
    assert urls == [page(number).url for number in range(3)]
    assert scan.tail is None


async def test_writes_from_many_tasks_do_not_mix(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    writer = ArchiveWriter(storage, "job", 3, no_register, segment_limit=20_000)
    batches = await asyncio.gather(*(writer.write([packed(n), packed(n)]) for n in range(20)))
    await writer.close()
    for number, refs in enumerate(batches):
        for ref in refs:
            assert (await read_response(storage, ref)).body == body_of(number)


async def test_frames_of_another_compression_are_refused(tmp_path: Path) -> None:
    writer = ArchiveWriter(LocalStorage(tmp_path), "job", 1, no_register)
    with pytest.raises(InvalidInput, match="zstd"):
        await writer.write([packed(0), compress(Codec.GZIP, page(1).encode())])


def test_a_bad_owner_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        ArchiveWriter(LocalStorage(tmp_path), "../x", 1, no_register)


async def test_the_archive_folder_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("not a folder")
    writer = ArchiveWriter(LocalStorage(tmp_path / "archive"), "job", 1, no_register)
    with pytest.raises(ArchiveError):
        await writer.write([packed(0)])
