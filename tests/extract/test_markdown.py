from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from forager.extract.composition import extract_document
from forager.extract.markdown.escape import code_span, escape_line_start, escape_text, fence
from forager.extract.sections import split_markdown

URL = "https://docs.example.org/guide/page.html"


def markdown(html: str, url: str = URL) -> str:
    document = extract_document(f"<main>{html}</main>", url)
    return document.markdown if document else ""


def test_paragraphs_and_inline_elements() -> None:
    assert (
        markdown(
            "<p>One <b>bold </b>and <i>slanted</i>,\n <code>a  b</code> <del>old</del></p><p>Two"
        )
        == "One **bold** and *slanted*, `a b` ~~old~~\n\nTwo"
    )
    assert markdown("<p>a<br>b<br>") == "a  \nb"
    assert markdown("<p><b><b>x</b></b><q>said</q>") == "**x**“said”"
    assert markdown("<b>first<p>second</p></b>") == "**first**\n\n**second**"


def test_labels_that_only_their_style_parts() -> None:
    assert markdown("<p><span>id</span><span>string</span>") == "id string"
    assert markdown("<p><span>asyncio.</span><span>run</span>(<span>x</span><span>)</span>") == (
        "asyncio.run(x)"
    )
    assert markdown("<p>un<span>usual</span>ly") == "unusually"


def test_links_are_absolute() -> None:
    assert (
        markdown('<p><a href="../b.html#x">b</a> <a href=#here>here</a> <a href=mailto:a@b.c>m</a>')
        == "[b](https://docs.example.org/b.html#x)"
        " [here](https://docs.example.org/guide/page.html#here) [m](mailto:a@b.c)"
    )
    assert markdown('<p><a href="javascript:x()">run</a> <a href="">self</a> <a>none</a>') == (
        "run self none"
    )
    assert markdown('<p><a href="a (b).html">x</a>') == (
        "[x](https://docs.example.org/guide/a%20%28b%29.html)"
    )
    assert markdown("<p><a href=x>a ] b</a>") == r"[a \] b](https://docs.example.org/guide/x)"
    assert markdown("<p><code><a href=x>f()</a></code>") == (
        "[`f()`](https://docs.example.org/guide/x)"
    )


def test_links_of_a_page_with_parentheses_in_its_url() -> None:
    page = "https://docs.example.org/a(b/Set_(theory"
    assert markdown("<p><a href=x>x</a> <a href=x#y>y</a> <a href=#here>z</a>", page) == (
        "[x](https://docs.example.org/a%28b/x) [y](https://docs.example.org/a%28b/x#y)"
        " [z](https://docs.example.org/a%28b/Set_%28theory#here)"
    )


def test_a_link_around_blocks_is_written_once() -> None:
    assert markdown("<a href=x><h3>Card</h3><p>About it</p></a>") == (
        "### [Card](https://docs.example.org/guide/x)\n\nAbout it"
    )


def test_images_with_their_text() -> None:
    assert markdown("<p><img src=a.png alt='A  chart'>") == (
        "![A chart](https://docs.example.org/guide/a.png)"
    )
    assert markdown("<p>x<img src=i.png alt=''><img src=p.gif width=1>") == "x"
    assert markdown("<p><img src='data:image/png;base64,xx' data-src=b.png alt=B>") == (
        "![B](https://docs.example.org/guide/b.png)"
    )
    assert markdown("<p><img src='data:x' alt='Only text'>") == "Only text"


def test_lists() -> None:
    assert markdown("<ul><li>a<li><p>b</p><ul><li>c</ul><li>d</ul><p>e") == (
        "- a\n- b\n  - c\n- d\n\ne"
    )
    assert markdown("<ol start=9><li>i<li>j<p>more</p></ol>") == "9. i\n10. j\n\n    more"
    assert markdown("<ul><li>a<pre>x\ny</pre></ul>") == "- a\n\n  ```\n  x\n  y\n  ```"


