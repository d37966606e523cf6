"""Chosen records into one WARC file for other tools."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from forager.archive.errors import DamagedRecord
from forager.archive.record import Codec, InfoRecord, compress, unpack
from forager.archive.segment import ArchiveRef, codec_of
from forager.archive.storage import Storage
from forager.errors import InvalidInput, NotFound

_SUFFIXES = {".warc.zst": Codec.ZSTD, ".warc.gz": Codec.GZIP, ".warc": None}
# so many failures are named; of more than that, the number says enough
_NAMED_FAILURES = 100


@dataclass(slots=True)
class ExportReport:
    """How many records were copied and how many could not be, the first of those by name."""

    written: int = 0
    missed: int = 0
    failed: list[tuple[ArchiveRef, str]] = field(default_factory=list)

    def miss(self, ref: ArchiveRef, reason: str) -> None:
        self.missed += 1
        if len(self.failed) < _NAMED_FAILURES:
            self.failed.append((ref, reason))


async def write_warc(
    storage: Storage,
    refs: AsyncIterable[ArchiveRef],
    file: BinaryIO,
    codec: Codec | None,
    info: Mapping[str, str] | None = None,
    *,
    filename: str = "",
) -> ExportReport:
    """Copy records to an open file; no codec means no compression."""
    report = ExportReport()
    async for part in warc_parts(storage, refs, codec, info, report, filename=filename):
        file.write(part)
    return report


async def warc_parts(
    storage: Storage,
    refs: AsyncIterable[ArchiveRef],
    codec: Codec | None,
    info: Mapping[str, str] | None,
    report: ExportReport,
    *,
    filename: str = "",
) -> AsyncIterator[bytes]:
    """The same file, a record at a time."""
    yield _packed(codec, InfoRecord(info or {}, filename=filename).encode())
    async for ref in refs:
        try:
            frame = await storage.read(ref)
            # unpacked even if it could be copied as it is: a damaged record is not passed on
            records = unpack(codec_of(ref.segment), frame)
        except (DamagedRecord, NotFound) as error:
            report.miss(ref, error.message)
            continue
        report.written += 1
        if codec is codec_of(ref.segment):
            yield frame
        else:
            yield b"".join(_packed(codec, record) for record in records)


def _packed(codec: Codec | None, record: bytes) -> bytes:
    return compress(codec, record) if codec else record


def warc_codec(name: str) -> Codec | None:
    """How a file of this name is compressed."""
    for suffix, codec in _SUFFIXES.items():
        if name.endswith(suffix):
            return codec
    raise InvalidInput(
        f"{name!r} does not say which kind of WARC file it is to be",
        hint="End the name in .warc.gz, .warc.zst or .warc.",
    )
