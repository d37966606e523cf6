"""Pages and storages for the archive's tests."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

from obstore.store import LocalStore

from forager.archive.local import LocalStorage
from forager.archive.objects import ObjectStorage
from forager.archive.storage import Storage
from forager.archive.warc_record import ResponseRecord, pack

WHEN = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
NAME = "2026/03/01/job-1-0000.warc.zst"


def page(number: int, size: int = 2000) -> ResponseRecord:
    """A page whose body can be made again from its number."""
    return ResponseRecord(
        url=f"https://docs.example.org/page/{number}?q=a%20b",
        date=WHEN,
        status=200,
        reason="OK",
        headers=[
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Encoding", "gzip"),
            ("Content-Length", "17"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
        ],
        body=body_of(number, size),
        ip="192.0.2.7",
        protocol="h2",
    )


def packed(number: int, size: int = 2000) -> bytes:
    return pack(page(number, size))


def body_of(number: int, size: int = 2000) -> bytes:
    """Bytes that hardly compress, so that sizes in the tests mean something."""
    return random.Random(number).randbytes(size)


async def no_register(segment: str) -> None:
    """For tests that are not about the segment's row."""


def storage_of(kind: str, folder: Path) -> Storage:
    if kind == "local":
        return LocalStorage(folder / "archive")
    return ObjectStorage(LocalStore(folder / "bucket", mkdir=True))
