from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.crawl.sitemaps.formats import SitemapKind
from forager.crawl.sitemaps.reader import SitemapEntry, SitemapParser, parse_date

BASE = "https://shop.example/sitemap.xml"


def read(
    *chunks: bytes, max_bytes: int = 10_000_000, max_entries: int = 1000
) -> tuple[list[SitemapEntry], SitemapParser]:
    parser = SitemapParser(BASE, max_bytes=max_bytes, max_entries=max_entries)
    entries = [entry for chunk in chunks for entry in parser.feed(chunk)]
    return [*entries, *parser.close()], parser


def urls(*chunks: bytes) -> list[str]:
    entries, parser = read(*chunks)
    assert parser.error is None
    return [entry.url.removeprefix("https://shop.example") for entry in entries]


URLSET = b"""<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url>
    <loc> https://shop.example/a?x=1&amp;y=2 </loc>
    <lastmod>2024-05-06T07:08:09+02:00</lastmod>
    <image:image><image:loc>https://shop.example/a.png</image:loc></image:image>
    <xhtml:link rel="alternate" hreflang="de" href="/de/a"/>
    <xhtml:link rel="stylesheet" href="/x.css"/>
  </url>
  <url><priority>1</priority><loc><![CDATA[https://shop.example/b?x=1&y=2]]></loc></url>
  <url><loc>/caf\xc3\xa9</loc><lastmod>yesterday</lastmod></url>
  <url><loc></loc></url>
  <url><loc>ftp://shop.example/c</loc></url>
</urlset>
"""


def test_a_urlset() -> None:
    entries, parser = read(URLSET)
    a, b, cafe = entries
    assert a.url == "https://shop.example/a?x=1&y=2"
    assert a.modified == datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2)))
    assert a.alternates == ("https://shop.example/de/a",)
    assert not a.is_sitemap
    assert b.url == "https://shop.example/b?x=1&y=2"
    assert (cafe.url, cafe.modified) == ("https://shop.example/caf%C3%A9", None)
    assert (parser.error, parser.kind) == (None, SitemapKind.URLSET)
    assert (parser.entries, parser.skipped) == (3, 2)


def test_an_index() -> None:
    entries, parser = read(
        b"<sm:sitemapindex xmlns:sm='x'><sm:sitemap><sm:loc>/1.xml.gz</sm:loc>"
        b"<sm:lastmod>2024</sm:lastmod></sm:sitemap></sm:sitemapindex>"
    )
    assert entries == [
        SitemapEntry(entries[0].url, is_sitemap=True, modified=datetime(2024, 1, 1, tzinfo=UTC))
    ]
    assert entries[0].url == "https://shop.example/1.xml.gz"
    assert parser.kind is SitemapKind.INDEX


def test_rss() -> None:
    entries, parser = read(
        b"<rss version='2.0'><channel><link>https://shop.example/</link>"
        b"<item><guid>https://shop.example/?p=1</guid><link>https://shop.example/1</link>"
        b"<pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate></item>"
        b"<item><guid>https://shop.example/2</guid><atom:link href='/self'/></item>"
        b"<item><guid isPermaLink='false'>https://shop.example/3</guid></item>"
        b"<item><guid>4</guid></item></channel></rss>"
    )
    assert [entry.url for entry in entries] == ["https://shop.example/1", "https://shop.example/2"]
    assert entries[0].modified == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert (parser.kind, parser.skipped) == (SitemapKind.RSS, 2)


def test_atom() -> None:
    feed = (
        b"<feed xmlns='http://www.w3.org/2005/Atom'><link href='/feed' rel='self'/><entry>"
        b"<link rel='edit' href='/edit'/><link href='/1'/><updated>2024-05-06</updated>"
        b"</entry></feed>"
    )
    assert urls(feed) == ["/1"]


def test_plain_text() -> None:
    text = b"\xef\xbb\xbfhttps://shop.example/1\r\n\r\n  https://shop.example/2 \nnonsense\n"
    entries, parser = read(text + b"https://shop.example/3")
    assert [entry.url[-1] for entry in entries] == ["1", "2", "3"]
    assert (parser.kind, parser.skipped, parser.error) == (SitemapKind.TEXT, 1, None)


