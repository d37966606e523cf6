"""What a run's last look sees in the archive."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from chaos.promises import broken_refs
from forager.archive.segment import ArchiveRef
from forager.archive.storage import open_storage
from forager.archive.warc_record import ResponseRecord, pack

SEGMENT = "2026/01/02/0123-1-0000.warc.zst"


async def test_every_record_that_rows_refer_to_is_read(tmp_path: Path) -> None:
    archive = open_storage(tmp_path)
    writer = archive.open_segment(SEGMENT)
    refs = await writer.append([_page(number) for number in range(3)])
    await writer.close()
    assert await broken_refs(archive, refs) == []

    # the same length, with one changed byte: a disk that corrupts data
    content = bytearray((tmp_path / SEGMENT).read_bytes())
    content[refs[1].offset + refs[1].length // 2] ^= 0xFF
    (tmp_path / SEGMENT).write_bytes(content)
    gone = ArchiveRef(SEGMENT.replace("0000", "0001"), 0, 10)
    beyond = ArchiveRef(SEGMENT, refs[2].end, 10)
    found = await broken_refs(archive, [*refs, gone, beyond])
    assert [message.partition(": ")[0] for message in found] == [
        f"rows refer to {ref}" for ref in (refs[1], gone, beyond)
    ]


def _page(number: int) -> bytes:
    body = f"<p>page {number}</p>".encode() * 50
    url = f"http://docs.example/{number}"
    return pack(ResponseRecord(url, datetime.now(UTC), 200, [("Content-Type", "text/html")], body))
