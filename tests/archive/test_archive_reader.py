"""Complete records are readable whatever follows them, and damage is never taken for a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from archive.archive_samples import body_of, no_register, packed, page
from forager.archive.local import LocalStorage
from forager.archive.reader import SegmentScan, read_record, read_response
from forager.archive.segment import ArchiveRef
from forager.archive.warc_record import Codec, DamagedRecord, InfoRecord, compress, pack
from forager.archive.writer import ArchiveWriter


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


async def written(storage: LocalStorage, pages: int = 3) -> list[ArchiveRef]:
    writer = ArchiveWriter(storage, "job", 1, no_register)
    refs = await writer.write([packed(number) for number in range(pages)])
    await writer.close()
    return refs


async def scanned(storage: LocalStorage, segment: str) -> tuple[list[ArchiveRef], SegmentScan]:
    scan = SegmentScan(storage, segment)
    return [ref async for ref, record in scan if record.kind == "response"], scan


async def test_a_scan_finds_the_references(storage: LocalStorage) -> None:
    refs = await written(storage, pages=100)
    found, scan = await scanned(storage, refs[0].segment)
    assert found == refs
    assert scan.tail is None


async def test_a_torn_tail_is_reported_and_hides_nothing(
    storage: LocalStorage, tmp_path: Path
) -> None:
    refs = await written(storage)
    last, path = refs[-1], tmp_path / refs[0].segment
    data = path.read_bytes()
    for cut in [*range(1, 40), *range(40, last.length, 97), last.length - 1]:
        path.write_bytes(data[: last.offset + cut])
        found, scan = await scanned(storage, last.segment)
        assert found == refs[:-1]
        assert scan.tail
        assert (scan.tail.offset, scan.tail.length) == (last.offset, cut)
        with pytest.raises(DamagedRecord):
            await read_response(storage, last)


async def test_rubbish_behind_the_records_is_a_tail(storage: LocalStorage, tmp_path: Path) -> None:
    refs = await written(storage)
    with (tmp_path / refs[0].segment).open("ab") as file:
        file.write(b"\0" * 5000)
    found, scan = await scanned(storage, refs[0].segment)
    assert found == refs
    assert scan.tail
    assert scan.tail.offset == refs[-1].end


async def test_every_flipped_bit_is_noticed(storage: LocalStorage, tmp_path: Path) -> None:
    refs = await written(storage)
    middle, path = refs[1], tmp_path / refs[0].segment
    data = path.read_bytes()
    for position in range(middle.offset, middle.end, 29):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(DamagedRecord):
            await read_response(storage, middle)
        assert (await read_response(storage, refs[2])).body == body_of(2)


async def test_a_reference_must_cover_one_record(storage: LocalStorage) -> None:
    refs = await written(storage)
    both = ArchiveRef(refs[0].segment, refs[0].offset, refs[0].length + refs[1].length)
    for wrong in (both, ArchiveRef(both.segment, refs[0].offset + 1, refs[0].length)):
        with pytest.raises(DamagedRecord):
            await read_response(storage, wrong)


async def test_a_changed_body_in_a_sound_frame_is_damage(storage: LocalStorage) -> None:
    raw = page(1).encode()
    forged = compress(Codec.ZSTD, raw[:-100] + bytes(96) + b"\r\n\r\n")
    segment = storage.open_segment("2026/03/01/job-1-0000.warc.zst")
    (ref,) = await segment.append([forged])
    await segment.close()
    with pytest.raises(DamagedRecord, match="is damaged"):
        await read_response(storage, ref)
    scan = SegmentScan(storage, ref.segment)
    assert [(found, record.is_intact) async for found, record in scan] == [(ref, False)]
    assert scan.tail is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        b"WARC/1.1\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 5\r\n\r\nabc\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: -1\r\n\r\n\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 3\r\n\r\nabcdefg",
        b"WARC/1.1\r\nContent-Length: 3\r\nWARC-Type: response\r\n\r\nabc\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 8\r\nWARC-Type: response\r\n\r\nHTTP 200\r\n\r\n",
    ],
)
async def test_what_is_no_response_is_damage(storage: LocalStorage, raw: bytes) -> None:
    segment = storage.open_segment("2026/03/01/job-1-0000.warc.zst")
    (ref,) = await segment.append([compress(Codec.ZSTD, raw)])
    await segment.close()
    with pytest.raises(DamagedRecord):
        await read_response(storage, ref)


async def test_a_frame_that_claims_too_much_costs_nothing(storage: LocalStorage) -> None:
    huge = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"
    segment = storage.open_segment("2026/03/01/job-1-0000.warc.zst")
    (ref,) = await segment.append([huge])
    await segment.close()
    with pytest.raises(DamagedRecord, match="claims to be"):
        await read_record(storage, ref)


async def test_an_info_record_is_no_response(storage: LocalStorage) -> None:
    writer = ArchiveWriter(storage, "job", 1, no_register)
    (ref,) = await writer.write([pack(InfoRecord({"via": "x"}))])
    await writer.close()
    assert (await read_record(storage, ref)).block.endswith(b"via: x\r\n")
    with pytest.raises(DamagedRecord, match="warcinfo record"):
        await read_response(storage, ref)