def test_an_endless_line_is_skipped_and_not_kept() -> None:
    chunks = [b"https://shop.example/", *[b"x" * 10_000] * 20, b"\nhttps://shop.example/2"]
    assert urls(*chunks) == ["/2"]


@pytest.mark.parametrize("trailer", [b"", b"\0" * 100, b"garbage"])
def test_gzip_in_several_members(trailer: bytes) -> None:
    half = len(URLSET) // 2
    packed = gzip.compress(URLSET[:half]) + gzip.compress(URLSET[half:]) + trailer
    assert len(urls(packed)) == 3
    assert len(urls(*(packed[n : n + 1] for n in range(len(packed))))) == 3


def test_gzip_that_ends_early_gives_what_it_has() -> None:
    lines = b"".join(b"https://shop.example/%d\n" % n for n in range(5000))
    entries, parser = read(gzip.compress(lines)[:-2000], max_entries=9000)
    assert 0 < len(entries) < 5000
    assert parser.error == "the gzip data ends early"


def test_gzip_that_is_damaged() -> None:
    entries, parser = read(b"\x1f\x8b\x08 not really gzip, is it?")
    assert entries == []
    assert parser.error is not None
    assert parser.error.startswith("the gzip data is damaged")


def test_a_gzip_bomb_is_refused_by_ratio_and_by_size() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 30_000_000)
    assert read(bomb, max_bytes=10**9)[1].error == "it decompresses to more than 500 times its size"
    assert read(bomb, max_bytes=1000)[1].error == "it is larger than 1,000 bytes"
    assert read(b" " * 2000, max_bytes=1000)[1].error == "it is larger than 1,000 bytes"


@pytest.mark.parametrize(
    "encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-8-sig", "shift_jis", "gb18030"]
)
def test_encodings(encoding: str) -> None:
    word = "日本" if encoding in ("shift_jis", "gb18030", "utf-16") else "café"
    start = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    text = f"{start}<urlset><url><loc>/{word}</loc></url></urlset>"
    entries, _ = read(text.encode(encoding))
    assert [entry.url for entry in entries] == [read(f"{BASE}/../{word}".encode())[0][0].url]


@pytest.mark.parametrize("declared", ["utf-16", "rot13", "no-such-thing", "unicode_escape"])
def test_a_wrong_declaration_is_not_believed(declared: str) -> None:
    text = f"<?xml version='1.0' encoding='{declared}'?><urlset><url><loc>/a</loc></url></urlset>"
    assert urls(text.encode()) == ["/a"]


def test_bytes_that_are_no_text_spoil_one_address_only() -> None:
    text = b"<urlset><url><loc>/\xff\x0b</loc></url><url><loc>/b</loc></url></urlset>"
    assert urls(text) == ["/%EF%BF%BD", "/b"]


@pytest.mark.parametrize("stray", [b"/a?x=1&y=2", b"/a?x=1&amp;amp;y=2", b"/a?x=1&#38;y=2"])
def test_ampersands_that_someone_forgot_or_escaped_twice(stray: bytes) -> None:
    assert urls(b"<urlset><url><loc>%s</loc></url></urlset>" % stray) == ["/a?x=1&y=2"]


def test_broken_xml_gives_what_came_before_and_says_where() -> None:
    entries, parser = read(
        b"<urlset>\n<url><loc>/a</loc></url>\n<url><loc>/b</loc></urlset>\n<url><loc>/c</loc></url>"
    )
    assert [entry.url for entry in entries] == ["https://shop.example/a"]
    assert parser.error == "line 3: broken XML (mismatched tag)"
    assert list(parser.feed(URLSET)) == []


def test_xml_that_ends_early() -> None:
    entries, parser = read(URLSET[:-12])
    assert len(entries) == 3
    assert parser.error is not None
    assert "broken XML" in parser.error


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;">',
        '<!ENTITY file SYSTEM "file:///etc/passwd">',
        '<!ENTITY % remote SYSTEM "http://192.0.2.1/x.dtd"> %remote;',
        '<!ATTLIST url long CDATA "xxxxxxxxxxxxxxxxxxxxxxxx">',
    ],
)
def test_declarations_are_refused(declaration: str) -> None:
    text = f"<!DOCTYPE urlset [{declaration}]><urlset><url><loc>/&lol2;&file;</loc></url></urlset>"
    entries, parser = read(text.encode())
    assert entries == []
    assert parser.error == "it declares entities or attributes, which is refused"


