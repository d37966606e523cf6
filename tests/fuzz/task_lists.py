"""Lists of URLs to track: every line is a request, or says why it is none."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO

from forager.errors import InvalidInput
from forager.tasks.imports import MAX_LINE, SHOWN_LENGTH, read_requests
from forager.tasks.tracking_request import BadLine, TrackRequest
from fuzz.target import Target, assert_storable

_NAMES = ("", "a.csv", "a.tsv", "a.jsonl", "a.txt")


def check(data: bytes) -> None:
    """A file of any name."""
    for name in _NAMES:
        # a whole file is rejected if it is in UTF-16, or is CSV without a header
        with suppress(InvalidInput):
            _check_lines(list(read_requests(BytesIO(data), name)), data.count(b"\n") + 1)


def _check_lines(read: list[TrackRequest | BadLine], lines: int) -> None:
    numbers = [each.line for each in read]
    assert numbers == sorted(numbers), "requests come in the order of their lines"
    assert all(1 <= number <= lines for number in numbers)
    for each in read:
        if isinstance(each, BadLine):
            assert len(each.text) <= SHOWN_LENGTH
            assert_storable(f"{each.text}{each.reason}")
        else:
            assert each.url == each.url.strip()
            assert 0 < len(each.url) <= MAX_LINE
            # escaped in JSON a NUL comes through, and is dealt with where URLs are normalized
            each.url.encode()


TARGET = Target(
    check,
    [
        b"url,priority,every,popularity\nhttps://h/a,2,6h,0.5\n\"https://h/b,c\",,,\n",
        b"https://h/a\n\nhttps://h/b;c\r\n",
        b'{"url":"https://h/a","priority":3,"every":"1d"}\n"https://h/b"\n[]\n',
        b"https://h/a\t1\t30m\n\xff\n\0\n",
        b"\xef\xbb\xbfEvery;URL\n1w;https://h/x\n",
    ],
    [b"url", b"[", b"]", b"#", b",", b";", b"\t", b'"', b"\n", b"\r", b"{", b"}", b'"url":',
     b'"priority":', b"1e400", b"NaN", b"\\ud800", b"\\u0000", b"\\n", b"\xef\xbb\xbf",
     b"\xff\xfe", b"6h", b"99999999999999d", b"\xe2\x80\xa8"],
)  # fmt: skip
