from __future__ import annotations

import pytest

from forager.extract.composition import extract_document
from forager.extract.content.boilerplate import is_boilerplate_phrase
from forager.extract.document import Document
from forager.extract.metadata import detect_language

URL = "https://docs.example.org/guide/page.html"
TEXT = "The quick brown fox explains how to configure the frobnicator. " * 5
CHROME = """<header><a href=/>Home</a></header><nav><ul><li><a href=/a>Menu one</a></ul></nav>"""
FOOTER = "<footer>Footer words</footer>"


def read(html: str) -> Document:
    document = extract_document(html, URL)
    assert document is not None
    return document


# what each generator writes around the text, reduced to the bones
THEMES = {
    "sphinx": """<div class=document><div class=documentwrapper><div class=bodywrapper>
        <div class=body role=main>{}</div></div></div><div class=sphinxsidebar>SIDE</div></div>""",
    "read the docs": """<div class=wy-nav-content><div class=rst-content>
        <div role=navigation><ul class=wy-breadcrumbs><li>SIDE</ul></div>
        <div role=main class=document><div itemprop=articleBody>{}</div></div>
        <footer><div class=rst-footer-buttons>SIDE</div></footer></div></div>""",
    "furo": """<div class=page><aside class=sidebar-drawer>SIDE</aside><div class=main>
        <div class=content><div class=article-container><article role=main id=furo-main-content>{}
        </article></div><footer>SIDE</footer></div><aside class=toc-drawer>SIDE</aside></div>""",
    "pydata": """<main id=main-content class=bd-main><div class=bd-content>
        <div class=bd-article-container><div class=bd-header-article>SIDE</div>
        <article class=bd-article>{}</article></div><dialog>SIDE</dialog></div></main>""",
    "mkdocs": """<div class=container><div class=col-md-3><div class=bs-sidebar>SIDE</div></div>
        <div class=col-md-9 role=main>{}</div></div>""",
    "material": """<main class=md-main><div class=md-sidebar><nav>SIDE</nav></div>
        <div class=md-content><article class="md-content__inner md-typeset">
        <a class="md-content__button edit-link" href=/edit>SIDE</a>{}</article></div></main>""",
    "docusaurus": """<main><div class=docItemContainer><article><nav class=breadcrumbs>SIDE
        </nav><div class="theme-doc-markdown markdown">{}</div><footer>SIDE</footer></article>
        <nav class=pagination-nav>SIDE</nav></div></main>""",
    "vitepress": """<div class=VPDoc><div class=aside>x</div><main class=main>
        <div class="vp-doc">{}</div></main><footer class=VPDocFooter>SIDE</footer></div>""",
    "starlight": """<main><div class=content-panel>{}</div><footer><div class=pagination-links>SIDE
        </div></footer></main><aside class=right-sidebar>SIDE</aside>""",
    "mintlify": """<div id=content-area><header>x</header><div class="mdx-content prose">{}</div>
        <div class=feedback-toolbar><p>Was this page helpful?</p></div></div>""",
    "docsy": """<main><div class=td-content>{}<div class=feedback--prompt>SIDE</div></div></main>
        <aside class=td-sidebar-toc>SIDE</aside>""",
    "just the docs": """<div class=side-bar>SIDE</div><div class=main><div id=main-content>
        <main>{}</main><footer>SIDE</footer></div></div>""",
    "rustdoc": """<nav class=sidebar>SIDE</nav><main><div class=width-limiter>
        <section id=main-content class=content>{}</section></div></main>""",
    "doxygen": """<div id=top>x</div><div id=doc-content><div class=header>y</div>
        <div class=contents>{}</div></div>""",
    "antora": """<main class=article><div class=toolbar>SIDE</div><div class=content>
        <aside class="toc sidebar"><a href="#a">SIDE</a></aside><article class=doc>{}</article>
        </div></main>""",
    "mdbook": """<div id=page-wrapper><div id=menu-bar>x</div><div id=content class=content>
        <main>{}</main><nav class=nav-wrapper>SIDE</nav></div></div>""",
    "mediawiki": """<div id=content class=mw-body><h1 id=firstHeading>T</h1>
        <div id=bodyContent><div id=siteSub class=noprint>SIDE</div><div id=mw-content-text>
        <div class=mw-parser-output>{}</div></div><div id=catlinks>SIDE</div></div></div>""",
    "docbook": """<div class=navheader><table><tr><td>SIDE</table></div>
        <div class=sect1 id=X>{}</div><div class=navfooter>SIDE</div>""",
    "confluence": """<div id=main><div id=breadcrumb-section>SIDE</div>
        <div id=main-content class=wiki-content>{}</div></div>""",
    "github": """<div id=readme><article class="markdown-body entry-content">{}</article></div>
        <div class=Layout-sidebar><p>x</p></div>""",
    "no theme": """<div id=top><ul><li><a href=/x>x</a></ul></div><div><div>{}</div></div>""",
}


