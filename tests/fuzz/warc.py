"""The archive: damaged bytes are a damaged record, and what was written is read back."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from forager.archive.reader import parse_record, parse_response
from forager.archive.segment import parse_ref, parse_segment_name
from forager.archive.warc_record import Codec, DamagedRecord, ResponseRecord, compress, unpack
from forager.errors import InvalidInput
from fuzz.target import Target, split_line, text_of

_DATE = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def check(data: bytes) -> None:
    """The bytes of a record, of a frame, of a name; and of a response that is written."""
    _read(data)
    with suppress(DamagedRecord):
        for record in unpack(data):
            _read(record)
    assert unpack(compress(Codec.ZSTD, data)) == [data]
    for parse in (parse_segment_name, parse_ref):
        with suppress(InvalidInput):
            parse(text_of(data))
    _check_written(data)


def _read(data: bytes) -> None:
    with suppress(DamagedRecord):
        record = parse_record(data)
        assert len(record.block) < len(data)
        assert isinstance(record.is_intact, bool)
        parse_response(record)


def _check_written(data: bytes) -> None:
    line, body = split_line(data)
    text = text_of(line)
    name, _, value = text.partition(":")
    written = ResponseRecord(
        f"http://h/{text}", _DATE, 200, [(name, value), ("X", text)], body, reason=text
    )
    record = parse_record(written.encode())
    assert record.is_intact
    response = parse_response(record)
    assert (response.body, response.status, response.date) == (body, 200, _DATE)
    assert "X" in dict(response.headers)


TARGET = Target(
    check,
    [
        ResponseRecord("http://h/", _DATE, 200, [("A", "b")], b"body").encode(),
        compress(Codec.GZIP, b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n"),
        compress(Codec.ZSTD, b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n"),
        b"2026/01/02/job-1-0001.warc.zst:0:10",
        b"Transfer-Encoding: chunked\r\nX: y\nbody",
    ],
    [b"WARC/1.1\r\n", b"Content-Length: ", b"\r\n\r\n", b"WARC-Type: response\r\n",
     b"HTTP/1.1 200 OK", b"WARC-Date: 2026-01-01T00:00:00Z\r\n", b"WARC-Block-Digest: sha256:",
     b"WARC-Type: revisit\r\n", b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"WARC-Refers-To-Date: ",
     b"9999999999", b"\xd9\xa1", b".warc.gz"],
)  # fmt: skip
