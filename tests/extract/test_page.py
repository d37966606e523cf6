from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.errors import InvalidInput
from forager.extract.directives import Directives
from forager.extract.kinds import ContentKind
from forager.extract.links import MAX_LINKS
from forager.extract.metadata import MAX_TITLE_LENGTH, Refresh
from forager.extract.page import PageFacts, extract_page
from forager.extract.urls import NormalizedUrl

URL = "https://docs.example.org/guide/intro.html"
HTML = "text/html; charset=utf-8"


def read(html: str, *headers: tuple[str, str], content_type: str | None = HTML) -> PageFacts:
    return extract_page(html.encode(), URL, content_type, headers)


def links(facts: PageFacts) -> list[str]:
    return [link.url for link in facts.outlinks.links]


def test_a_whole_page() -> None:
    facts = read(
        """<!doctype html><html lang="en-GB"><head><title> The
        guide </title><link rel=canonical href="/guide/"><meta name=robots content="nofollow">
        </head><body><h1>Guide</h1><p>Read <a href="next.html#top">on</a>.</p></body></html>"""
    )
    assert facts.kind is ContentKind.HTML
    assert facts.encoding == "utf-8"
    assert facts.title == "The guide"
    assert facts.language == "en-gb"
    assert facts.base_url == URL
    assert facts.canonical == "https://docs.example.org/guide/"
    assert facts.directives == Directives(nofollow=True)
    assert links(facts) == ["https://docs.example.org/guide/next.html"]
    assert facts.text_length == len("GuideReadon.")
    assert facts.content_hash is not None
    assert not facts.truncated
    assert not facts.needs_javascript
    assert facts.soft_error is None


def test_links_in_order_each_once() -> None:
    facts = read(
        """<link rel=next href=/2><link rel=alternate hreflang=de href=/de>
        <link rel=stylesheet href=/style.css><link rel="alternate" type=rss href=/feed>
        <a href=/b>1</a><area href=/c><a href=/b#x>2</a><a href="">self</a><a href=#top>self</a>
        <iframe src=/frame></iframe><a>none</a><a href>self</a>
        <a href="mailto:a@b.c">m</a><a href="javascript:void(0)">j</a><a href="TEL:1">t</a>"""
    )
    paths = [url.removeprefix("https://docs.example.org") for url in links(facts)]
    assert paths == ["/2", "/de", "/b", "/c", "/frame"]


def test_framesets_have_links_too() -> None:
    facts = read("<html><frameset><frame src=/a><frame src=/b></frameset></html>")
    assert links(facts) == ["https://docs.example.org/a", "https://docs.example.org/b"]


def test_a_fragment_is_dropped_but_not_the_blank_before_it() -> None:
    assert links(read("<a href='a #x'></a><a href=' b#x'></a>")) == [
        "https://docs.example.org/guide/a%20",
        "https://docs.example.org/guide/b",
    ]


def test_nofollow_needs_every_link_to_say_so() -> None:
    facts = read(
        "<a rel=nofollow href=/a></a><a rel='x UGC' href=/b></a><a rel=sponsored href=/c></a>"
        "<a href=/c#2></a><a rel=nofollower href=/d></a>"
    )
    said = {link.url.rpartition("/")[2]: link.nofollow for link in facts.outlinks.links}
    assert said == {"a": True, "b": True, "c": False, "d": False}


def test_links_that_cannot_be_urls_are_left_out() -> None:
    facts = read(f"<a href='http://a b/'></a><a href='/{'x' * 5000}'></a><a href=/ok></a>")
    assert links(facts) == ["https://docs.example.org/ok"]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/other/", "https://docs.example.org/other/a"),
        ("https://cdn.example.org/x/y", "https://cdn.example.org/x/a"),
        ("data:text/plain,x", "https://docs.example.org/guide/a"),
        ("http://[", "https://docs.example.org/guide/a"),
    ],
)
def test_base(base: str, expected: str) -> None:
    # the element counts for links before it as well
    facts = read(f"<a href=a></a><base href='{base}'><base href='/second/'>")
    assert links(facts) == [expected]


def test_canonicals_that_contradict_each_other_count_for_nothing() -> None:
    assert read("<link rel=canonical href=/a><link rel=canonical href=/b>").canonical is None
    assert read("<link rel=canonical href=/a><link rel=canonical href=/a#x>").canonical is not None
    assert read("<link rel=canonical href='javascript:1'>").canonical is None


def test_canonical_in_a_header() -> None:
    header = ("Link", '</style.css>; rel=preload, </guide>; rel="canonical"')
    assert read("<p>x", header).canonical == "https://docs.example.org/guide"
    pdf = extract_page(b"%PDF-1.7", URL, "application/pdf", [header, ("X-Robots-Tag", "none")])
    assert pdf.kind is ContentKind.OTHER
    assert pdf.canonical == "https://docs.example.org/guide"
    assert pdf.directives == Directives(noindex=True, nofollow=True)


