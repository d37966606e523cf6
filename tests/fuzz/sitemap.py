"""Sitemaps: XML, gzip, text and feeds, read the same in large pieces and in small ones."""

from __future__ import annotations

import gzip
from unittest.mock import patch

from forager.crawl.sitemaps import content
from forager.crawl.sitemaps.reader import Sitemap, SitemapEntry
from forager.extract.urls import normalize
from fuzz.target import Target, assert_storable

_URL = "https://docs.example.org/sitemap.xml"
_MAX_BYTES = 1_000_000
_MAX_ENTRIES = 500


def check(data: bytes) -> None:
    """The bytes of a sitemap as they arrive."""
    whole, error = _read(data)
    with patch.object(content, "PIECE", 7):
        assert _read(data) == (whole, error), "the size of pieces must not matter"
    assert len(whole) <= _MAX_ENTRIES
    for entry in whole:
        assert normalize(entry.url) == entry.url
    assert_storable(error or "")


def _read(data: bytes) -> tuple[list[SitemapEntry], str | None]:
    sitemap = Sitemap(_URL, data, max_bytes=_MAX_BYTES, max_entries=_MAX_ENTRIES)
    return list(sitemap), sitemap.error


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