def test_definition_lists_quotes_and_notes() -> None:
    assert markdown("<dl><dt>Term<dd>Meaning<dt><code>x</code><dd>Other</dl>") == (
        "**Term**\n\nMeaning\n\n**`x`**\n\nOther"
    )
    assert markdown(
        '<dl class=py><dt class="sig sig-object"><em>async</em> <b>gather</b>(*a)</dt>'
    ) == ("`async gather(*a)`")
    assert markdown("<blockquote><p>a<p>b</blockquote>c") == "> a\n>\n> b\n\nc"
    note = "<div class='admonition warning'><p class=admonition-title>Warning<p>Hot</div>"
    assert markdown(f"<p>{'word ' * 20}</p><p>x</p><p>y</p><p>z</p>{note}<p>a</p>").endswith(
        "> Warning\n>\n> Hot\n\na"
    )
    assert markdown("<details><summary>More</summary><p>inside</details>") == "**More**\n\ninside"


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<pre><code class='language-python'>x</code></pre>", "python"),
        ("<pre class='lang-js'>x</pre>", "js"),
        (
            "<div class='highlight-python3 x'><div class=highlight><pre>x</pre></div></div>",
            "python",
        ),
        ("<div class='highlight highlight-source-shell'><pre>x</pre></div>", "shell"),
        ("<pre class='brush: css notranslate'>x</pre>", "css"),
        ("<pre class='sourceCode haskell'><code>x</code></pre>", "haskell"),
        ("<pre data-lang=go>x</pre>", "go"),
        ("<div data-language=toml><pre>x</pre></div>", "toml"),
        ("<pre class='rust rust-example-rendered'><code>x</code></pre>", "rust"),
        ("<pre class='hljs'><code class='hljs cpp'>x</code></pre>", "cpp"),
        ("<div class='highlight-default'><pre>x</pre></div>", ""),
        ("<div class='code-block'><pre>x</pre></div>", ""),
        ("<pre>x</pre>", ""),
    ],
)
def test_code_blocks_keep_their_language(html: str, language: str) -> None:
    assert markdown(html) == f"```{language}\nx\n```"


def test_code_blocks_without_furniture() -> None:
    assert markdown("<pre><span class=lineno>1</span>a\n<span class=lineno>2</span>  b</pre>") == (
        "```\na\n  b\n```"
    )
    assert markdown("<pre><button>Copy</button><code>a<br>b</code></pre>") == "```\na\nb\n```"
    assert markdown("<pre><div>a</div><div>b</div></pre>") == "```\na\nb\n```"
    assert markdown(
        "<pre><span>1</span><span>import x</span>\n<span>2</span><span>x()</span></pre>"
    ) == ("```\nimport x\nx()\n```")
    assert markdown("<pre>1 one\n2 two</pre>") == "```\n1 one\n2 two\n```"
    assert markdown("<pre><span class=nav>nav</span>.go()</pre>") == "```\nnav.go()\n```"
    assert markdown("<pre>a ``` b</pre>") == "````\na ``` b\n````"
    assert markdown("<xmp><b>raw</b></xmp>") == "```\n<b>raw</b>\n```"


def test_colours_of_a_terminal_that_are_written_as_tags() -> None:
    session = (
        '$ <font color="#4E9A06">run</font> <u style="x:y">it</u>\n<b>[</b>&apos;a&apos;<b>]</b>'
    )
    escaped = session.replace("&", "&amp;").replace("<", "&lt;")
    assert markdown(f"<pre>{escaped}</pre>") == "```\n$ run it\n['a']\n```"
    assert markdown('<pre>&lt;font color="red">x&lt;/font></pre>') == (
        '```\n<font color="red">x</font>\n```'
    )


def test_code_in_a_table_of_line_numbers_is_code() -> None:
    html = """<div class=highlight-c><table class=highlighttable><tr>
      <td class=linenos><pre>1\n2</pre></td><td><pre>int a;\nint b;</pre></td></table></div>"""
    assert markdown(html) == "```c\nint a;\nint b;\n```"
    html = """<table class=lntable><tr><td><pre><span class=lnt>1\n</span></pre></td>
      <td><pre>x = 1</pre></td></table>"""
    assert markdown(html) == "```\nx = 1\n```"


def test_tables() -> None:
    html = """<table><caption>Modes</caption><thead><tr><th>Name<th>Use</thead>
      <tr><td>a|b<td>one<br>two<tr><td><code>x|y</code><td><ul><li>p<li>q</ul></table>"""
    assert markdown(html) == (
        "Modes\n\n| Name | Use |\n| --- | --- |\n| a\\|b | one<br>two |\n| `x\\|y` | - p<br>- q |"
    )
    assert markdown("<table><tr><td>1<td>2<tr><td>3</table>") == (
        "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |"
    )


