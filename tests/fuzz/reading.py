"""Pages: whatever they hold, a document comes out that can be stored, in bounded size."""

from __future__ import annotations

from collections.abc import Sequence

from forager.crawl.extraction.reading import new_document, pack_document, unpack_document
from forager.extract.document import ExtractedPage, extract_reading
from forager.extract.sections import MAX_SECTION_BYTES, Section
from forager.extract.urls import normalize
from fuzz.target import Target, assert_storable, split_line

_URL = "https://docs.example.org/guide/page.html"
# escapes, link targets made absolute and the padding of tables make markdown longer than its page
_GROWTH = 60
_ROOM = 100_000


def check_html(data: bytes) -> None:
    """A page of HTML."""
    for content_type in ("text/html; charset=utf-8", "application/xhtml+xml"):
        _check(data, content_type, ())


def check_markdown(data: bytes) -> None:
    """A page of markdown or plain text."""
    for content_type in ("text/markdown; charset=utf-8", "text/plain"):
        _check(data, content_type, ())


def check_headers(data: bytes) -> None:
    """What headers say of a page: a Content-Type on the first line, robots and links after it."""
    first, rest = split_line(data)
    value = rest.decode("latin-1")
    headers = [("X-Robots-Tag", value), ("Link", value)]
    _check(b"<title>x</title><p>y", first.decode("latin-1"), headers)


def _check(body: bytes, content_type: str, headers: Sequence[tuple[str, str]]) -> None:
    given = (body, _URL, content_type, headers)
    reading = extract_reading(*given)
    _check_facts(reading)
    _check_document(reading, len(body))
    assert extract_reading(*given) == reading, "a page must always say the same"


def _check_facts(reading: ExtractedPage) -> None:
    facts = reading.facts
    for text in (facts.title, facts.language, facts.soft_error, *facts.truncated):
        assert_storable(text or "")
    urls = [facts.canonical, facts.base_url, facts.refresh.url if facts.refresh else None]
    for url in (*urls, *(link.url for link in facts.outlinks.links)):
        assert url is None or normalize(url) == url


def _check_document(reading: ExtractedPage, size: int) -> None:
    document = new_document(reading)
    assert_storable(document.markdown)
    assert len(document.markdown) <= _GROWTH * size + _ROOM
    for section in document.sections:
        _check_section(section)
    unpacked = unpack_document(pack_document(document))
    assert unpacked.sections == document.sections, "a document must survive its journey"
    for names in unpacked.names:
        assert_storable(" ".join((*names.heading, *names.section)))


def _check_section(section: Section) -> None:
    assert_storable(f"{section.heading}{section.anchor or ''}{section.content}")
    assert len(section.content.encode()) <= MAX_SECTION_BYTES
    assert section.parent is None or section.parent < section.position


HTML = Target(
    check_html,
    [
        b"<!doctype html><html lang=en><head><title>T</title><base href=/b/><meta name=robots "
        b"content='noindex,nofollow'><link rel=canonical href=/c></head><body><nav>menu</nav><main>"
        b"<h1 id=a>A</h1><p>One <b>two</b> <code>x_y</code> <a href='?q#f'>l</a></p></main>",
        b"<article><h2>T</h2><table><tr><th colspan=2>a<td rowspan=3>b<tr><td>c|d</table>"
        b"<ul><li>1<ol><li>2</ol></ul><blockquote>q<pre><code class=language-py>def f():\n  pass"
        b"</code></pre></blockquote>",
        b"<p>a<br>b<img src=i.png alt='x ] y'><svg><title>s</title></svg><template><p>t</template>"
        b"<noscript><p>n</noscript><iframe srcdoc='<p>i'></iframe><dl><dt>a<dd>b</dl><hr>",
        b"<frameset><frame src=/f></frameset>",
        b"<meta http-equiv=refresh content='0; url=/next'><script>x</script><div id=root></div>",
        b"<div hidden id='S:0'>late</div><template id='B:0'></template><script>$RC('B:0','S:0')",
        b"<details><summary>s</summary>d</details><math><mi>x</mi></math><sup>2</sup><kbd>k</kbd>",
    ],
    [b"<main>", b"<article>", b"<h1>", b"<h6 id=x>", b"<table>", b"<tr>", b"<td colspan=999>",
     b"<pre>", b"<code>", b"</", b"<!--", b"-->", b"<![CDATA[", b"<svg>", b"<template>",
     b"<select><option>", b"<li>", b"<dl><dt>", b"<a href=", b"<img src=", b"srcset=", b"<br>",
     b"&#0;", b"&amp;", b"&#xd800;", b"```", b"|", b"\\", b"*", b"_", b"<noscript>", b"<iframe",
     b"<math>", b"<title>", b"<base href=", b"<frameset>", b"<plaintext>", b"<textarea>",
     b"role=main", b"hidden", b"<blockquote>", b"\0", b"<p>", b"<b>", b"<span>", b"<details>",
     b"<script>", b"$RC(", b"\xe2\x80\xae", b"\xe2\x80\x8b"],
)  # fmt: skip
MARKDOWN = Target(
    check_markdown,
    [b"---\ntitle: T\n---\n# A\n\ntext [l](/x \"t\") <http://h/>\n\n```py\n# no\n```\n## B {#b}\n",
     b"A\n===\n\nB\n---\n\n[r]: http://h/r\n\n    code\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
     b"~~~\nopen\n# x\n", b"<h2>html</h2>\r\r\n#\n####### seven\n* * *\n"],
    [b"# ", b"\n---\n", b"===", b"```", b"~~~", b"](", b"<http://", b"[x]: ", b"    ", b"\t",
     b"{#", b"\r", b"title:", b"<!--", b"http://", b"\xe2\x80\xa8"],
)  # fmt: skip
HEADERS = Target(
    check_headers,
    [b"text/html; charset=utf-8\n<https://h/c>; rel=\"canonical\", <x>; rel=next",
     b"TEXT/PLAIN\nforager: noindex, unavailable_after: 25 Jun 2030 15:00:00 PST, otherbot: none"],
    [b"rel=canonical", b"<", b">", b";", b",", b"noindex", b"forager:", b"\"",
     b"unavailable_after:"],
)  # fmt: skip
