"""Definitions are sections: each with its anchor, its signature and its qualified names."""

from __future__ import annotations

import pytest

from forager.documents.names import section_names
from forager.extract.composition import extract_document
from forager.extract.document import Document
from forager.extract.identifiers import container_of, qualified_names
from forager.extract.markdown.tokens import tokenize
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


CRYSTAL = """<h1>class OptionParser</h1><p>Parses options.</p><h2>Constructors</h2>
<div class="entry-detail" id="new(args)-class-method"><div class="signature">
def self.<b>new</b>(args)
<a class="method-permalink" href="#new%28args%29-class-method">#</a></div>
<div class=doc><p>Creates a parser.</p><h4>Example</h4><p>An example.</p></div></div>
<p>Between.</p>
<div class="entry-detail" id="stop-instance-method"><div class="signature">def <b>stop</b></div>
<p>Stops.</p></div>"""


def test_signatures_in_elements_with_anchors() -> None:
    assert outline(CRYSTAL)[1:] == [
        (2, 0, "Constructors", None, ""),
        (3, 1, "def self.new(args)", "new(args)-class-method", "Creates a parser."),
        (4, 2, "Example", None, "An example."),
        (CONTINUED, 1, "Constructors", None, "Between."),
        (3, 1, "def stop", "stop-instance-method", "Stops."),
    ]
    assert "### `def self.new(args)`\n\nCreates" in read(CRYSTAL).markdown


def test_further_signatures_of_a_definition() -> None:
    html = """<h1>class Array</h1><p>A list.</p><section id=m><h3>Methods</h3>
      <div id="method-i-find" class="method-detail"><div class="method-header">
      <div class="method-heading"><span class="method-callseq">find { |x| } → y</span>
      <span class="method-click-advice">click to toggle source</span></div>
      <div class="method-heading"><span class="method-callseq">find → enumerator</span></div></div>
      <div class="method-description"><p>Finds.</p>
      <div class="method-source-code" id="find-source"><pre>def find; end</pre></div></div></div>"""
    assert outline(html)[2:] == [
        (4, 1, "find { |x| } → y", "method-i-find", "`find → enumerator`\n\nFinds.")
    ]


def test_signatures_side_by_side() -> None:
    html = """<h1>Data.List</h1><div id=interface><div class=top><p class=src>
      <a id="v:map" class=def>map</a> :: (a -> b) -> [a] -> [b]
      <a href="src/List.html#map" class=link>Source</a> <a href="#v:map" class=selflink>#</a></p>
      <div class=doc><p>Applies a function.</p></div></div>
      <div class=top><p class=src><a id="v:nub" class=def>nub</a> :: [a] -> [a]</p></div></div>"""
    assert outline(html)[1:] == [
        (2, 0, "map :: (a -> b) -> [a] -> [b]", "v:map", "Applies a function."),
        (2, 0, "nub :: [a] -> [a]", "v:nub", ""),
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<div class=signature>Yours, A. Writer</div><p>b</p>",
        "<p class=src>Text with <code>code</code>.</p>",
        "<table><tr><td>a<td><div class=attr id=x>x</div></table>",
    ],
)
def test_signatures_without_an_anchor_begin_no_section(html: str) -> None:
    assert len(read(f"<h1>A</h1><p>a</p>{html}").sections) == 1


@pytest.mark.parametrize(
    "html",
    [
        "<div class=signature id=s>Yours,<br>A. Writer</div>",
        "<div class=spec id=s><p>Weighs <b>3</b> kg.</p></div>",
        "<div class=src id=s><pre><code>a\nb</code></pre></div>",
        f"<div class=spec id=s>{'<b>a</b>' * 500}</div>",
    ],
)
def test_boxes_and_letters_are_no_signatures(html: str) -> None:
    assert len(read(f"<h1>A</h1><p>a</p>{html}").sections) == 1


@pytest.mark.parametrize("link", ["Source", "edit", "[source]"])
def test_links_to_source_code_in_headings(link: str) -> None:
    html = f"<h1>A</h1><p>a</p><h2 id=s>Getting the page's <a href=/s>{link}</a></h2><p>b</p>"
    text = "Getting the page's" if link[0] == "[" else f"Getting the page's {link}"
    assert outline(html)[1][2] == text


def test_elements_around_others() -> None:
    tokens = tokenize("<div><p>a<br></p><p>b</p><ul><li>c</li></ul></div>")
    names = [tag.name for tag in tokens.tags]
    assert [tokens.parent_of(at) for at, name in enumerate(names) if name in ("p", "br", "ul")] == [
        0, 1, 0, 0,
    ]  # fmt: skip
    assert tokens.parent_of(names.index("li")) == names.index("ul")


def test_terms_in_groups_with_an_anchor() -> None:
    html = """<h1>Procs</h1><dl><div id="split,string"><dt><pre>proc <a href="x#split">split</a>(
      s: string): seq[string]</pre></dt><dd>Splits. <a class="link-seesrc" href=x>Source</a></dd>
      </div><div id="strip"><dt><pre>proc strip(s: string)</pre></dt><dd>Strips.</dd></div></dl>"""
    assert outline(html)[1:] == [
        (2, 0, "proc split( s: string): seq[string]", "split,string", "Splits."),
        (2, 0, "proc strip(s: string)", "strip", "Strips."),
    ]


def test_a_long_declaration_is_text_below_its_first_line() -> None:
    table = "".join(f"  ('ext{n}', 'type{n}'),\n" for n in range(200))
    html = f"""<h1>Consts</h1><dl><div id="mimes"><dt><pre>mimes = [
{table}]</pre></dt><dd>Known types.</dd></div></dl>"""
    code = f"```\nmimes = [\n{table}]\n```\n\nKnown types."
    assert outline(html)[1:] == [(2, 0, "mimes = [", "mimes", code)]


