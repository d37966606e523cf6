"""Encodings: any bytes become text that can be stored, and the two ways to it agree."""

from __future__ import annotations

from forager.extract.decode import charset_parameter, decode, utf8_of
from forager.extract.kinds import kind_of
from fuzz.target import Target, assert_storable, split_line

_URL = "https://docs.example.org/a"


def check(data: bytes) -> None:
    """A Content-Type on the first line, a body after it."""
    first, body = split_line(data)
    for content_type in (None, first.decode("latin-1")):
        charset_parameter(content_type or "")
        kind_of(body, content_type, _URL)
        decoded = decode(body, content_type)
        assert_storable(decoded.text)
        # no encoding of the web makes more than two characters of one byte
        assert len(decoded.text) <= 2 * len(body) + 1
        as_bytes = utf8_of(body, content_type)
        assert as_bytes.decode("utf-8", "replace") == decoded.text, "both readings must agree"


TARGET = Target(
    check,
    [
        b"text/html; charset=shift_jis\n\x82\xa0\x82\xa2",
        b"text/html\n<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2",
        b"text/html\n<meta http-equiv=content-type content='text/html; charset=big5'>\xa4\xa4",
        b"\n\xff\xfea\0b\0",
        b"\n<?xml version='1.0' encoding='euc-kr'?>\xb0\xa1",
        b"text/plain; charset=iso-2022-jp\n\x1b$B$\"\x1b(B",
        b"\n\xc3\xa9\xe2\x82",
    ],
    [b"charset=", b"utf-8", b"utf-16", b"utf-7", b"gb18030", b"iso-2022-jp", b"x-user-defined",
     b"big5", b"euc-jp", b"replacement", b"\x1b$B", b"<meta charset=", b"<!--", b"-->",
     b"\xef\xbb\xbf", b"\xfe\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"],
)  # fmt: skip
