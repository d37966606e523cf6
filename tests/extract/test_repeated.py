"""Blocks that repeat on the pages of a source: which are learned, and which stay."""

from __future__ import annotations

import pytest

from forager.extract.composition import tokens_of
from forager.extract.content.repeated import RepeatedBlocks, blocks_of, learn
from forager.extract.document import EXTRACTOR_VERSION, Document, extract_reading
from forager.extract.page import read_page

MENU = "".join(f'<li><a href="/m{n}">Module number {n}</a></li>' for n in range(20))
NOTICE = "<p>This manual describes a development version that has not been released yet.</p>"


def page(number: int, *, menu: str = MENU, extra: str = "", tail: str = "") -> str:
    """A page whose menu has no telling name."""
    text = f"<p>Page {number} says something about subject {number} that no other page says.</p>"
    return (
        f"<html><head><title>Page {number}</title></head><body>"
        f'<div id="column1"><ul>{menu}</ul></div>'
        f'<div id="column2"><div id="banner"><img src="/logo.png" alt="logo"></div>{NOTICE}'
        f"<h1>Page {number}</h1>{text * 3}{extra}<h2>Returns</h2><p>A value.</p>{tail}</div></body>"
    )


def learned(pages: list[str]) -> RepeatedBlocks:
    sample = []
    for body in pages:
        _, tree = read_page(body.encode(), "https://docs.example.org/", "text/html", (), "forager")
        assert not isinstance(tree, str)
        assert tree is not None
        tokens, _ = tokens_of(tree)
        assert tokens is not None
        sample.append(blocks_of(tokens))
    return RepeatedBlocks.from_json(learn(sample).as_json())


def read(body: str, repeated: RepeatedBlocks | None, *, explain: bool = False) -> Document:
    url = "https://docs.example.org/"
    reading = extract_reading(body.encode(), url, "text/html", repeated=repeated, explain=explain)
    assert reading.document is not None
    return reading.document


SITE = [page(number) for number in range(12)]


def test_menus_banners_and_notices_without_a_telling_name_are_removed() -> None:
    before = read(SITE[0], None).markdown
    assert "Module number 7" in before
    assert "development version" in before
    document = read(SITE[0], learned(SITE))
    assert document.markdown.startswith("# Page 0\n\nPage 0 says")
    assert document.markdown.endswith("## Returns\n\nA value.")
    for removed in ("Module number", "development version", "logo"):
        assert removed not in document.markdown


def test_a_document_says_what_was_removed_and_why() -> None:
    removed = read(SITE[0], learned(SITE), explain=True).removed
    reasons = {block.element: block.reason for block in removed}
    assert reasons["div#column1."] == "on 12 of 12 pages of its source"
    assert reasons["p#."] == "on 12 of 12 pages of its source"
    assert read(SITE[0], learned(SITE)).removed == ()


def test_what_was_learned_is_part_of_the_version() -> None:
    first, second = learned(SITE), learned(SITE[::-1])
    assert first == second
    assert first.digest
    assert read(SITE[0], first).extractor_version == f"{EXTRACTOR_VERSION}-{first.digest}"
    assert read(SITE[0], learned(SITE[:5])).extractor_version == str(EXTRACTOR_VERSION)


def test_a_menu_with_another_entry_is_still_the_menu() -> None:
    grown = page(3, menu=f'<li><a href="/new">Brand new module</a></li>{MENU}')
    assert read(grown, learned(SITE)) == read(SITE[3], learned(SITE))


def test_the_same_list_at_another_place_is_content() -> None:
    index = page(0, extra=f"<ul>{MENU}</ul>")
    assert read(index, learned(SITE)).markdown.count("Module number 7") == 1


@pytest.mark.parametrize(
    "content",
    [
        '<p><a href="/string">string</a></p>',
        "<p>Parameters:</p>",
        "<h3>Description of the result</h3><p>Returns the argument unchanged, whatever it is.</p>",
        "<div><h3>Inherited method of the base</h3><p>Does what the base class does.</p></div>",
    ],
)
def test_labels_and_the_text_below_headings_are_kept(content: str) -> None:
    """Reference pages repeat them, and readers need them on each."""
    site = [page(number, extra=content) for number in range(12)]
    plain = read(site[0], None).markdown
    assert read(site[0], learned(site)).markdown == plain[plain.index("# Page 0") :]


def test_a_page_of_nothing_else_keeps_it() -> None:
    empty = f'<body><div id="column1"><ul>{MENU}</ul></div></body>'
    document = read(empty, learned(SITE))
    assert "Module number 7" in document.markdown
    assert document.fallbacks > 0
    assert document.extractor_version == read(SITE[0], learned(SITE)).extractor_version


def test_the_end_of_headings_is_removed_where_it_repeats() -> None:
    site = [
        f"<body><main><h1>Page {n} <small>beta</small></h1><p>Text {n} of this page.</p>"
        f"<h2>Usage {n} <small>beta</small></h2><p>More text {n}.</p></main></body>"
        for n in range(12)
    ]
    assert [section.heading for section in read(site[0], learned(site)).sections] == [
        "Page 0",
        "Usage 0",
    ]


def test_hostile_nesting_costs_no_more_than_its_length() -> None:
    deep = "<body>" + "<div>" * 4_000 + "text " * 10_000
    repeated = learned([*SITE, deep])
    assert "text" in read(deep, repeated).markdown