@pytest.mark.parametrize(
    ("title", "heading", "signature", "anchor", "names"),
    [
        ("", "class OptionParser", "def self.new(x)", "new(x)-class-method", "OptionParser.new"),
        ("", "class Array", "find → y", "method-i-find", "Array#find"),
        ("", "Class: Foo::Bar", "#run ⇒ Object", "run-instance_method", "Foo::Bar#run"),
        ("", "Module Stdlib.List", "val map : 'a", "val-map", "Stdlib.List.map"),
        ("", "Procs", "proc split(s: string)", "split,string", "split"),
    ],
)
def test_qualified_names_of_other_generators(
    title: str, heading: str, signature: str, anchor: str, names: str
) -> None:
    assert names in qualified_names(container_of(title, heading), signature, anchor)


@pytest.mark.parametrize("heading", ["class methods", "module documentation", "enum values"])
def test_headings_about_kinds_name_no_type(heading: str) -> None:
    assert container_of("", heading) == ""


PYDOCTOR = """<h1>template</h1><div id="childList">{}</div>"""
FUNCTION = """<div class="basefunction"><a name="pkg.{0}"> </a><a name="{0}"> </a>
<div class="functionHeader"><span class="py-keyword">def</span> <span>{0}</span>(write):
<a class="sourceLink" href="https://code.example/x">(source)</a>
<a class="headerLink" href="#{0}">¶</a></div>
<div class="docstring"><p>Runs {0}.</p></div></div>"""


def test_signatures_below_their_anchors() -> None:
    html = PYDOCTOR.format("".join(map(FUNCTION.format, ("flatten", "render"))))
    assert outline(html) == [
        (1, None, "template", None, ""),
        (2, 0, "def flatten(write):", "flatten", "Runs flatten."),
        (2, 0, "def render(write):", "render", "Runs render."),
    ]
    places = {name for section in read(html).sections for name in section.anchors}
    assert {"pkg.flatten", "pkg.render"} <= places


def test_a_term_with_its_description_inside() -> None:
    html = """<h2>Constants <small><a href="#" class="toggle">collapse</a></small></h2><dl>
      <dt id="GLOB">GLOB = <div class="docstring"><p>The files to read.</p></div></dt>
      <dd><pre>"lib/**"</pre></dd><dt id="BOM">BOM =</dt><dd><pre>"x"</pre></dd></dl>"""
    assert [(heading, content) for _, _, heading, _, content in outline(html)] == [
        ("Constants", ""),
        ("GLOB =", 'The files to read.\n\n```\n"lib/**"\n```'),
        ("BOM =", '```\n"x"\n```'),
    ]


def test_the_text_of_a_term_is_kept_where_the_page_is_read_again() -> None:
    page = f"""<main><h1>T</h1><dl><dt id=a>GLOB = <div>Copy</div></dt><dd>Edit</dd></dl>
      {"<p>Was this page helpful?</p>" * 3}</main>"""
    document = extract_document(page, URL, title="T")
    assert document is not None
    assert document.markdown.count("GLOB =") == 1
    assert document.fallbacks == 1


def refentry(name: str) -> str:
    return f"""<div class="refentry"><a name="{name}"></a><div class="titlepage"></div>
      <div class="refnamediv"><h2>Name</h2><p>{name} &#8212; Computes {name} of a shape.</p></div>
      <div class="refsynopsisdiv"><h2>Synopsis</h2><pre>geometry {name}(geometry g)</pre></div>
      <div class="refsect1"><a name="d-{name}"></a><h2>Description</h2><p>Text of {name}.</p></div>
      </div>"""


def test_parts_of_a_manual_on_one_page_are_below_each_other() -> None:
    html = f"""<div class="book"><h1>Manual</h1><div class="chapter"><h1>Chapter 1</h1><p>Lead.</p>
      <div class="sect1"><h2>Functions</h2>{refentry("ST_Area")}{refentry("ST_Buffer")}</div>
      <div class="sect1"><h2>Notes</h2><p>One.</p><h3>Flat</h3><p>Two.</p></div></div>
      <div class="chapter"><h1>Chapter 2</h1><p>End.</p></div></div>"""
    found = read(html, "Manual").sections
    tree = [(s.level, s.parent, s.heading) for s in found]
    assert tree == [
        (1, None, "Manual"),
        (2, 0, "Chapter 1"),
        (3, 1, "Functions"),
        (4, 2, "ST_Area"),
        (5, 3, "Synopsis"),
        (5, 3, "Description"),
        (4, 2, "ST_Buffer"),
        (5, 6, "Synopsis"),
        (5, 6, "Description"),
        (3, 1, "Notes"),
        (4, 9, "Flat"),
        (2, 0, "Chapter 2"),
    ]
    assert found[6].anchor == "ST_Buffer"
    assert found[6].content == "ST_Buffer — Computes ST_Buffer of a shape."


def test_a_manual_page_that_is_the_main_element() -> None:
    page = f"""<body><div class="refentry" id="SQL-SELECT"><a id="term"></a><div class="refnamediv">
      <h2><span>SELECT</span></h2><p>SELECT, TABLE — retrieve rows</p></div>
      <div class="refsect1"><h2>Description</h2><p>{"Retrieves rows from tables. " * 9}</p></div>
      </div></body>"""
    document = extract_document(page, URL, title="SELECT")
    assert document is not None
    found = document.sections
    assert [(s.level, s.parent, s.heading) for s in found] == [
        (2, None, "SELECT"),
        (2, None, "Description"),
    ]
    assert found[0].anchor == "SQL-SELECT"
