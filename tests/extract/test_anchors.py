"""Every anchor of a page is in one section, and sections follow the structure of the page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forager.extract.document import Document, extract_reading
from forager.extract.sections import CONTINUED, LONG_SECTION, Section

URL = "https://docs.example.org/guide/page.html"
SENTENCE = "The quick brown fox explains how to configure the frobnicator."


def read(body: str) -> Document:
    page = f"<!doctype html><title>Page</title>{body}"
    document = extract_reading(page.encode(), URL, "text/html").document
    assert document is not None
    return document


def section_with(document: Document, anchor: str) -> Section:
    """The first section with an anchor: text that continues a section repeats its anchor."""
    found = [s for s in document.sections if anchor == s.anchor or anchor in s.anchors]
    assert found, anchor
    assert all(section.level == CONTINUED for section in found[1:])
    return found[0]


def headings(document: Document) -> list[str]:
    return [section.heading for section in document.sections if section.level]


# --- anchors --------------------------------------------------------------------------------------


def test_anchors_of_all_elements_lead_to_their_section() -> None:
    document = read(f"""<div id=top><main id=m><h1 id=title>A</h1>
        <p id=lead>{SENTENCE} <a name=word></a>word <span id=s>x</span></p>
        <a name=old></a><a name=older></a><section id=sec><h2 id=two>B</h2><p>{SENTENCE}</p>
        <table><tr><td id=cell>a</td><td><a name=in-cell>b</a></td></tr></table>
        <pre>code <a id=in-code>x</a></pre><img id=image src=a.png alt=Picture>
        <ul><li id=item>one<li>two</ul></section>
        <p id=after>{SENTENCE}</p></main><div id=foot>x</div></div>""")
    for anchor in ("top", "m", "title", "lead", "word", "s"):
        assert section_with(document, anchor).heading == "A"
    for anchor in ("old", "older", "sec", "two", "cell", "in-cell", "in-code", "image", "item"):
        assert section_with(document, anchor).heading == "B"
    assert section_with(document, "after").heading == section_with(document, "foot").heading == "B"


def test_the_anchors_of_a_text_that_continues_after_definitions() -> None:
    document = read(f"""<main><h1>A</h1><p>{SENTENCE}</p><dl><dt id=f>f(x)</dt>
        <dd>Calls f. <a id=in-f></a>Fast.</dd></dl><p id=rest>{SENTENCE}</p></main>""")
    assert section_with(document, "in-f").heading == "f(x)"
    assert section_with(document, "rest").level == CONTINUED


@given(
    st.lists(st.sampled_from(["h2", "h3", "p", "dt", "pre", "td", "li", "a", "span"]), max_size=9)
)
def test_no_anchor_is_lost(names: list[str]) -> None:
    wrapped = {
        "dt": "<dl>{}<dd>Text.</dd></dl>",
        "td": "<table><tr>{}<td>x</td></tr></table>",
        "li": "<ul>{}</ul>",
    }
    elements = [
        wrapped.get(name, "{}").format(f"<{name} id=i{number}>Text {number}</{name}>")
        for number, name in enumerate(names)
    ]
    document = read(f"<main><h1>A</h1><p>{SENTENCE}</p>{''.join(elements)}</main>")
    for number in range(len(names)):
        section_with(document, f"i{number}")


# --- definitions ----------------------------------------------------------------------------------


def test_a_higher_heading_in_an_article_does_not_end_its_definition() -> None:
    function = """<article><h4 id={0}>{0}(Table) -> true</h4><div><h3>Types</h3><p>Table = tab()</p>
        </div><p>Deletes the table.</p></article>"""
    document = read(
        f"<main><h1>ets</h1><h3>Exports</h3>{function.format('a')}{function.format('b')}"
    )
    assert headings(document) == ["ets", "Exports", "a(Table) -> true", "b(Table) -> true"]
    found = section_with(document, "b").content
    assert found == "**Types**\n\nTable = tab()\n\nDeletes the table."


def test_a_heading_in_a_definition_is_below_it() -> None:
    document = read(f"""<main><h1>A</h1><h2>Options</h2><dl><dt id=x>--x</dt><dd><p>{SENTENCE}</p>
        <h3>Notes</h3><p>{SENTENCE}</p></dd><dt id=y>--y</dt><dd>Text.</dd></dl></main>""")
    sections = document.sections
    notes = next(section for section in sections if section.heading == "Notes")
    assert notes.parent is not None
    assert sections[notes.parent].heading == "--x"
    assert section_with(document, "y").level == section_with(document, "x").level


def test_keywords_of_a_manual_are_sections() -> None:
    keyword = """<a name={0}></a><div class=keyword><b><a name={0}></a><a href='#{0}'>{0}</a></b>
        &lt;value&gt;</div><pre>Sets {0}.</pre>"""
    first = keyword.format("balance") + keyword.format("bind")
    document = read(f"""<div id=page><h1>M</h1><h2>Proxies</h2>{first}<h2>Servers</h2>
        {keyword.format("weight")}<p>{SENTENCE}</p></div>""")
    named = [(section.heading, section.level) for section in document.sections]
    assert named == [
        ("M", 1), ("Proxies", 2), ("balance <value>", 3), ("bind <value>", 3),
        ("Servers", 2), ("weight <value>", 3),
    ]  # fmt: skip
    assert "Sets bind." in section_with(document, "bind").content
    assert SENTENCE in section_with(document, "weight").content


def test_definitions_in_boxes_own_the_text_after_the_box() -> None:
    box = """<div class=SIntrapara><blockquote class=SVInsetFlow><table class='boxed RBoxed'><tr>
        <td><blockquote class=SubFlow><div class=RBackgroundLabel><p>procedure</p></div>
        <p class=RForeground>(<a name='(def._{0})'></a><span class=RktSym><a href='#x'>{0}</a>
        </span> v)</p></blockquote></td></tr><tr><td>v : any/c</td></tr></table></blockquote></div>
        <div class=SIntrapara>Returns the {0} of a pair.</div>"""
    document = read(f"""<div class=main><h2>Pairs</h2><p>{SENTENCE}</p>{box.format("car")}
        {box.format("cdr")}</div>""")
    found = section_with(document, "(def._cdr)")
    assert found.heading == "(cdr v)"
    assert found.content.split("\n\n") == ["procedure", "v : any/c", "Returns the cdr of a pair."]
    assert section_with(document, "(def._car)").level == found.level


# --- long sections --------------------------------------------------------------------------------


def test_a_long_section_is_split_at_an_anchor() -> None:
    text = f"<p>{SENTENCE * 20}</p>" * 10
    document = read(f"<main><h1 id=a>A</h1>{text}<p id=half>{SENTENCE}</p>{text}</main>")
    first, second = document.sections
    assert (second.heading, second.level, second.anchor, second.parent) == (
        "A",
        CONTINUED,
        "half",
        0,
    )
    assert second.content.startswith(f"{SENTENCE}\n\n")
    assert first.content.count(SENTENCE) + second.content.count(SENTENCE) == 401


def test_a_long_section_is_split_at_paragraphs_and_items() -> None:
    for html in (f"<p>{SENTENCE}</p>" * 900, f"<ul>{f'<li>{SENTENCE}</li>' * 900}</ul>"):
        sections = read(f"<main><h1 id=a>A</h1>{html}</main>").sections
        assert max(len(section.content) for section in sections) <= LONG_SECTION
        assert sum(section.content.count(SENTENCE) for section in sections) == 900
        assert {section.heading for section in sections} == {"A"}
        assert {section.anchor for section in sections} == {"a"}


def test_a_long_table_is_split_at_rows_and_repeats_its_head() -> None:
    rows = "".join(f"<tr><td id=r{n}>name {n}<td>{SENTENCE}" for n in range(600))
    table = f"<table><tr><th>Name<th>Text</tr>{rows}</table>"
    document = read(f"<main><h1>A</h1><p>Lead.</p>{table}</main>")
    assert len(document.sections) > 2
    assert all("| Name | Text |\n| --- | --- |" in each.content for each in document.sections[1:])
    assert sum(each.content.count(SENTENCE) for each in document.sections) == 600
    assert section_with(document, "r599").heading == "A"


def test_code_of_ordinary_length_is_not_cut() -> None:
    code = "\n\n".join(f"line {n}" for n in range(1_800))
    assert len(code) > LONG_SECTION
    document = read(f"<main><h1>A</h1><p>Lead.</p><pre>{code}</pre><p>{SENTENCE}</p></main>")
    assert sum(section.content.count("```") for section in document.sections) == 2
