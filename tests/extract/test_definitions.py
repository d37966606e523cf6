"""Definitions are sections: each with its anchor, its signature and its qualified names."""

from __future__ import annotations

import pytest

from forager.documents.names import section_names
from forager.extract.composition import extract_document
from forager.extract.document import Document
from forager.extract.identifiers import container_of, qualified_names
from forager.extract.sections import CONTINUED

URL = "https://docs.example.org/guide/page.html"


def read(html: str, title: str = "Page") -> Document:
    document = extract_document(f"<main>{html}</main>", URL, title=title)
    assert document is not None
    return document


def outline(html: str) -> list[tuple[int, int | None, str, str | None, str]]:
    found = read(html).sections
    return [(s.level, s.parent, s.heading, s.anchor, s.content) for s in found]


SPHINX = """<section id=m><h1>Tasks</h1><p>Lead.</p>
<dl class="py function"><dt class="sig sig-object py" id="asyncio.gather">
<em class=property>awaitable </em><span class=sig-name>asyncio.gather</span>(<em>*aws</em>)
<a class="reference internal viewcode-link" href="x">[source]</a>
<a class=headerlink href="#asyncio.gather">¶</a></dt>
<dd><p>Run awaitables.</p></dd></dl>
<p>Between.</p>
<dl class="py class"><dt class="sig" id="asyncio.Queue">class asyncio.Queue</dt><dd><p>A queue.</p>
<dl class="py method"><dt class="sig" id="asyncio.Queue.get">get()</dt>
<dd><p>Remove an item.</p></dd></dl>
<p>Thread-safe.</p></dd></dl></section>"""


def test_signatures_of_sphinx() -> None:
    assert outline(SPHINX) == [
        (1, None, "Tasks", "m", "Lead."),
        (2, 0, "awaitable asyncio.gather(*aws)", "asyncio.gather", "Run awaitables."),
        (CONTINUED, 0, "Tasks", "m", "Between."),
        (2, 0, "class asyncio.Queue", "asyncio.Queue", "A queue."),
        (3, 3, "get()", "asyncio.Queue.get", "Remove an item."),
        (CONTINUED, 3, "class asyncio.Queue", "asyncio.Queue", "Thread-safe."),
    ]
    assert read(SPHINX).markdown == (
        "# Tasks\n\nLead.\n\n## `awaitable asyncio.gather(*aws)`\n\nRun awaitables.\n\nBetween.\n\n"
        "## `class asyncio.Queue`\n\nA queue.\n\n### `get()`\n\nRemove an item.\n\nThread-safe."
    )


def test_options_and_terms_with_anchors() -> None:
    html = """<h2>Options</h2><dl><dt><code>-a</code><br><code>--all</code></dt><dd>Everything.</dd>
      <dt><code>--no-verify</code></dt><dd>Skip.</dd></dl>
      <dl><dt><a name=term>Term</a></dt><dd>Meaning.</dd><dt>Next</dt><dd>Other.</dd></dl>"""
    assert [(heading, anchor) for _, _, heading, anchor, _ in outline(html)] == [
        ("Options", None),
        ("-a --all", None),
        ("--no-verify", None),
        ("Term", "term"),
        ("Next", None),
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<dl><dt>Plain</dt><dd>Text.</dd></dl>",
        "<dl class='footnote brackets'><dt class=label id=id1>[1]</dt><dd>Note.</dd></dl>",
        "<table><tr><td>a<td><dl><dt id=x>x</dt><dd>Text.</dd></dl></table>",
        "<blockquote><dl><dt id=x>x</dt><dd>Text.</dd></dl></blockquote>",
    ],
)
def test_entries_that_define_nothing_to_link_to(html: str) -> None:
    assert len(read(f"<h1>A</h1><p>a</p>{html}").sections) == 1


def test_several_signatures_of_one_definition() -> None:
    html = "<h1>A</h1><dl><dt class=sig id=f>f(a)</dt><dt class=sig>f(a, b)</dt><dd>Text.</dl>"
    assert outline(html)[1] == (2, 0, "f(a)", "f", "`f(a, b)`\n\nText.")


@pytest.mark.parametrize(
    ("title", "page", "heading", "anchor", "names"),
    [
        ("T", "T", "get()", "asyncio.Queue.get", ["asyncio.Queue.get", "Queue.get", "get"]),
        (
            "Vec in std::vec - Rust",
            "Struct Vec",
            "pub fn push(&mut self, value: T)",
            "method.push",
            ["std::vec::Vec::push", "vec::Vec::push", "Vec::push", "push"],
        ),
        ("T", "Struct std::vec::Vec", "Some", "variant.Some", ["std::vec::Vec::Some"]),
        ("List", "Interface List<E>", "add", "add(int,E)", ["java.util.List.add", "List.add"]),
        ("List", "Class List<E>", "List", "<init>()", ["java.util.List.List"]),
        ("T", "T", "$<TARGET_FILE:tgt>", "genex:TARGET_FILE", ["TARGET_FILE"]),
        ("T", "T", "std::vector<T,A>::push_back", None, ["std::vector::push_back", "push_back"]),
        ("T", "T", "Getting started", "getting-started", []),
        ("T", "T", "Version 1.2", "version-1.2", []),
    ],
)
def test_qualified_names(
    title: str, page: str, heading: str, anchor: str | None, names: list[str]
) -> None:
    container = container_of(title, page, "Module java.base\n\nPackage [java.util](x)")
    found = qualified_names(container, heading, anchor)
    assert set(names) <= set(found)
    assert bool(names) == bool(found)


def test_sections_are_found_by_the_names_they_define() -> None:
    document = read(SPHINX)
    names = section_names(document.title, document.sections)
    assert "queue.get" in names[4].heading
    assert "asyncio.gather" in names[1].heading
    html = (
        "<h1>Generators</h1><dl><dt class=sig id='genex:TARGET_FILE'>$&lt;TARGET_FILE:tgt&gt;</dt>"
    )
    document = read(html)
    names = section_names(document.title, document.sections)
    assert {"$<target_file:tgt>", "target_file"} <= set(names[1].heading)