def test_an_entity_nobody_declared_is_text() -> None:
    text = b'<!DOCTYPE urlset SYSTEM "x.dtd"><urlset><url><loc>/a?b&copy;</loc></url></urlset>'
    assert urls(text) == ["/a?b&copy;"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "there is no URL in it"),
        (b"<!DOCTYPE html><html><body/></html>", "it is no sitemap: it begins with <html>"),
        (b"<!doctype html><html><body/></html>", "line 1: broken XML (syntax error)"),
        (b"{}", "there is no URL in it"),
        (b"<urlset>" + b"<a>" * 100, "its elements are nested deeper than 64"),
        (b"<urlset><!--" + b"x" * 2_000_000, "a tag or comment is longer than 1,048,576 bytes"),
    ],
)
def test_what_is_no_sitemap(body: bytes, error: str) -> None:
    entries, parser = read(body)
    assert entries == []
    assert parser.error == error


def test_an_empty_sitemap_is_no_error() -> None:
    assert urls(b"<urlset/>") == []


def test_too_many_entries_are_cut_and_said() -> None:
    lines = b"".join(b"https://shop.example/%d\n" % n for n in range(20))
    entries, parser = read(lines, max_entries=10)
    assert len(entries) == parser.entries == 10
    assert parser.error == "it has more than 10 entries"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-5", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        ("2024-05-06T07:08Z", datetime(2024, 5, 6, 7, 8, tzinfo=UTC)),
        (" 2024-05-06 07:08:09 ", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2024-05-06T07:08:09.123456789Z", datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)),
        ("Mon, 06 May 2024 07:08:09 +0000", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("0000-00-00", None),
        ("2024-13", None),
        ("today", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("", None),
    ],
)
def test_dates(text: str, expected: datetime | None) -> None:
    assert parse_date(text) == expected


@given(st.text(max_size=80))
def test_no_date_raises(text: str) -> None:
    parse_date(text)


DOCUMENTS = [
    URLSET,
    gzip.compress(URLSET),
    URLSET.decode().encode("utf-16"),
    b"https://shop.example/1\r\nhttps://shop.example/2\n",
    b"<urlset><url><loc>/a?b&c&amp;d&#38;e</loc></url><url><loc>/b</loc></broken>",
]


@given(st.sampled_from(DOCUMENTS), st.lists(st.integers(0, 1500), max_size=12))
def test_how_it_is_cut_into_chunks_makes_no_difference(body: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[begin:end] for begin, end in pairwise(edges)]
    entries, parser = read(*chunks)
    expected, whole = read(body)
    assert entries == expected
    assert (parser.error, parser.skipped) == (whole.error, whole.skipped)


@given(
    st.lists(st.binary(max_size=200), max_size=5), st.sampled_from([b"", b"<urlset>", b"\x1f\x8b"])
)
def test_no_bytes_raise(chunks: list[bytes], start: bytes) -> None:
    read(start, *chunks)


MEASURE = """
import resource
from forager.crawl.sitemaps.reader import SitemapParser

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

filler = b"<news:title>" + b"word " * 250 + b"</news:title>"
parser = SitemapParser("https://shop.example/sitemap.xml")
before, size = peak(), 0
for chunk in [b"<urlset>", *(b"<url><loc>/%d</loc>%s</url>" % (n, filler) for n in range(40))]:
    size += sum(1 for _ in parser.feed(chunk))
warm, fed = peak(), 0
for n in range(40_000):
    chunk = b"<url><loc>/page/%d</loc>%s</url>" % (n, filler)
    fed += len(chunk)
    size += sum(1 for _ in parser.feed(chunk))
size += sum(1 for _ in parser.feed(b"</urlset>"))
size += sum(1 for _ in parser.close())
assert parser.error is None, parser.error
print(size, fed, peak() - warm)
"""


def test_fifty_megabytes_cost_next_to_no_memory() -> None:
    run = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, timeout=60
    )
    entries, fed, kilobytes = map(int, run.stdout.split())
    assert entries == 40_040
    assert fed > 50_000_000
    assert kilobytes < 16_000
