from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forager.extract.composition import extract_document
from forager.extract.document import EXTRACTOR_VERSION, Document, extract_reading
from forager.extract.kinds import ContentKind
from forager.extract.page import extract_page

URL = "https://docs.example.org/guide/page.html"
PAGE = """<!doctype html><html lang=en-GB><head><title>Guide</title><base href=/base/></head><body>
<nav><a href=/menu>Menu</a></nav><main><h1>Guide</h1><p>Read <a href=on.html>on</a>.</p>
<script>var nonce = 1</script></main><footer>Served in 3 ms</footer></body></html>"""


def test_facts_and_document_from_one_parse() -> None:
    reading = extract_reading(PAGE.encode(), URL, "text/html; charset=utf-8")
    assert reading.facts == extract_page(PAGE.encode(), URL, "text/html; charset=utf-8")
    document = reading.document
    assert document is not None
    assert document.title == "Guide"
    assert document.language == "en-gb"
    assert document.markdown == "# Guide\n\nRead [on](https://docs.example.org/base/on.html)."
    assert document.extractor_version == str(EXTRACTOR_VERSION)
    assert pickle.loads(pickle.dumps(reading)) == reading


def test_the_hash_is_of_the_content_alone() -> None:
    def content_hash(page: str) -> bytes:
        document = extract_reading(page.encode(), URL, "text/html").document
        assert document is not None
        return document.content_hash

    assert content_hash(PAGE) == content_hash(
        PAGE.replace("3 ms", "4 ms").replace("nonce = 1", "nonce = 2").replace("Menu", "Other")
    )
    assert content_hash(PAGE) != content_hash(PAGE.replace("Read", "Write"))
    assert content_hash(PAGE) != content_hash(PAGE.replace("on.html", "off.html"))


def test_one_page_under_two_urls_has_one_hash_whatever_it_links_to_in_itself() -> None:
    page = "<main><h1>Home</h1><p><a href='#'>Top</a> <a href='#a b'>A</a></p></main>"
    one, two, other = (
        extract_reading(text.encode(), f"https://docs.example.org/{path}", "text/html").document
        for text, path in ((page, ""), (page, "index.html"), (page.replace("#a", "#c"), ""))
    )
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.content_hash == two.content_hash != other.content_hash
    assert "(https://docs.example.org/index.html#)" in two.markdown


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "text/html"),
        (b"<nav>x</nav>", "text/html"),
        (b"%PDF-1.7", "application/pdf"),
        (b"  ", "text/plain"),
    ],
)
def test_no_content_is_no_document(body: bytes, content_type: str) -> None:
    assert extract_reading(body, URL, content_type).document is None


def test_text_and_markdown_responses() -> None:
    reading = extract_reading(b"# A\n\ntext", "https://example.org/llms.txt", "text/plain")
    assert reading.facts.kind is ContentKind.MARKDOWN
    assert reading.document is not None
    assert reading.document.sections[0].heading == "A"


def test_broken_encodings_are_read_all_the_same() -> None:
    reading = extract_reading(b"<p>caf\xe9 \xff\xfe text</p>" * 20, URL, "text/html; charset=utf-8")
    assert reading.facts.damaged
    assert reading.document is not None
    assert "caf\ufffd" in reading.document.markdown


# --- hostile pages ------------------------------------------------------------------------------

