"""Records are what independent readers of WARC take them for, whatever a server sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.archive_samples import WHEN, body_of, page
from forager.archive.reader import ArchivedResponse, parse_record, parse_response
from forager.archive.warc_record import (
    Codec,
    InfoRecord,
    Record,
    ResponseRecord,
    Truncation,
    compress,
)
from foreign_readers import by_fastwarc, by_warcio


def zst(*records: Record) -> bytes:
    return b"".join(compress(Codec.ZSTD, record.encode()) for record in records)


def gz(*records: Record) -> bytes:
    return b"".join(compress(Codec.GZIP, record.encode()) for record in records)


def read_back(record: Record) -> ArchivedResponse:
    return parse_response(parse_record(record.encode()))


@pytest.mark.parametrize("size", [0, 1, 15_000, 20_000_000])
def test_three_readers_agree_on_a_response(size: int) -> None:
    sent = page(1, size)
    (fast,) = by_fastwarc(zst(sent))
    (warcio,) = by_warcio(gz(sent))
    own = read_back(sent)
    assert fast.body == warcio.body == own.body == sent.body
    assert fast.status == warcio.status == own.status == 200
    assert fast.url == warcio.url == own.url == sent.url
    assert fast.headers == warcio.headers == list(own.headers)
    assert own.date == WHEN
    assert (own.ip, own.protocol, own.reason) == ("192.0.2.7", "h2", "OK")


def test_headers_describe_the_body_that_is_stored() -> None:
    headers = [("Transfer-Encoding", "chunked"), *page(1).headers]
    own = read_back(replace(page(1), headers=headers))
    assert own.headers == (
        ("X-Crawler-Transfer-Encoding", "chunked"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("X-Crawler-Content-Encoding", "gzip"),
        ("X-Crawler-Content-Length", "17"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Content-Length", "2000"),
    )


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("X", "a\r\n\r\n<html>", ("X", "a <html>")),
        ("X", "a\x00b", ("X", "a b")),
        ("X", "caf\u00e9 \u4e2d", ("X", "caf\u00e9 \u4e2d")),
        ("X", "not utf-8: \udce9", ("X", "not utf-8: \udce9")),
        ("X", "lone \ud800", ("X", "lone ?")),
        ("X\r\nY: z", "a", ("X__Y__z", "a")),
        ("X:", "", ("X_", "")),
    ],
)
def test_a_header_stays_one_line(name: str, value: str, stored: tuple[str, str]) -> None:
    own = read_back(replace(page(1), headers=[(name, value)]))
    assert own.headers == (stored, ("Content-Length", "2000"))


def test_a_header_without_a_name_is_left_out() -> None:
    assert read_back(replace(page(1), headers=[("", "x")])).headers == (("Content-Length", "2000"),)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://h/a b", "https://h/a%20b"),
        ("https://h/\r\nWARC-Type: warcinfo", "https://h/%0D%0AWARC-Type:%20warcinfo"),
        ("https://h/\u4e2d%2F", "https://h/%E4%B8%AD%2F"),
        ("https://h/[x]|'\"<>^`{}?a=b&c;d#e", "https://h/[x]|'\"<>^`{}?a=b&c;d#e"),
        ("", ""),
    ],
)
def test_odd_urls_are_kept_as_uris(url: str, stored: str) -> None:
    assert read_back(replace(page(1), url=url)).url == stored


any_text = st.text(st.characters(categories=None, codec=None), max_size=40)


@given(
    url=any_text.map("https://h/".__add__),
    reason=any_text,
    headers=st.lists(st.tuples(any_text, any_text), max_size=6),
    body=st.binary(max_size=200),
    status=st.integers(0, 999),
)
@settings(max_examples=150, deadline=None)
def test_no_input_breaks_out_of_its_record(
    url: str, reason: str, headers: list[tuple[str, str]], body: bytes, status: int
) -> None:
    hostile = ResponseRecord(url, WHEN, status, headers, body, reason=reason, ip=reason)
    named = sum(1 for name, _ in headers if name)
    own = read_back(hostile)
    assert (own.status, own.body, len(own.headers)) == (status, body, named + 1)
    assert [found.kind for found in by_fastwarc(zst(hostile, page(1)))] == ["response"] * 2
    found, after = by_warcio(gz(hostile, page(1)))
    assert found.body == body
    assert after.body == body_of(1)


def test_info_and_truncation() -> None:
    info = InfoRecord({"http-header-user-agent": "x\r\ny"}, filename="a.warc.zst")
    cut = replace(page(1), truncated=Truncation.LENGTH)
    kinds = [found.kind for found in by_fastwarc(zst(info, cut))]
    assert kinds == [found.kind for found in by_warcio(gz(info, cut))]
    assert kinds == ["warcinfo", "response"]
    assert b"http-header-user-agent: x y\r\n" in parse_record(info.encode()).block
    assert read_back(cut).truncated == "length"


def test_dates_are_utc() -> None:
    local = datetime.fromisoformat("2026-03-01T14:30:15.123456+02:00")
    record = parse_record(replace(page(1), date=local).encode())
    assert record.fields["warc-date"] == "2026-03-01T12:30:15.123456Z"