def test_directives_of_header_and_page_add_up() -> None:
    facts = read("<meta name=forager content=nofollow>", ("x-robots-tag", "forager: noindex"))
    assert facts.directives == Directives(noindex=True, nofollow=True)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=/new", ("/new", 0)),
        ("5;URL='/new'", ("/new", 5)),
        ("3, /new", ("/new", 3)),
        ("0.5; url = /new", ("/new", 0)),
        ("30", None),
        ("30; url=", None),
        ("5; url=#top", None),
        ("0; url=javascript:x()", None),
        ("soon", None),
        ("; url=/new", None),
    ],
)
def test_refresh(content: str, expected: tuple[str, float] | None) -> None:
    facts = read(f'<meta http-equiv=Refresh content="{content}">')
    path_and_delay = expected and Refresh(
        NormalizedUrl(f"https://docs.example.org{expected[0]}"), expected[1]
    )
    assert facts.refresh == path_and_delay


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<html lang=de>", "de"),
        ("<html lang='zh_Hant_TW'>", "zh-hant-tw"),
        ("<html lang=''><meta http-equiv=content-language content='fr, en'>", "fr"),
        ("<html lang='{{ lang }}'>", None),
        ("<p>x", None),
    ],
)
def test_language(html: str, expected: str | None) -> None:
    assert read(html).language == expected


def test_the_title_is_the_pages_and_not_a_pictures() -> None:
    assert read("<body><svg><title>icon</title></svg><p>x").title is None
    assert read("<svg><title>icon</title></svg><title>page</title>").title == "page"


def test_app_shells_need_javascript() -> None:
    shell = "<title>App</title><div id=root></div><script src=/bundle.js></script>"
    facts = read(shell)
    assert facts.needs_javascript
    assert facts.content_hash is None
    assert read(
        "<body><noscript>Please enable JavaScript.</noscript><script src=a></script>"
    ).needs_javascript
    assert not read(
        "<div id=root>Rendered on the server</div><script src=a></script>"
    ).needs_javascript
    assert not read("<div id=root></div>").needs_javascript
    assert not read(shell + "<p>" + "word " * 100).needs_javascript


def test_soft_errors() -> None:
    facts = read("<title>Docs</title><h1>Page not found</h1><p>Go home.")
    assert facts.soft_error == "a heading says not found: Page not found"


def test_headings_inside_what_is_taken_out_are_read_before() -> None:
    facts = read("<body><p>x<noscript><h1>Page not found</h1></noscript>")
    assert facts.soft_error == "a heading says not found: Page not found"


def test_the_content_hash_is_of_what_readers_see() -> None:
    def content_hash(html: str) -> bytes | None:
        return read(html).content_hash

    page = content_hash("<title>t</title><p>Hello  world</p>")
    assert page == content_hash(
        "<title>t</title><script nonce=1>x()</script><style>p{}</style>\n<p id=q>Hello\nworld</p>"
    )
    assert page != content_hash("<title>other</title><p>Hello world</p>")
    assert page != content_hash("<title>t</title><p>Hello, world</p>")
    assert page == content_hash("<title>t</title><p>Hello <b>wor</b>ld</p>")
    assert content_hash("<title>t</title>") is None


def test_markdown() -> None:
    text = """# The *guide*
[a](a.md "title") ![img](/pic.png) [b](<b c.md>) [wiki](/x_(y)) <https://auto.example.org/>
see https://bare.example.org/x. and [ref][1]

[1]: /ref 'title'
```
[code](/no)
```
"""
    facts = read(text, content_type="text/markdown")
    assert facts.kind is ContentKind.MARKDOWN
    assert facts.title == "The *guide*"
    assert links(facts) == [
        "https://docs.example.org/guide/a.md",
        "https://docs.example.org/pic.png",
        "https://docs.example.org/guide/b%20c.md",
        "https://docs.example.org/x_(y)",
        "https://auto.example.org/",
        "https://bare.example.org/x",
        "https://docs.example.org/ref",
    ]


@pytest.mark.parametrize(
    ("body", "content_type", "url", "kind"),
    [
        (b"<p>x", "text/html", URL, ContentKind.HTML),
        (b"<!-- c --><!DOCTYPE html><p>", None, URL, ContentKind.HTML),
        (b"<html>", "application/octet-stream", URL, ContentKind.HTML),
        (b"<html>", "text/plain", URL, ContentKind.PLAIN),
        (b"<html/>", "Application/XHTML+xml; charset=utf-8", URL, ContentKind.XHTML),
        (b"<?xml version='1.0'?><html xmlns='x'/>", "text/xml", URL, ContentKind.XHTML),
        (b"<?xml version='1.0'?><rss/>", "text/xml", URL, ContentKind.OTHER),
        (b"%PDF-1.4", "text/html", URL, ContentKind.OTHER),
        (b"a\x01\x02", "text/plain", URL, ContentKind.OTHER),
        (b"a", "image/png", URL, ContentKind.OTHER),
        (b"a", "text/plain", "https://a.org/llms.txt", ContentKind.MARKDOWN),
        (b"a", None, "https://a.org/README.md?raw=1", ContentKind.MARKDOWN),
        (b"", None, URL, ContentKind.PLAIN),
    ],
)
def test_kinds(body: bytes, content_type: str | None, url: str, kind: ContentKind) -> None:
    assert extract_page(body, url, content_type).kind is kind


