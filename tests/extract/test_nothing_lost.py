"""Pages of many generators: no text, title or code is lost, and no words are joined."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from forager.extract.composition import tokens_of
from forager.extract.content.repeated import RepeatedBlocks, blocks_of, learn
from forager.extract.document import Document, extract_reading

URL = "https://docs.example.org/guide/page.html"
SENTENCE = "The quick brown fox explains how to configure the frobnicator."


def read(body: str, title: str = "Page", repeated: RepeatedBlocks | None = None) -> Document:
    page = f"<!doctype html><title>{title}</title>{body}"
    reading = extract_reading(page.encode(), URL, "text/html", repeated=repeated, explain=True)
    assert reading.document is not None
    return reading.document


def headings(document: Document) -> list[str]:
    return [section.heading for section in document.sections if section.level]


def flags(count: int) -> str:
    return "".join(f"<li><a href='#f{n}'><code>-Wflag{n}</code></a></li>" for n in range(count))


# --- lists of links -------------------------------------------------------------------------------


def test_a_list_of_links_in_a_table_cell_is_kept() -> None:
    cells = f"<td><ul>{flags(4)}</ul></td><td><ul>{flags(5)}</ul></td>"
    page = f"<main><h1>Warnings</h1><p>These are:</p><table><tr>{cells}</tr></table></main>"
    assert read(page).markdown.count("-Wflag3") == 2


def test_a_list_of_links_in_prose_is_kept() -> None:
    page = f"<main><h1>Warnings</h1><p>The default is:</p><ul>{flags(20)}</ul></main>"
    assert "-Wflag19" in read(page).markdown


def test_a_list_of_links_below_a_heading_of_the_page_is_kept() -> None:
    page = f"<main><h1>A</h1><p>{SENTENCE}</p><h2>Enabled</h2><ul>{flags(5)}</ul></main>"
    assert "-Wflag4" in read(page).markdown


def test_a_table_of_contents_is_removed_and_explained() -> None:
    sections = "".join(f"<h2 id=s{n}>Chapter {n}</h2><p>{SENTENCE}</p>" for n in range(6))
    links = "".join(f"<li><a href='#s{n}'>Chapter {n}</a></li>" for n in range(6))
    document = read(f"<main><h1>A</h1><p>Lead.</p><ul>{links}</ul>{sections}</main>")
    assert "](" not in document.markdown
    assert [block.reason for block in document.removed] == ["a table of contents"]


# --- articles, objects, boxes ---------------------------------------------------------------------


def chapter(kind: str, name: str, paragraphs: int) -> str:
    return f"<div class={kind}><h2>{name}</h2>{f'<p>{SENTENCE} {name}.</p>' * paragraphs}</div>"


def test_reference_pages_in_a_manual_are_not_the_manual() -> None:
    pages = "".join(chapter("refentry", f"ST_F{n}", 3) for n in range(4))
    before, after = chapter("chapter", "Install", 9), chapter("chapter", "Questions", 9)
    page = f"<div class=book><h1>Manual</h1>{before}<div class=chapter>{pages}</div>{after}</div>"
    found = read(page, "Manual")
    assert headings(found)[:3] == ["Manual", "Install", "ST_F0"]
    assert headings(found)[-1] == "Questions"


def test_a_reference_page_is_the_page_beside_a_menu() -> None:
    links = "".join(f"<p><a href='{n}.html'>Page {n}</a></p>" for n in range(30))
    page = f"<div><h3>Pages</h3>{links}</div>{chapter('refentry', 'open', 5)}"
    found = read(page, "open")
    assert headings(found) == ["open"]
    assert "Page 1" not in found.markdown


def test_links_that_name_the_headings_below_them_are_a_table_of_contents() -> None:
    names = [f"Chapter {n}" for n in range(4)]
    links = "".join(
        f"<div class=Sect><a href='#c{n}'>{name}</a></div>" for n, name in enumerate(names)
    )
    text = "".join(f"<h2 id=c{n}>{name}</h2><p>{SENTENCE}</p>" for n, name in enumerate(names))
    found = read(f"<main><a id=top></a><div>{links}</div>{text}</main>")
    assert found.markdown.startswith("## Chapter 0")
    assert "top" in found.sections[0].anchors
    assert [block.reason for block in found.removed] == ["a table of contents"]


@pytest.mark.parametrize(
    "links",
    [
        "<p>Read these first:</p><p><a href=#c1>Chapter 1</a> <a href=#c2>Chapter 2</a></p>",
        "<p><a href=#c0>Chapter 0</a> <a href=#c7>Chapter 7</a></p>",  # some of the headings
        "<p><a href=#c2>Chapter 2</a> <a href=#c1>Chapter 1</a></p>",  # in another order
        "<p><a href=#c1>Start here</a> <a href=#c2>Go on</a></p>",  # with other words
        "<p><a href=#c1>Chapter 1</a> <a href=other.html#c2>Chapter 2</a></p>",
    ],
)
def test_links_that_are_no_table_of_contents_are_kept(links: str) -> None:
    text = "".join(f"<h2 id=c{n}>Chapter {n}</h2><p>{SENTENCE}</p>" for n in range(8))
    found = read(f"<main>{links}{text}</main>")
    assert not found.removed
    assert "](https://docs.example.org/guide/page.html#c" in found.markdown


def test_one_large_article_of_several_is_not_the_page() -> None:
    small = "<article><h4>open/1</h4><p>Opens.</p></article>"
    large = f"<article><h4>select/2</h4>{f'<p>{SENTENCE}</p>' * 20}</article>"
    page = f"""<div id=content><h1>ets</h1><h3>Description</h3>{f"<p>{SENTENCE} Before.</p>" * 9}
        <h3>Exports</h3>{small}{large}{small}</div>"""
    found = read(page, "ets")
    assert headings(found)[:3] == ["ets", "Description", "Exports"]
    assert found.markdown.count("Before.") == 9


def test_the_only_article_of_a_page_may_be_one_function() -> None:
    article = f"<article><h4>run/0</h4>{f'<p>{SENTENCE}</p>' * 4}</article>"
    page = (
        f"<div id=content><h1>m</h1><h3>Description</h3>{f'<p>{SENTENCE}</p>' * 5}{article}</div>"
    )
    assert headings(read(page, "m")) == ["m", "Description", "run/0"]


def test_text_in_an_object_without_data_is_shown() -> None:
    page = f"<main><h1>A</h1><p>Write <object> to embed.</p><p>{SENTENCE}</p></main>"
    assert SENTENCE in read(page).markdown
    fallback = f"<main><h1>A</h1><p>{SENTENCE}</p><object data=x.svg>No SVG.</object></main>"
    assert "No SVG" not in read(fallback).markdown


@pytest.mark.parametrize(
    "text",
    [
        "Use <code>mkfifo</code> or <code>mknod p</code>, then <code>cat</code> what they carry,"
        " and <code>rm</code> it when you need it no more.",
        "See <a href=/a>the manual of the named pipes of Linux</a> and of the other systems for"
        " all that is known about them.",
    ],
)
def test_a_box_of_short_pieces_of_text_is_kept(text: str) -> None:
    box = f"<div class=sidebar><p class=title><strong>BASICS</strong></p><div>{text}</div></div>"
    page = f"<main><h1>A</h1>{f'<p>{SENTENCE}</p>' * 20}{box}<p>{SENTENCE}</p></main>"
    assert "BASICS" in read(page).markdown


# --- titles ---------------------------------------------------------------------------------------


def learned(pages: list[str]) -> RepeatedBlocks:
    tokens = [tokens_of(LexborHTMLParser(page))[0] for page in pages]
    return learn([blocks_of(each) for each in tokens if each is not None])


def site(header: str) -> list[str]:
    pages = range(12)
    text = f"<section><h4>Description</h4><p>{SENTENCE} This is page number"
    return [f"{header.format(n)}{text} {n}.</p></section>" for n in pages]


@pytest.mark.parametrize(
    "header",
    [
        "<header><h3>Class</h3><h1><a href=index.html>Gtk</a><span class=sep></span>View{0}</h1>"
        "</header>",
        "<div class=titlepage><div><h2 class=title><a id=s{0}></a>9.{0}. <code>syslog</code></h2>"
        "</div></div>",
    ],
)
def test_a_title_that_differs_per_page_is_not_repeated(header: str) -> None:
    pages = [f"<div id=main>{page}</div>" for page in site(header)]
    repeated = learned(pages)
    found = read(pages[3], "View3 9.3. syslog", repeated)
    assert any("3" in heading for heading in headings(found))


def test_a_menu_whose_current_entry_differs_is_repeated() -> None:
    links = [[f"<a href=/{n}>Chapter {n}</a>" for n in range(9)] for _ in range(12)]
    for number, line in enumerate(links[:9]):
        line[number] = f"<b>Chapter {number}</b>"
    pages = [
        f"<div id=list>{' '.join(line)}</div><h1>T{n}</h1><p>{SENTENCE} {n}</p>"
        for n, line in enumerate(links)
    ]
    repeated = learned(pages)
    assert "Chapter" not in read(pages[2], repeated=repeated).markdown


def test_a_title_outside_the_main_element_with_headings_of_the_first_level() -> None:
    page = f"""<div class=document><h1 class=title>std/strutils</h1><div id=content>
        <p>{SENTENCE}</p><h1>Imports</h1><p>{SENTENCE}</p></div></div>"""
    assert headings(read(page, "std/strutils")) == ["std/strutils", "Imports"]


def test_a_title_that_is_no_heading() -> None:
    title = "<div class=title>Matrix&lt; T &gt; Class<div class=ingroups>Core » Dense</div></div>"
    page = f"""<div class=header><div class=headertitle>{title}</div></div>
        <div class=contents><h2>Detailed Description</h2><p>{SENTENCE}</p></div>"""
    found = headings(read(page, "Eigen: Matrix&lt; T &gt; Class"))
    assert found == ["Matrix< T > Class", "Detailed Description"]


def test_the_name_of_the_site_is_not_the_title() -> None:
    page = f"<h1>Site</h1><div id=content><h2>Setup</h2><p>{SENTENCE}</p></div>"
    assert headings(read(page, "Setup - Site")) == ["Setup"]


def test_operators_that_link_to_their_definitions_are_no_permalinks() -> None:
    links = "<a href='#a'><code>~a</code></a>, <a href='#b'>&lt;=</a><a href='#c'>¶</a>"
    page = f"<main><h1>A</h1><p>Like {links}</p><h2 id=d><a href='#d'>+</a></h2><p>Adds.</p></main>"
    document = read(page)
    assert f"Like [`~a`]({URL}#a), [<=]({URL}#b)\n" in document.markdown
    assert headings(document) == ["A", "+"]


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<dl><dt><strong>Wn</strong><span class=classifier>array_like</span></dt><dd>x</dd></dl>",
         "Wn : array_like"),
        ("<p><span>Gtk</span><span class=sep></span><span>Widget</span></p>", "Gtk Widget"),
        ("<p>one<span style='display:block'>two</span>three</p>", "one two three"),
        ("<p>type <tt>INT\n</tt>in <code>a <b>b</b> </code>c<code> d</code></p>",
         "type `INT` in `a b` c `d`"),
        ("<p><a href=/a>one</a><a href=/b>two</a></p>",
         "[one](https://docs.example.org/a) [two](https://docs.example.org/b)"),
        ("<p><span>SQL</span>Alchemy <b>S</b>QL f<sub>x</sub></p>", "SQLAlchemy **S**QL fx"),
    ],
)  # fmt: skip
def test_words_that_a_style_separates(html: str, text: str) -> None:
    assert text in read(f"<main><h1>A</h1><p>{SENTENCE}</p>{html}</main>").markdown


def test_joiners_inside_a_word_of_a_heading_stay() -> None:
    page = (
        f"<main><h1>\u0647\u200c\u0647\u200c <a href='#a'>\u200b</a></h1><p>{SENTENCE}</p></main>"
    )
    assert headings(read(page)) == ["\u0647\u200c\u0647"]


def test_a_heading_whose_parts_a_style_separates() -> None:
    name = "<a href=/>Gtk</a><span class=sep role=presentation></span>Widget<span class=sep></span>"
    page = f"<main><h1>{name}set_visible</h1><p>{SENTENCE}</p></main>"
    assert headings(read(page)) == ["Gtk Widget set_visible"]


def test_the_first_section_of_a_manual_page_may_stand_in_its_head() -> None:
    def manual(head: str, beside: str = "") -> Document:
        text = f"<div class=sect1><h2>DESCRIPTION</h2>{f'<p>{SENTENCE}</p>' * 9}</div>"
        page = f"""<div id=header><h1>git-add(1)</h1>{head}</div>{beside}
            <div id=content>{text}</div><div id=footer>Last updated 2024-05-31</div>"""
        return read(page, "git-add(1)")

    name = "<h2>NAME</h2><div><p>git-add - Add file contents to the index</p></div>"
    found = manual(name)
    assert headings(found) == ["git-add(1)", "NAME", "DESCRIPTION"]
    assert found.sections[1].content == "git-add - Add file contents to the index"
    assert "Last updated" not in found.markdown
    assert headings(manual("<h2>Version 2</h2>")) == ["git-add(1)", "DESCRIPTION"]
    links = "".join(f"<p><a href=p{n}.html>Another page {n}</a></p>" for n in range(30))
    assert "Another page" not in manual(name, f"<div>{links}</div>").markdown
