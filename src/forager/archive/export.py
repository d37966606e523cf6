"""Chosen records into one WARC file for other tools."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from forager.archive.codec import Codec, compress, decompress
from forager.archive.errors import DamagedRecord, disk_errors
from forager.archive.record import InfoRecord
from forager.archive.segment import ArchiveRef, codec_of
from forager.archive.storage import Storage
from forager.archive.threads import in_thread
from forager.errors import InvalidInput, NotFound

_SUFFIXES = {".warc.zst": Codec.ZSTD, ".warc.gz": Codec.GZIP, ".warc": None}


@dataclass(slots=True)
class ExportReport:
    """How many records were copied, and which could not be, with the reason."""

    written: int = 0
    failed: list[tuple[ArchiveRef, str]] = field(default_factory=list)


async def export_warc(
    storage: Storage,
    refs: AsyncIterable[ArchiveRef],
    target: Path,
    info: Mapping[str, str] | None = None,
) -> ExportReport:
    """Copy records to `target` (.warc.zst, .warc.gz or .warc), which appears only when complete."""
    codec = _codec_for(target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with disk_errors(str(target)):
        try:
            with part.open("xb") as file:
                file.write(_packed(codec, InfoRecord(info or {}, filename=target.name).encode()))
                report = await _copy(storage, refs, file, codec)
                file.flush()
                await in_thread(os.fsync, file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return report


async def _copy(
    storage: Storage, refs: AsyncIterable[ArchiveRef], file: BinaryIO, codec: Codec | None
) -> ExportReport:
    report = ExportReport()
    async for ref in refs:
        try:
            frame = await storage.read(ref)
            # unpacked even if it could be copied as it is: a damaged record is not passed on
            record = decompress(codec_of(ref.segment), frame)
        except (DamagedRecord, NotFound) as error:
            report.failed.append((ref, error.message))
            continue
        file.write(frame if codec is codec_of(ref.segment) else _packed(codec, record))
        report.written += 1
    return report


def _packed(codec: Codec | None, record: bytes) -> bytes:
    return compress(codec, record) if codec else record


def _codec_for(target: Path) -> Codec | None:
    for suffix, codec in _SUFFIXES.items():
        if target.name.endswith(suffix):
            return codec
    raise InvalidInput(
        f"{target.name!r} does not say which kind of WARC file it is to be",
        hint="end the name in .warc.gz, .warc.zst or .warc",
    )