def test_cells_that_span() -> None:
    html = """<table><tr><th>A<th>B<th>C<tr><td rowspan=2>x<td colspan=2>y<tr><td>p<td>q</table>"""
    assert markdown(html) == ("| A | B | C |\n| --- | --- | --- |\n| x | y |  |\n| x | p | q |")


def test_tables_that_lay_out_a_page_are_read_as_blocks() -> None:
    html = "<table><tr><td><h1>Title</h1><p>Text<td><p>More</table>"
    assert markdown(html) == "# Title\n\nText\n\nMore"
    assert markdown("<table><tr><td>only<tr><td>column</table>") == "only\n\ncolumn"


def test_math_is_tex() -> None:
    html = """<p>so <span class=katex><span class=katex-mathml><math><semantics><mi>x</mi>
      <annotation encoding="application/x-tex">x^2</annotation></semantics></math></span>
      <span class=katex-html aria-hidden=true>x2</span></span> it is"""
    assert markdown(html) == "so $x^2$ it is"
    assert markdown("<p><math alttext='a+b'><mi>a</mi></math>") == "$a+b$"


def test_headings_inside_other_elements() -> None:
    assert markdown("<ul><li><h3>Step</h3><p>Do it<li>next</ul>") == "### Step\n\nDo it\n\n- next"
    assert markdown("<blockquote><h4>Quoted</h4><p>x</blockquote>") == "> #### Quoted\n>\n> x"
    assert markdown("<h2>A <b>b</b> <code>c</code><a class=headerlink href=#a>¶</a></h2>x") == (
        "## A b `c`\n\nx"
    )
    assert markdown("<div role=heading aria-level=3>H</div>x") == "### H\n\nx"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("snake_case and __init__", r"snake_case and \_\_init\_\_"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("*args", r"\*args"),
        ("Vec<T> < x", r"Vec\<T> < x"),
        ("a `b`", r"a \`b\`"),
        ("C:\\dir and \\*", r"C:\dir and \\\*"),
        ("AT&T &copy;", r"AT&T \&copy;"),
        ("[x](y) [z]", r"[x\](y) [z]"),
    ],
)
def test_only_what_would_be_markup_is_escaped(text: str, escaped: str) -> None:
    assert escape_text(text) == escaped
    [rendered] = (token for token in MarkdownIt().parseInline(escaped))
    assert "".join(child.content for child in rendered.children or ()) == text


@pytest.mark.parametrize("line", ["# a", "- a", "+ a", "> a", "1. a", "12) a", "---", "===", "| a"])
def test_lines_that_look_like_blocks(line: str) -> None:
    tokens = MarkdownIt().parse(f"x\n\n{escape_line_start(line)}")
    assert [token.type for token in tokens if token.type.endswith("_open")] == [
        "paragraph_open"
    ] * 2


def test_lines_that_only_begin_like_blocks() -> None:
    for line in ("#include <x>", "-x", "1.5 times", "", "plain"):
        assert escape_line_start(line) == line


def test_code_with_backticks() -> None:
    assert code_span("a`b") == "``a`b``"
    assert code_span("`a`") == "`` `a` ``"
    assert fence("a\n````\nb", "md") == "`````md\na\n````\nb\n`````"


def test_long_markdown_is_cut_between_blocks() -> None:
    text = "\n\n".join(f"paragraph {number} " + "ä" * 50 for number in range(100))
    pieces = split_markdown(text, 2_000)
    assert len(pieces) > 2
    assert all(len(piece.encode()) <= 2_000 for piece in pieces)
    assert "\n\n".join(pieces) == text


def test_long_code_is_fenced_in_every_piece() -> None:
    text = "```python\n" + "\n".join(f"line_{number}()" for number in range(500)) + "\n```"
    pieces = split_markdown(text, 2_000)
    assert all(piece.startswith("```python\n") and piece.endswith("\n```") for piece in pieces)
    assert all(len(piece.encode()) <= 2_000 for piece in pieces)
    assert sum(piece.count("line_") for piece in pieces) == 500