@pytest.mark.parametrize("theme", THEMES)
def test_the_text_of_every_known_theme_and_nothing_around_it(theme: str) -> None:
    content = f"<h1>Title here</h1><p>{TEXT}</p><pre>code()</pre>"
    page = f"<body>{CHROME}{THEMES[theme].replace('{}', content)}{FOOTER}</body>"
    markdown = read(page).markdown
    assert markdown.startswith("# Title here\n\nThe quick brown fox")
    assert "```\ncode()\n```" in markdown
    for unwanted in ("SIDE", "Menu one", "Footer words", "helpful"):
        assert unwanted not in markdown


def test_a_wrapper_named_like_boilerplate_is_not_dropped_with_its_content() -> None:
    page = f"<div class=sidebar-layout><main class=has-toc><h1>A</h1><p>{TEXT}</p></main></div>"
    assert TEXT.strip() in read(page).markdown
    page = f"<body><div class=feedback><h1>A</h1><p>{TEXT}</p></div></body>"
    assert TEXT.strip() in read(page).markdown


def test_sections_about_boilerplate_are_content() -> None:
    page = f"""<main><h1>Web</h1><p>{TEXT}</p>
      <section id=cookies><h2>Cookies</h2><p>Set one with set_cookie.</p></section>
      <div class=section id=pagination><h2>Pagination</h2><p>Pages have numbers.</p></div></main>"""
    markdown = read(page).markdown
    assert "Set one with" in markdown
    assert "Pages have numbers." in markdown


def test_contents_of_the_page_go_and_contents_of_the_book_stay() -> None:
    own = "".join(f"<li><a href='#s{number}'>Part {number}</a>" for number in range(5))
    other = "".join(f"<li><a href='s{number}.html'>Chapter {number}</a>" for number in range(5))
    page = f"<main><h1>A</h1><div class=toc><ul>{own}</ul></div><p>{TEXT}</p></main>"
    assert "Part 1" not in read(page).markdown
    page = f"<main><h1>A</h1><ul>{own}</ul><p>{TEXT}</p></main>"
    assert "Part 1" not in read(page).markdown
    page = f"<main><h1>A</h1><div class=toc><ul>{other}</ul></div><p>{TEXT}</p></main>"
    assert "- [Chapter 1](https://docs.example.org/guide/s1.html)" in read(page).markdown


def test_hidden_elements_go_and_panels_of_tabs_stay() -> None:
    page = f"""<main><p>{TEXT}</p><div hidden>secret</div><p style="display: none">gone</p>
      <span aria-hidden=true>icon</span>
      <div role=tabpanel hidden><p>pip install forager</p></div></main>"""
    markdown = read(page).markdown
    assert "pip install" in markdown
    for unwanted in ("secret", "gone", "icon"):
        assert unwanted not in markdown


def test_pieces_that_a_server_sent_late_stand_in_their_places() -> None:
    page = f"""<main><h1>A</h1><p>{TEXT}</p>
      <!--$?--><template id="B:0"></template><p>wait</p><!--/$-->
      <p>After.</p></main><div hidden id="S:0"><pre>late()</pre></div>"""
    markdown = read(page).markdown
    assert "wait" not in markdown
    assert markdown.index("late()") < markdown.index("After.")


def test_the_title_beside_the_main_element_names_its_first_section() -> None:
    page = f"<h1>Sudo</h1><div id=mw-content-text><p>{TEXT}</p></div>"
    document = extract_document(page, URL, title="Sudo - Wiki")
    assert document is not None
    assert document.sections[0].heading == "Sudo"


def test_labels_that_a_menu_repeats_are_no_prose() -> None:
    label = "Toggle child pages in navigation"
    button = f'<label><div class="visually-hidden">{label}</div></label>'
    menu = "".join(f"<li><a href=p{n}>Menu {n}</a>{button}</li>" for n in range(12))
    entries = "".join(
        f"<li><a href=c{n}><i><b><code>Part {n}</code></b></i></a></li>" for n in range(20)
    )
    html = (
        f'<aside class="sidebar-drawer"><ul>{menu}</ul></aside><div class="main">'
        f'<article role="main"><h1>Tensor</h1><p>A module of symbolic objects</p>'
        f"<h2>Contents</h2><ul>{entries}</ul></article></div>"
    )
    document = read(html)
    assert document.chosen_by == "article"
    assert "Part 7" in document.markdown
    assert "Menu 7" not in document.markdown


def test_several_articles_are_read_together() -> None:
    page = (
        f"<body>{CHROME}<div><article><p>One {TEXT}</article><article><p>Two {TEXT}</article></div>"
    )
    markdown = read(page).markdown
    assert "One The" in markdown
    assert "Two The" in markdown


@pytest.mark.parametrize(
    "phrase",
    [
        "Was this page helpful?",
        "**Last updated** on 3 May 2024",
        "[Edit this page on GitHub](https://example.org/edit)",
        "On this page",
        "Copy",
        "← Previous",
        "Next: Making queries",
        "[Next Making queries](https://example.org/queries)",
        "© 2024 Example Corp.",
        "5 min read",
    ],
)
def test_phrases_of_buttons_and_labels(phrase: str) -> None:
    assert is_boilerplate_phrase(phrase)


