"""Sitemaps: XML, gzip, text and feeds, read the same in one piece and in many."""

from __future__ import annotations

import gzip

from forager.crawl.sitemaps.reader import SitemapEntry, SitemapParser
from forager.extract.urls import normalise
from fuzz.target import Target, assert_storable

_URL = "https://docs.example.org/sitemap.xml"
_MAX_BYTES = 1_000_000
_MAX_ENTRIES = 500


def check(data: bytes) -> None:
    """The bytes of a sitemap as they arrive."""
    whole, error = _read(data, max(1, len(data)))
    pieces, said = _read(data, 7)
    assert (whole, error) == (pieces, said), "how a sitemap arrives must not matter"
    assert len(whole) <= _MAX_ENTRIES
    for entry in whole:
        assert normalise(entry.url) == entry.url
        assert all(normalise(url) == url for url in entry.alternates)
        assert entry.modified is None or entry.modified.tzinfo is not None
    assert_storable(error or "")


def _read(data: bytes, size: int) -> tuple[list[SitemapEntry], str | None]:
    parser = SitemapParser(_URL, max_bytes=_MAX_BYTES, max_entries=_MAX_ENTRIES)
    entries: list[SitemapEntry] = []
    for start in range(0, len(data), size):
        entries.extend(parser.feed(data[start : start + size]))
    entries.extend(parser.close())
    return entries, parser.error


_XML = (
    b"<?xml version='1.0' encoding='iso-8859-1'?><urlset xmlns:x='y'><url><loc>/a?b&amp;c&d</loc>"
    b"<lastmod>2024-02-30T1:2Z</lastmod><x:link rel='alternate' href='/de'/></url></urlset>"
)
TARGET = Target(
    check,
    [
        _XML,
        gzip.compress(_XML, mtime=0),
        b"<sitemapindex><sitemap><loc><![CDATA[ http://h/s.xml ]]></loc></sitemap></sitemapindex>",
        b"<rss><channel><item><guid isPermaLink='true'>http://h/g</guid>"
        b"<pubDate>Mon, 1 Jan 2024 00:00:00 +9999</pubDate></item></channel></rss>",
        b"<feed><entry><link href='/x'/><updated>2024</updated></entry></feed>",
        b"http://h/1\r\nhttp://h/2\n\nno",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><urlset>&b;</urlset>",
        "\ufeff<urlset><url><loc>http://h/ü</loc></url></urlset>".encode("utf-16-le"),
    ],
    [b"<urlset>", b"<url>", b"<loc>", b"</loc>", b"<lastmod>", b"<![CDATA[", b"]]>", b"&amp;",
     b"&#0;", b"&#xD800;", b"&lt;", b"<!ENTITY", b"<!--", b"<?xml version='1.0' encoding='",
     b"utf-16", b"utf-7", b"\x1f\x8b", b"\xff\xfe", b"<rss>", b"<item>", b"<guid>", b"+9999",
     b"0000-00-00"],
)  # fmt: skip
