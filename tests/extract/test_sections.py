from __future__ import annotations

import pytest

from forager.extract.composition import extract_document
from forager.extract.document import Document
from forager.extract.kinds import ContentKind
from forager.extract.sections import (
    CONTINUED,
    LONG_SECTION,
    MAX_SECTION_BYTES,
    MAX_SECTIONS,
    Section,
)

URL = "https://docs.example.org/guide/page.html"


def sections(html: str, title: str = "Page") -> list[Section]:
    document = extract_document(f"<main>{html}</main>", URL, title=title)
    return list(document.sections) if document else []


def tree(found: list[Section]) -> list[tuple[int, int | None, int, str]]:
    return [(s.position, s.parent, s.level, s.heading) for s in found]


def from_markdown(text: str, kind: ContentKind = ContentKind.MARKDOWN) -> Document:
    document = extract_document(text, URL, kind)
    assert document is not None
    return document


def test_the_tree_of_a_page() -> None:
    html = "<p>lead</p><h1>A</h1>a<h2>B</h2>b<h4>C</h4>c<h2>D</h2>d<h1>E</h1>e"
    assert tree(sections(html)) == [
        (0, None, 0, "Page"),
        (1, 0, 1, "A"),
        (2, 1, 2, "B"),
        (3, 2, 4, "C"),
        (4, 1, 2, "D"),
        (5, 0, 1, "E"),
    ]
    assert [section.content for section in sections(html)] == ["lead", "a", "b", "c", "d", "e"]


def test_without_a_lead_the_first_heading_is_the_root() -> None:
    assert tree(sections("<h1>A</h1>a<h2>B</h2>b")) == [(0, None, 1, "A"), (1, 0, 2, "B")]


def test_headings_without_text_are_sections_too() -> None:
    html = "<h1>A</h1><h2>Empty</h2><h2>Parent</h2><h3>Child</h3>x<h2>Last</h2><h3>Too</h3>"
    expected = ["A", "Empty", "Parent", "Child", "Last", "Too"]
    assert [section.heading for section in sections(html)] == expected


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ("<h2 id=own>H</h2>x", "own"),
        ("<section id=wrapper><h2>H</h2>x</section>", "wrapper"),
        ("<div class=sect2 id=S><h2>H</h2>x</div>", "S"),
        ("<a name=before></a><h2>H</h2>x", "before"),
        ("<a id=before></a>\n<h2>H</h2>x", "before"),
        ("<h2><a name=inside>H</a></h2>x", "inside"),
        ("<h2>H<a class=headerlink href='#link'>¶</a></h2>x", "link"),
        ("<h2><a href='#link'>H</a></h2>x", "link"),
        ("<h2><a href='#other'>H</a> two<a href='#link'>#</a></h2>x", "link"),
        ("<h2>H <a href='#other'>two</a></h2>x", None),
        ("<i id=toc></i><p>text</p><h2><a class=toc-backref href='#toc'>H</a></h2>x", None),
        ("<h2>H<span><a class=mark href='#m' id=m>#</a></span></h2>x", "m"),
        ("<h2><span class=mw-headline id=inner>H</span></h2>x", "inner"),
        ("<div id=m><i>1.0</i> <a href=/s>source</a><h4>fn <a href='#m'>m</a>()</h4></div>x", "m"),
        ("<div id=m><p>text</p></div><h4>fn <a href='#m'>m</a>()</h4>x", None),
        ("<section id=wrapper><h2 id=own>H</h2>x</section>", "own"),
        ("<a id=own></a><h4><i name=x>f</i>(): <a href=/i name=Int>Int</a></h4>x", "own"),
        ("<h2>H</h2>x", None),
        ("<a name=far></a><p>text</p><h2>H</h2>x", None),
    ],
)
def test_anchors(html: str, anchor: str | None) -> None:
    assert sections(f"<h1>T</h1>t{html}")[-1].anchor == anchor


def test_headings_are_plain_text_in_sections() -> None:
    [section] = sections("<h2><a href=x>A</a> &lt;b&gt; <code>c_d</code>\u200b</h2>x")
    assert section.heading == "A <b> c_d"


def test_a_section_that_is_too_large_continues_in_children() -> None:
    words = "<p>" + "word " * 100
    found = sections(f"<h1 id=a>A</h1>{words * 1200}<h2>B</h2>b")
    assert len(found) > 3
    first, *rest, last = found
    assert all(len(section.content.encode()) <= MAX_SECTION_BYTES for section in found)
    assert {(section.parent, section.level, section.heading) for section in rest} == {
        (0, CONTINUED, "A")
    }
    assert (last.heading, last.parent, last.position) == ("B", 0, len(found) - 1)
    assert first.anchor == rest[0].anchor == "a"


