"""No rule empties a page or separates a heading from its text, whatever the class names."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.audit import audit_page
from forager.extract.content.boilerplate import ElementVerdict, verdict_of
from forager.extract.document import Document, extract_reading
from forager.extract.losses import count_losses
from forager.extract.sections import Section

URL = "https://docs.example.org/guide/page.html"
SENTENCE = "The quick brown fox explains how to configure the frobnicator."
MENU = "<ul>" + "".join(f"<li><a href='/p{n}'>Chapter number {n}</a>" for n in range(300)) + "</ul>"


def read(html: str, title: str = "Page - Site") -> Document:
    page = f"<!doctype html><title>{title}</title>{html}"
    document = extract_reading(page.encode(), URL, "text/html").document
    assert document is not None
    return document


def headings(html: str) -> list[str]:
    return [section.heading for section in read(html).sections if section.level]


# --- faults that were found on real sites ---------------------------------------------------------


@pytest.mark.parametrize("state", ["Sidebar--expanded", "sidebar", "has-sidebar nav", "toc-open"])
def test_a_state_class_on_the_outermost_wrapper(state: str) -> None:
    text = f"<h1>Title</h1><p>{SENTENCE}</p>"
    for content in (text, f"<main>{text}</main>", f"<div class=content>{text}</div>"):
        page = f"<div class='page {state}'><nav>{MENU}</nav><div>{MENU}</div>{content}</div>"
        assert SENTENCE in read(page).markdown


def test_a_heading_that_links_back_to_the_contents() -> None:
    html = f"""<main><h1>FAQ</h1><section id=q1><h2>
      <a class=toc-backref href='#toc-entry-1' role=doc-backlink>What is it?</a>
      <a class=headerlink href='#q1'>¶</a></h2><p>{SENTENCE}</p></section></main>"""
    found = read(html).sections[-1]
    assert (found.heading, found.anchor, found.content) == ("What is it?", "q1", SENTENCE)


@pytest.mark.parametrize(
    "heading", ["Create Pull Request", "Report a bug", "Share", "Next: more", "Feedback", "Print"]
)
def test_headings_that_read_like_buttons(heading: str) -> None:
    page = f"<main><h1>A</h1><p>{SENTENCE}</p><h2>{heading}</h2><p>{SENTENCE}</p></main>"
    assert headings(page) == ["A", heading]
    parent = f"<main><h1>A</h1><p>{SENTENCE}</p><h2>{heading}</h2><h3>B</h3></main>"
    assert headings(parent) == ["A", heading, "B"]


def test_a_label_with_nothing_below_it_is_no_heading() -> None:
    page = f"<main><h1>A</h1><p>{SENTENCE}</p><h2>Was this page helpful?</h2></main>"
    assert headings(page) == ["A"]


def test_links_to_the_page_itself_inside_prose() -> None:
    links = "".join(f"<li><a href='#f{n}'>function number {n}</a>" for n in range(5))
    page = f"<main><h1>A</h1><p>These functions may fail:</p><ul>{links}</ul><p>{SENTENCE}</p>"
    assert "function number 3" in read(page).markdown


def test_a_page_about_copyright() -> None:
    lines = "".join(f"<p>Copyright © {year} Example Foundation. All rights reserved.</p>"
                    for year in range(2001, 2006))  # fmt: skip
    document = read(f"<main><h1>Copyright</h1><p>This software is:</p>{lines}</main>")
    assert document.markdown.count("©") == 5
    long = f"<main><h1>A</h1><p>{SENTENCE * 9}</p><h2>Legal</h2><p>© 2024 Example Corp.</p></main>"
    assert "© 2024" in read(long).markdown
    foot = f"<main><h1>A</h1><p>{SENTENCE * 9}</p><p>© 2024 Example Corp.</p></main>"
    assert "© 2024" not in read(foot).markdown


def test_signs_of_permalinks_are_no_part_of_headings() -> None:
    for sign in ("#", "¶", "§", "link", "[Permalink]"):
        page = f"<main><h2>Open<span><a class=mark href='#o' id=o>{sign}</a></span></h2><p>x</main>"
        assert headings(page) == ["Open"]
        assert f"{sign}" not in read(page).markdown.removeprefix("## ")
    page = "<main><h2 id=l><a href='#l'>Link</a></h2><p>x</main>"
    assert headings(page) == ["Link"]


def test_the_heading_above_the_densest_element() -> None:
    entries = f"<dl>{'<dt>name<dd>' + SENTENCE}</dl>" * 9
    page = f"<div><div><h2>20.12. Locks</h2></div><div><p>Lead.</p><div>{entries}</div></div></div>"
    assert headings(page) == ["20.12. Locks"]


def test_text_that_looks_like_a_link_is_escaped() -> None:
    page = f"<main><h1>[x](y)</h1><p>see [x](y) {SENTENCE}</p></main>"
    assert r"# [x\](y)" in read(page).markdown
    assert r"see [x\](y)" in read(page).markdown


def test_a_fallback_is_counted() -> None:
    prose = f"<p>{SENTENCE}</p>" * 20
    page = f"<main><p>{SENTENCE}</p></main><div>{prose}</div>"
    document = read(page)
    assert document.markdown.count(SENTENCE) >= 20
    assert document.fallbacks == 1
    assert read(f"<main>{prose}</main>").fallbacks == 0


# --- any page -------------------------------------------------------------------------------------

NAMES = (
    "sidebar toc nav content main article page-content Sidebar--open feedback menu header body"
    " footer-nav prose has-toc breadcrumbs wrapper hero related-pages toolbar container next"
    " copy-button search cookie-banner section tab-content modal share toc-entry"
)
CLASSES = st.sampled_from(sorted(NAMES.split()))


@dataclass(frozen=True, slots=True)
class Generated:
    html: str
    headings: list[str]
    sentences: list[str]


@st.composite
def pages(draw: st.DrawFn) -> Generated:
    """Headings with a paragraph each, inside wrappers that are called anything, beside a menu."""
    names: list[str] = []
    html = ""
    for number in range(draw(st.integers(1, 6))):
        heading, sentence = f"Subject {number}", f"{SENTENCE} Number {number}."
        names.append(heading)
        level = draw(st.integers(1, 4))
        inner = draw(st.sampled_from(
            ["{}", "<a href='#top'>{}</a>", "<a class=toc-backref href='#t'>{}</a>",
             "<span class=nav>{}</span>", "{}<a class=headerlink href='#x'>¶</a>",
             "{}<button>Copy</button>", "<a class=hash-link href='#x'>#</a>{}"]
        )).format(heading)  # fmt: skip
        title = f"<h{level} class='{draw(CLASSES)}'>{inner}</h{level}>"
        if draw(st.booleans()):
            title = f"<div class='{draw(CLASSES)}'>{title}</div>"
        html += f"{title}<p>{sentence}</p>"
    for _ in range(draw(st.integers(0, 4))):
        html = f"<div class='{draw(CLASSES)} {draw(CLASSES)}'>{html}</div>"
    if draw(st.booleans()):
        html = f"<{(tag := draw(st.sampled_from(['main', 'article', 'section'])))}>{html}</{tag}>"
    menu = f"<nav>{MENU}</nav>" if draw(st.booleans()) else ""
    sentences = [f"{SENTENCE} Number {number}." for number in range(len(names))]
    return Generated(f"<body>{menu}{html}</body>", names, sentences)


@given(pages())
def test_headings_and_text_survive_whatever_they_are_called(page: Generated) -> None:
    document = read(page.html)
    found = [section for section in document.sections if section.level]
    assert [section.heading for section in found] == page.headings
    assert [_first_line(section) for section in found] == page.sentences


def _first_line(section: Section) -> str:
    return section.content.partition("\n")[0]


@given(pages())
def test_the_audit_agrees(page: Generated) -> None:
    audit = audit_page(page.html.encode(), URL, "text/html")
    assert not audit.lost_headings
    assert not audit.is_empty
    assert not audit.is_gutted


@given(pages())
def test_no_word_is_lost_that_no_rule_removed(page: Generated) -> None:
    losses = audit_page(page.html.encode(), URL, "text/html").losses
    assert losses.words
    assert not losses.lost_words
    assert not losses.lost


PIECES = st.sampled_from(
    [
        "<p>{0} text</p>", "<ul><li><a href='#{0}'>{0}</a><li>{0} item</ul>", "<pre>{0} code</pre>",
        "<table><tr><td>{0}<td><ul><li><a href='#x{0}'>{0}</a></ul></table>",
        "<dl><dt id={0}>{0}<dd>{0} text</dl>", "<h2 id=h{0}>{0}</h2>",
        "<h3>{0}<a href='#'>#</a></h3>",
        "<blockquote>{0}</blockquote>", "<div class=sidebar><p>{0} in a box</p></div>",
        "<form>{0} <button>{0} button</button></form>", "<nav><a href=/>{0}</a></nav>",
        "<p><code>{0}<br>second {0}</code></p>", "<object>{0} shown</object>", "<p>Copy</p>",
        "<article><h4>{0}</h4><h3>Types</h3><p>{0} text</p></article>", "<p hidden>{0}</p>",
        "<span class=math>\\({0}^2\\)</span>", "<div class=title>{0}</div>",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12), st.sampled_from(["main", "article", "div", "body"]))
def test_every_visible_word_is_kept_or_explained(pieces: list[str], name: str) -> None:
    body = "".join(piece.format(f"word{number}") for number, piece in enumerate(pieces))
    page = f"<title>Page</title><{name}><h1>Page</h1><p>{SENTENCE}</p>{body}</{name}>"
    losses = audit_page(page.encode(), URL, "text/html").losses
    assert not losses.lost_words
    assert not losses.lost


@pytest.mark.parametrize(
    "html",
    [
        "<pre>See [some link](http://example.com/page) here</pre>",
        "<p>See [some link](http://example.com/page) here</p>",
        "<p>lists of <a href=/lw>lw</a>s and file.h<a href=#n><sup>97</sup></a></p>",
        "<pre>1 const a = 1\n2$b = 2</pre>",
        "<pre>$ &lt;font color=&quot;#ab0071&quot;&gt;fastapi&lt;/font&gt;</pre>",
        "<p>do_before_<math><i>abc</i></math> it</p>",
        # what may begin a fence is read in one way
        f"<pre>{'> ' * 60}quoted</pre>",
    ],
)
def test_the_audit_finds_no_loss_where_nothing_is_lost(html: str) -> None:
    page = f"<title>Page</title><main><h1>Page</h1><p>{SENTENCE}</p>{html}</main>"
    reading = extract_reading(page.encode(), URL, "text/html", explain=True)
    assert not count_losses(page, reading).lost_count


def test_the_audit_finds_a_word_that_is_lost() -> None:
    html = f"<title>Page</title><main><h1>Page</h1><p>{SENTENCE}</p></main>"
    reading = extract_reading(html.encode(), URL, "text/html", explain=True)
    shown = html.replace("</main>", "<p>missing</p><ul><li>gone item</ul><pre>int x;</pre></main>")
    losses = count_losses(shown, reading)
    assert losses.lost_words == ("gone", "int", "item", "missing", "x")
    assert dict(losses.lost) == {"code": ("intx",), "list item": ("goneitem",)}


@given(pages())
def test_the_same_page_gives_the_same_document(page: Generated) -> None:
    assert read(page.html) == read(page.html)


def test_a_label_inside_a_heading_is_not_a_lost_heading() -> None:
    tip = "<span class=tooltip>Notable traits: impl Iterator for Map</span>"
    page = f"""<main><h1>Map</h1><p>An iterator over mapped values, made by a method.</p>
        <h4>fn map(self) -> Map{tip} where Self: Sized</h4><p>Maps each value.</p>
        <h4>Lost words{tip}</h4><p>Text that follows.</p></main>"""
    kept = audit_page(page.encode(), URL, "text/html")
    assert kept.headings == 3
    assert not kept.lost_headings


def test_a_missing_heading_is_lost_even_if_it_begins_and_ends_as_another() -> None:
    page = """<main><h1>Title</h1><p>Text of the page that is long enough to be kept.</p>
        <h2>Install on Linux</h2><p>Use a package.</p></main>
        <div class=sidebar><h2>Install the tools on Linux</h2></div>"""
    audit = audit_page(page.encode(), URL, "text/html")
    assert audit.lost_headings == ("Install the tools on Linux",)


def test_a_title_that_is_repeated_is_not_a_lost_heading() -> None:
    page = """<title>std/exits</title><div id=top><h1>std/exits</h1></div><div id=content>
        <h1>Imports</h1><p>Text of the page that is long enough to be kept.</p></div>"""
    assert not audit_page(page.encode(), URL, "text/html").lost_headings


def test_lines_of_a_table_cell_are_not_lost() -> None:
    lines = "<br>".join(f"<code><a href=#a{n}>keyword_{n}</a></code>" for n in range(30))
    page = f"<main><h1>Words</h1><table><tr><td>{lines}</td><td>more</td></tr></table></main>"
    assert not audit_page(page.encode(), URL, "text/html").losses.lost_count


def test_text_before_several_articles_is_kept() -> None:
    article = "<article><h4>f{0}(X) -> Y</h4><p>Encodes a message of kind {0}.</p></article>"
    functions = "".join(article.format(number) for number in range(8))
    page = f"""<div id=menu><a href=/>Home</a></div><div id=content><h1>codec</h1>
        <h3>Description</h3><p>Read this before you call one of the functions.</p>
        <h3>Exports</h3><div class=exports>{functions}</div></div>"""
    found = read(page).sections
    assert [section.heading for section in found][:3] == ["codec", "Description", "Exports"]
    assert sum(section.level == 4 for section in found) == 8


def test_signatures_in_paragraphs_of_source_code_are_kept() -> None:
    function = """<p class=src><a id=f{0}>f{0}</a> :: [a] -> b <a class=src href=/s>Source</a></p>
        <div class=doc><p>Combines all elements of list {0} into one value.</p></div>"""
    functions = "".join(function.format(number) for number in range(12))
    document = read(f"<div id=content><h1>Documentation</h1>{functions}</div>")
    assert document.markdown.replace("\\", "").count(" :: [a] -> b") == 12
    assert "Source" not in document.markdown


def test_the_main_element_is_kept_whatever_its_class() -> None:
    assert verdict_of("div", "withsidebar", "main") is ElementVerdict.KEEP
    assert verdict_of("div", "withsidebar", "") is ElementVerdict.DROP