HOSTILE = {
    "deep": "<div>" * 30_000 + "x",
    "deep inline": "<b><i>" * 20_000 + "x",
    "deep lists": "<ul><li>" * 2_000 + "<p>x</p>" * 2_000,
    "deep boilerplate": "<div class=feedback>" * 3_000 + "<p>x</p>" * 3_000,
    "deep tables": "<table><tr><td>" * 1_000 + "x",
    "headings in headings": "<h1><div>" * 2_000 + "x",
    "spans": "<table>" + ("<tr>" + "<td rowspan=65000 colspan=1000>abc" * 30) * 300,
    "code": "<pre>" + "<span class=ln>a" * 5_000,
    "stars": "<p>" + "*" * 50_000 + "[" * 50_000 + "`" * 50_000,
    "raw": "<iframe><xmp><p></xmp>" * 500 + "<plaintext><b>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_stay_within_bounds(name: str) -> None:
    html = HOSTILE[name]
    document = extract_reading(html.encode(), URL, "text/html").document
    if document is not None:
        check(document)
        assert len(document.markdown) < 60 * len(html)


def test_many_short_links_of_a_page_with_a_long_address() -> None:
    url = f"https://example.org/{'a' * 4_000}/"
    page = "<main>" + "<a href=x>x</a> " * 5_000
    document = extract_document(page, url)
    assert document is not None
    assert len(document.markdown) < 5_000_000
    assert any("links" in said for said in document.truncated)


def test_a_huge_table_says_what_was_cut() -> None:
    document = extract_document("<main><table>" + "<tr><td>a<td>b" * 60_000, URL)
    assert document is not None
    assert any("table" in said for said in document.truncated)


# --- any page -----------------------------------------------------------------------------------

WORDS = re.compile(r"[^\W_]+")


def check(document: Document) -> None:
    """What must hold for every document."""
    text = document.markdown + document.title + "".join(s.heading for s in document.sections)
    assert "\0" not in text
    text.encode()  # no lone surrogates
    for position, section in enumerate(document.sections):
        assert section.position == position
        if section.parent is not None:
            assert section.parent < position
            assert document.sections[section.parent].level < section.level
    # pre-order: everything between a section and its parent lies below that parent
    for section in document.sections:
        if section.parent is not None:
            for between in document.sections[section.parent + 1 : section.position]:
                assert between.level > document.sections[section.parent].level


TAGS = st.sampled_from(
    str.split(
        "p div section h1 h2 h3 h6 ul ol li dl dt dd table tr td th thead pre code b i a span img"
        " br hr blockquote main article nav header footer aside details summary math q form caption"
        " xmp"
    )
)
ATTRIBUTES = st.sampled_from(
    str.split(
        "| id=x| class=toc| class='highlight-python'| class='admonition note'| href=#a| href=b"
        "| hidden| class=headerlink| role=main| colspan=2 rowspan=3| start=5| name=n"
        "| alt=alt src=s| class=lineno| id=content| role=heading",
        "|",
    )
)
TEXTS = st.text(alphabet="ab1 \n*_`[]()#<>&|\\-.\x00\x01\ud800é漢", max_size=8)


@st.composite
def pages(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(st.sampled_from(["open", "close", "text"]))
        tag = draw(TAGS)
        if kind == "open":
            parts.append(f"<{tag}{draw(ATTRIBUTES)}>")
        elif kind == "close":
            parts.append(f"</{tag}>")
        parts.append(draw(TEXTS))
    return "".join(parts)


@settings(max_examples=300, deadline=None)
@given(pages())
def test_any_html(html: str) -> None:
    document = extract_document(html, URL)
    if document is not None:
        check(document)
        check_complete(document)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab# \n`~-=<>![]().{}\x00\ud800", max_size=200))
def test_any_markdown(text: str) -> None:
    document = extract_document(text, URL, ContentKind.MARKDOWN)
    if document is not None:
        check(document)
        check_complete(document)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    document = extract_reading(body, URL, "text/html").document
    if document is not None:
        check(document)


def check_complete(document: Document) -> None:
    """Sections hold every word of the markdown, but for headings without text and children."""
    below = [section.content for section in document.sections]
    for content in below:
        assert content in document.markdown
    rest = document.markdown
    for content in filter(None, below):
        # at the start of a line: a heading may say the same as what stands below it
        found = re.search(rf"^ *{re.escape(content)}", rest, re.MULTILINE)
        if found is None:
            rest = rest.replace(content, "", 1)
        else:
            rest = rest[: found.start()] + rest[found.end() :]
    for line in rest.split("\n"):
        assert not line.strip() or line.lstrip(" ").startswith("#")