@pytest.mark.parametrize(
    "phrase",
    [
        "Next, open the file.",
        "Copy the file to the server and restart it.",
        "This page describes the API.",
        "Print the result",
        "Is this helpful for large tables? It depends on the planner.",
        "Previous versions stored it elsewhere.",
        "[Next](https://example.org/next) comes the file.",
        "",
    ],
)
def test_phrases_of_content(phrase: str) -> None:
    assert not is_boilerplate_phrase(phrase)


def test_links_that_look_like_buttons_are_not_read() -> None:
    page = f"""<main><h1>A</h1><p>{TEXT}</p><p><a class="button primary" href=/go>Start free</a></p>
      <p>See <a class=button-guide href=/b>buttons</a> and <a href=/c>links</a>.</p></main>"""
    markdown = read(page).markdown
    assert "Start free" not in markdown
    assert "See [buttons](" in markdown


def test_names_that_buttons_share() -> None:
    page = f"<main><h1>A</h1><p>{TEXT}</p><h2>copy</h2><p>Copies.</p><dl><dt>next<dd>Goes on.</dl>"
    markdown = read(page).markdown
    assert "## copy" in markdown
    assert "**next**" in markdown


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            "The server is started with this command, and it will listen on the port that you set.",
        ),
        (
            "de",
            "Der Server wird mit diesem Befehl gestartet und ist dann auf dem Port zu erreichen.",
        ),
        (
            "fr",
            "Le serveur est lancé par cette commande et les clients sont dans la liste pour vous.",
        ),
        (
            "es",
            "El servidor se inicia con la orden y los clientes que están en la lista para el uso.",
        ),
        ("ja", "サーバーはこのコマンドで起動します。"),
        ("zh", "服务器通过此命令启动。"),
        ("ru", "Сервер запускается этой командой."),
        ("ko", "서버는 이 명령으로 시작됩니다."),
    ],
)
def test_language_by_script_and_words(language: str, text: str) -> None:
    assert detect_language(f"{text} " * 4) == language


def test_no_language_is_guessed_from_little() -> None:
    assert detect_language("init open close") is None
    assert detect_language("x = 1 " * 100) is None


def test_boxes_of_a_text_that_are_called_sidebars() -> None:
    page = """<main><h1>Servers</h1><p>Text of the page.</p><div class=sidebar><p class=title>
      Policy</p><p>Packages may not change a configuration file that belongs to another one.</p>
      <p>See <a href=a>the manual</a>.</p></div><p>More text.</p></main>"""
    assert "Packages may not change" in read(page).markdown


@pytest.mark.parametrize(
    "sidebar",
    [
        "<ul><li><a href=a>First chapter of the book about servers and their configuration</a>",
        "<form><input></form><p>Search the documentation of this project for words and names.</p>",
    ],
)
def test_menus_that_are_called_sidebars(sidebar: str) -> None:
    text = "<p>Text.</p>" * 9
    page = f"<main><h1>A</h1>{text}<div class=sidebar>{sidebar}</div>{text}</main>"
    assert read(page).markdown.removeprefix("# A").split() == ["Text."] * 18


@pytest.mark.parametrize(
    "bar",
    [
        "<a href=a>top</a> contents <a href=b>← prev</a> <a href=c>up</a> <a href=d>next →</a>",
        "<p><a href=a>Home</a> | <a href=b>Index</a> | <a href=c>Next</a></p>",
        "<p class='naviNextPrevious'><a href=a>Statements</a> ◦ <a href=b>Tables</a></p>",
        "<div class=navsettop><a href=a>Statements</a> <a href=b>Tables</a></div>",
        "<ul class=docnav><li><a href=a>Home</a></li><li><a href=b>Next A.2</a></li></ul>",
    ],
)
def test_links_to_the_neighbors_of_a_page(bar: str) -> None:
    page = f"<main>{bar}<h1>A</h1><p>{TEXT * 9}</p>{bar}</main>"
    assert read(page).markdown == f"# A\n\n{(TEXT * 9).strip()}"


def test_prose_about_the_next_page_is_kept() -> None:
    page = "<main><h1>A</h1><p>Next, top up the index.</p><p>Home</p></main>"
    assert read(page).markdown == "# A\n\nNext, top up the index.\n\nHome"


def test_blanks_in_code_separate_words() -> None:
    page = "<main><h1>7.10<tt>&nbsp;</tt>Modules</h1><p>a<code> </code>b</p></main>"
    assert read(page).markdown == "# 7.10 Modules\n\na b"


def test_separators_of_links_that_are_left_out() -> None:
    page = """<main><h1>A</h1><p>Text.</p><p><a class=tooltip href=a>a</a>,
      <a class=tooltip href=b>b</a>, <a class=tooltip href=c>c</a></p></main>"""
    assert read(page).markdown == "# A\n\nText."