def long_pieces(html: str) -> list[str]:
    found = [section.content for section in sections(f"<h1>A</h1>{html}")]
    assert max(map(len, found)) <= 5 * LONG_SECTION // 4
    return found


def test_long_nested_lists_are_cut_between_items() -> None:
    items = "".join(f"<li>item {number} {'word ' * 20}</li>" for number in range(400))
    found = long_pieces(f"<ul><li>One<ul>{items}</ul></li><li>Two</li></ul><pre>  x\n    y</pre>")
    assert len(found) > 2
    assert all(text.startswith("- item ") for text in found[1:])  # 4 blanks would make it code
    assert "\n- item 399" in found[-1]
    assert found[-1].endswith("- Two\n\n```\n  x\n    y\n```")


def test_long_code_is_cut_between_lines_into_blocks() -> None:
    lines = "\n".join(f"line {number} {'x' * 60}" for number in range(2_000))
    found = long_pieces(f"<pre><code class=language-c>{lines}</code></pre>")
    assert len(found) > 5
    assert all(text.startswith("```c\n") and text.endswith("\n```") for text in found)
    kept = "\n".join(text.removeprefix("```c\n").removesuffix("\n```") for text in found)
    assert kept == lines


def test_long_broken_lines_are_cut_between_them() -> None:
    lines = [f"entry {number} {'x' * 60}" for number in range(2_000)]
    found = long_pieces(f"<p>{'<br>'.join(lines)}</p>")
    assert len(found) > 5
    assert [line.strip() for text in found for line in text.split("\n")] == lines


def test_long_tables_are_cut_between_rows_behind_an_anchor() -> None:
    row = "<tr><td>{}</td><td>" + "word " * 400 + "</td></tr>"
    rows = "".join(map(row.format, range(40)))
    found = long_pieces(f"<p>Lead</p><table id=t>{rows}</table>")
    assert len(found) > 3
    assert all(text.startswith("|  |  |\n| --- |") for text in found[1:])


def test_too_many_headings_become_text_and_this_is_reported() -> None:
    html = "".join(f"<h2>h{number}</h2>x" for number in range(MAX_SECTIONS + 10))
    document = extract_document(f"<main>{html}</main>", URL)
    assert document is not None
    assert MAX_SECTIONS - 1 <= len(document.sections) <= MAX_SECTIONS
    assert f"## h{MAX_SECTIONS + 9}\n\nx" in document.sections[-1].content
    assert any("sections" in said for said in document.truncated)


# --- markdown pages -----------------------------------------------------------------------------


def test_a_markdown_page() -> None:
    text = """---
title: "The guide"
---
Lead with `code`.

# First #
one
```sh
# no heading
```
Setext
------
two

### Third [link](x) `c` {#third}
three
<a id="fourth"></a>
### Fourth
four
<!-- # hidden
# hidden too -->
"""
    document = from_markdown(text)
    assert document.title == "The guide"
    found = [(s.level, s.heading, s.anchor, s.parent) for s in document.sections]
    assert found == [
        (0, "The guide", None, None),
        (1, "First", None, 0),
        (2, "Setext", None, 1),
        (3, "Third link c", "third", 2),
        (3, "Fourth", "fourth", 2),
    ]
    assert document.sections[1].content == "one\n```sh\n# no heading\n```"


def test_an_llms_text_is_one_document() -> None:
    text = "# Project\n\n> Summary\n\n## Docs\n\n- [A](https://example.org/a): about a\n"
    document = from_markdown(text)
    assert document.title == "Project"
    assert [section.heading for section in document.sections] == ["Project", "Docs"]


def test_plain_text_is_one_section() -> None:
    document = from_markdown("NAME\n# a comment\nls - list\n", ContentKind.PLAIN)
    assert tree(list(document.sections)) == [(0, None, 0, URL)]
    readme = from_markdown("# Tool\n\n## Usage\n\nRun it.\n", ContentKind.PLAIN)
    assert [section.heading for section in readme.sections] == ["Tool", "Usage"]


def test_a_rule_after_a_list_is_no_heading() -> None:
    document = from_markdown("# A\n\n- item\n---\n\ntext\n")
    assert [section.heading for section in document.sections] == ["A"]