def test_xhtml_may_close_scripts_in_place() -> None:
    html = "<html><head><script src='x'/><title>t</title></head><body><a href='/a'/></body></html>"
    facts = read(html, content_type="application/xhtml+xml")
    assert facts.title == "t"
    assert links(facts) == ["https://docs.example.org/a"]


def test_too_many_links_are_cut_and_reported() -> None:
    facts = read("".join(f"<a href=/{n}></a>" for n in range(MAX_LINKS + 10)))
    assert len(facts.outlinks.links) == MAX_LINKS
    assert facts.outlinks.dropped == 10
    assert facts.truncated == ("links: 10 beyond the limit were dropped",)


def test_a_giant_title_is_cut_and_reported() -> None:
    facts = read(f"<title>{'t' * 100_000}</title>")
    assert facts.title == "t" * MAX_TITLE_LENGTH
    assert facts.truncated == ("title: longer than its limit",)


def test_deep_nesting_is_cut_and_reported() -> None:
    facts = read("<a href=/a></a>" + "<div>" * 200_000 + "<a href=/b></a>")
    assert links(facts) == ["https://docs.example.org/a"]
    assert facts.truncated == ("markup: elements nested deeper than 5000",)


def test_an_element_with_too_many_attributes_is_cut_and_reported() -> None:
    attributes = " ".join(f"a{n}=1" for n in range(50_000))
    facts = read(f"<a href=/a></a><p {attributes}>x</p>")
    assert links(facts) == ["https://docs.example.org/a"]
    assert facts.truncated == ("markup: an element with more than 2000 attributes",)


def test_one_long_attribute_and_many_void_elements_are_no_attack() -> None:
    data = "x y=z " * 50_000
    facts = read(f"<div data-state='{data}'>{'<input><br>' * 10_000}</div><a href=/a></a>")
    assert links(facts) == ["https://docs.example.org/a"]
    assert not facts.truncated


def test_only_pages_with_a_web_address_can_be_read() -> None:
    with pytest.raises(InvalidInput, match="neither http nor https"):
        extract_page(b"", "file:///etc/passwd")


def test_facts_travel_between_processes() -> None:
    facts = read("<title>t</title><a href=/a rel=nofollow>x</a>")
    assert pickle.loads(pickle.dumps(facts)) == facts


PIECES = (
    "<a href='|<base href=|<title>|</title>|'>|<svg>|<noscript>|<script src=x>|</script>|<frameset>"
    "|<template>|<!--|-->|http://|/|..|&#xD800;|&#0;|\0|é|0;url=|<link rel=canonical href=|<|[a](|)"
    "|](|404|<meta http-equiv=refresh content='|<http://a>|[1]: |```\n|# |<html lang=|<h1>| |\n"
)
pieces = st.sampled_from(PIECES.split("|"))
kinds = st.sampled_from([None, "text/html", "application/xhtml+xml", "text/markdown", "text/plain"])


@given(
    st.one_of(
        st.binary(max_size=200), st.lists(pieces, max_size=30).map(lambda p: "".join(p).encode())
    ),
    st.one_of(kinds, st.text()),
    st.lists(st.tuples(st.sampled_from(["link", "x-robots-tag"]), st.text()), max_size=3),
)
def test_no_body_makes_it_fail(
    body: bytes, content_type: str | None, headers: list[tuple[str, str]]
) -> None:
    facts = extract_page(body, URL, content_type, headers)
    for text in (facts.title, facts.canonical, facts.language, *links(facts)):
        assert "\0" not in (text or "")
        (text or "").encode("utf-8")


def test_links_of_svg_images() -> None:
    facts = read("""<svg><a xlink:href="chart.html#top"><text>x</text></a><a href=/new></a>
        <a xlink:title=" "></a></svg><p>text</p>""")
    assert links(facts) == [
        "https://docs.example.org/guide/chart.html",
        "https://docs.example.org/new",
    ]


def test_an_empty_link_leads_to_the_base() -> None:
    facts = read('<base href=/docs/><a href="">start</a>')
    assert links(facts) == ["https://docs.example.org/docs/"]
    assert links(read('<svg><a href="" xlink:href=/other></a></svg>')) == []


def test_links_for_browsers_without_frames() -> None:
    page = (
        b"<html><frameset><frame src=/f><noframes><p><a href=/m>m</a> <a href=/n rel=nofollow>n"
        b"</a></noframes></frameset></html>"
    )
    links = extract_page(page, "https://a.example/", "text/html").outlinks.links
    assert [(link.url, link.nofollow) for link in links] == [
        ("https://a.example/f", False),
        ("https://a.example/m", False),
        ("https://a.example/n", True),
    ]
