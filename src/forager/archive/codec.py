"""One record, one compressed frame: what makes a record readable by offset and length alone."""

from __future__ import annotations

import threading
import zlib
from enum import StrEnum
from typing import Protocol

import zstandard

from forager.archive.errors import DamagedRecord

ZSTD_LEVEL = 3
GZIP_LEVEL = 6
GZIP_WBITS = 31
# no page may be this large; a damaged length must not ask for all of the memory
MAX_RECORD_BYTES = 1 << 30

FRAME_ERRORS = (zstandard.ZstdError, zlib.error)


class Codec(StrEnum):
    """How the records of a segment are compressed; the value is the file's suffix."""

    ZSTD = "zst"
    GZIP = "gz"


class FrameDecoder(Protocol):
    """Decompresses one frame fed in pieces, and hands back what came after it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, /) -> bytes: ...


MAGIC = {Codec.ZSTD: b"\x28\xb5\x2f\xfd", Codec.GZIP: b"\x1f\x8b"}

# a zstd context may serve only one thread at a time, and making one costs as much as a page
_contexts = threading.local()


def compress(codec: Codec, record: bytes) -> bytes:
    if codec is Codec.GZIP:
        return zlib.compress(record, GZIP_LEVEL, wbits=GZIP_WBITS)
    return _compressor().compress(record)


def decompress(codec: Codec, frame: bytes) -> bytes:
    """The record in exactly one frame; anything less, more or altered is a DamagedRecord."""
    try:
        record = _gunzip(frame) if codec is Codec.GZIP else _unzstd(frame)
    except FRAME_ERRORS as error:
        raise DamagedRecord(f"a record of the archive cannot be decompressed: {error}") from error
    return record


def frame_decoder(codec: Codec) -> FrameDecoder:
    if codec is Codec.GZIP:
        return zlib.decompressobj(GZIP_WBITS)
    return zstandard.ZstdDecompressor().decompressobj()


def _compressor() -> zstandard.ZstdCompressor:
    compressor: zstandard.ZstdCompressor | None = getattr(_contexts, "compressor", None)
    if compressor is None:
        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        _contexts.compressor = compressor
    return compressor


def _unzstd(frame: bytes) -> bytes:
    size = zstandard.frame_content_size(frame)
    if size > MAX_RECORD_BYTES:
        raise DamagedRecord(f"a record of the archive claims to be {size} bytes long")
    # a size of -1 (another program's frame) falls back to the limit; trailing bytes are an error
    limit = 0 if size >= 0 else MAX_RECORD_BYTES
    return zstandard.ZstdDecompressor().decompress(frame, limit, allow_extra_data=False)


def _gunzip(frame: bytes) -> bytes:
    decoder = zlib.decompressobj(GZIP_WBITS)
    record = decoder.decompress(frame, MAX_RECORD_BYTES)
    if not decoder.eof or decoder.unused_data:
        raise DamagedRecord("a reference into the archive does not cover exactly one record")
    return record
