from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.crawl.sitemaps import content
from forager.crawl.sitemaps.reader import Sitemap, SitemapEntry

BASE = "https://shop.example/sitemap.xml"


def read(
    body: bytes, max_bytes: int = 10_000_000, max_entries: int = 1000
) -> tuple[list[SitemapEntry], str | None]:
    sitemap = Sitemap(BASE, body, max_bytes=max_bytes, max_entries=max_entries)
    return list(sitemap), sitemap.error


def urls(body: bytes) -> list[str]:
    entries, error = read(body)
    assert error is None
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
    assert urls(URLSET) == ["/a?x=1&y=2", "/b?x=1&y=2", "/caf%C3%A9"]
    assert not any(entry.is_sitemap for entry in read(URLSET)[0])


def test_an_index() -> None:
    entries, error = read(
        b"<sm:sitemapindex xmlns:sm='x'><sm:sitemap><sm:loc>/1.xml.gz</sm:loc>"
        b"<sm:lastmod>2024</sm:lastmod></sm:sitemap></sm:sitemapindex>"
    )
    assert entries == [SitemapEntry(entries[0].url, is_sitemap=True)]
    assert entries[0].url == "https://shop.example/1.xml.gz"
    assert error is None


def test_rss() -> None:
    feed = (
        b"<rss version='2.0'><channel><link>https://shop.example/</link>"
        b"<item><guid>https://shop.example/?p=1</guid><link>https://shop.example/1</link>"
        b"<pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate></item>"
        b"<item><guid>https://shop.example/2</guid><atom:link href='/self'/></item>"
        b"<item><guid isPermaLink='false'>https://shop.example/3</guid></item>"
        b"<item><guid>4</guid></item></channel></rss>"
    )
    assert urls(feed) == ["/1", "/2"]


def test_atom() -> None:
    feed = (
        b"<feed xmlns='http://www.w3.org/2005/Atom'><link href='/feed' rel='self'/><entry>"
        b"<link rel='edit' href='/edit'/><link href='/1'/><updated>2024-05-06</updated>"
        b"</entry></feed>"
    )
    assert urls(feed) == ["/1"]


def test_plain_text() -> None:
    text = b"\xef\xbb\xbfhttps://shop.example/1\r\n\r\n  https://shop.example/2 \nnonsense\n"
    assert urls(text + b"https://shop.example/3") == ["/1", "/2", "/3"]


def test_an_endless_line_is_skipped_and_not_kept() -> None:
    endless = b"https://shop.example/" + b"x" * 200_000
    assert urls(endless + b"\nhttps://shop.example/2") == ["/2"]


@pytest.mark.parametrize("trailer", [b"", b"\0" * 100, b"garbage"])
def test_gzip_in_several_members(trailer: bytes) -> None:
    half = len(URLSET) // 2
    packed = gzip.compress(URLSET[:half]) + gzip.compress(URLSET[half:]) + trailer
    assert len(urls(packed)) == 3


def test_gzip_that_ends_early_gives_what_it_has() -> None:
    lines = b"".join(b"https://shop.example/%d\n" % n for n in range(5000))
    entries, error = read(gzip.compress(lines)[:-2000], max_entries=9000)
    assert 0 < len(entries) < 5000
    assert error == "the gzip data ends early"


def test_gzip_that_is_damaged() -> None:
    entries, error = read(b"\x1f\x8b\x08 not really gzip, is it?")
    assert entries == []
    assert error is not None
    assert error.startswith("the gzip data is damaged")


def test_a_gzip_bomb_is_refused_by_ratio_and_by_size() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 30_000_000)
    assert read(bomb, max_bytes=10**9)[1] == "it decompresses to more than 500 times its size"
    assert read(bomb, max_bytes=1000)[1] == "it is larger than 1,000 bytes"
    assert read(b" " * 2000, max_bytes=1000)[1] == "it is larger than 1,000 bytes"


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
    entries, error = read(
        b"<urlset>\n<url><loc>/a</loc></url>\n<url><loc>/b</loc></urlset>\n<url><loc>/c</loc></url>"
    )
    assert [entry.url for entry in entries] == ["https://shop.example/a"]
    assert error == "line 3: broken XML (mismatched tag)"


def test_xml_that_ends_early() -> None:
    entries, error = read(URLSET[:-12])
    assert len(entries) == 3
    assert error is not None
    assert "broken XML" in error


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
    entries, error = read(text.encode())
    assert entries == []
    assert error == "it declares entities or attributes, which is refused"


def test_an_undeclared_entity_is_text() -> None:
    text = b'<!DOCTYPE urlset SYSTEM "x.dtd"><urlset><url><loc>/a?b&copy;</loc></url></urlset>'
    assert urls(text) == ["/a?b&copy;"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "there is no URL in it"),
        (b"<!DOCTYPE html><html><body/></html>", "it is not a sitemap: it begins with <html>"),
        (b"<!doctype html><html><body/></html>", "line 1: broken XML (syntax error)"),
        (b"{}", "there is no URL in it"),
        (b"<urlset>" + b"<a>" * 100, "its elements are nested deeper than 64"),
        (b"<urlset><!--" + b"x" * 2_000_000, "a tag or comment is longer than 1,048,576 bytes"),
    ],
)
def test_what_is_no_sitemap(body: bytes, error: str) -> None:
    assert read(body) == ([], error)


def test_an_empty_sitemap_is_no_error() -> None:
    assert urls(b"<urlset/>") == []


def test_too_many_entries_are_cut_and_reported() -> None:
    lines = b"".join(b"https://shop.example/%d\n" % n for n in range(20))
    entries, error = read(lines, max_entries=10)
    assert len(entries) == 10
    assert error == "it has more than 10 entries"


DOCUMENTS = [
    URLSET,
    gzip.compress(URLSET),
    URLSET.decode().encode("utf-16"),
    b"https://shop.example/1\r\nhttps://shop.example/2\n",
    b"<urlset><url><loc>/a?b&c&amp;d&#38;e</loc></url><url><loc>/b</loc></broken>",
]


@given(st.sampled_from(DOCUMENTS), st.integers(1, 1500))
def test_the_size_of_pieces_makes_no_difference(body: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "PIECE", size)
        pieces = read(body)
    assert pieces == read(body)


@given(st.binary(max_size=1000), st.sampled_from([b"", b"<urlset>", b"\x1f\x8b"]))
def test_no_bytes_raise(body: bytes, start: bytes) -> None:
    read(start + body)


MEASURE = """
import resource, sys
from pathlib import Path
from forager.crawl.sitemaps.reader import Sitemap

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

small, large = (Path(name).read_bytes() for name in sys.argv[1:])
entries = sum(1 for _ in Sitemap("https://shop.example/sitemap.xml", small))
warm, read = peak(), Sitemap("https://shop.example/sitemap.xml", large)
entries += sum(1 for _ in read)
assert read.error is None, read.error
print(entries, len(large), peak() - warm)
"""


def long_sitemap(path: Path, pages: int) -> Path:
    filler = b"<news:title>" + b"word " * 250 + b"</news:title>"
    urls = b"".join(b"<url><loc>/page/%d</loc>%s</url>" % (n, filler) for n in range(pages))
    path.write_bytes(b"<urlset>%s</urlset>" % urls)
    return path


def test_fifty_megabytes_cost_next_to_no_memory(tmp_path: Path) -> None:
    files = [long_sitemap(tmp_path / f"{pages}.xml", pages) for pages in (40, 40_000)]
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *files],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    entries, fed, kilobytes = map(int, run.stdout.split())
    assert entries == 40_040
    assert fed > 50_000_000
    assert kilobytes < 16_000
