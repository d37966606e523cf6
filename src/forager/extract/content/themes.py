"""Elements in which documentation themes put their content, by ids, classes, roles and tags.

Names are those of generators and common ones, never of sites. A higher rank is closer to the text
alone: the `<main>` of many themes also has breadcrumbs, contents and feedback.
"""

from __future__ import annotations

from forager.extract.text import name_set

TEXT = 4  # the element that a generator wraps around the converted text alone
BODY = 3  # the text of the article
MAIN = 2  # the main part of the page
LIKELY = 1  # a common name

_CLASSES = {
    TEXT: name_set(
        "theme-doc-markdown "  # Docusaurus
        "md-content__inner "  # MkDocs Material
        "vp-doc theme-default-content theme-hope-content "  # VitePress, VuePress
        "sl-markdown-content "  # Starlight
        "mdx-content "  # Mintlify
        "mw-parser-output "  # MediaWiki
        "markdown-body "  # GitHub, and sites with its style
        "td-content book-article "  # Hugo: Docsy, Book
        "bd-article furo-main-content "  # Sphinx: pydata, Furo
        "markdown-section "  # GitBook before 2018, docsify
        "rm-article rm-markdown "  # ReadMe
        "documentation-content unitreadme-content "  # Go packages
        "main-page-content "  # MDN
        "devsite-article-body "  # devsite
        "wiki-content "  # Confluence
        "notion-page-content "  # Notion
        "nextra-content "  # Nextra
        "api-content swagger-ui "  # Redoc, Swagger
        "refentry "  # DocBook
        "rustdoc-main "
    ),
    BODY: name_set(
        "article-body article__body article-content post-content entry-content docs-body"
        " doc-content docs-content documentation-body docs-markdown prose markdown book-body"
        " article__content content__default page-content body-content guide-content"
    ),
    MAIN: name_set("documentwrapper main-content maincontent content-main main_content"),
    LIKELY: name_set("content main article body container-main page-body page-main documentation"),
}
_IDS = {
    TEXT: name_set("mw-content-text furo-main-content unit-inner-section"),
    BODY: name_set("docs-body docs-content article-body articlebody doccontent handbook-content"),
    MAIN: name_set("main-content maincontent main_content bodycontent main-col-body content-area"),
    LIKELY: name_set("content main article body page-content contents documentation page readme"),
}
_BY_CLASS = {name: rank for rank, names in _CLASSES.items() for name in names}
_BY_ID = {name: rank for rank, names in _IDS.items() for name in names}
_BY_TAG = {"main": MAIN, "article": BODY, "rd-main": MAIN, "devsite-content": MAIN}
_CONTAINERS = name_set("main article div section td table center rd-main devsite-content")


def rank_of(name: str, classes: str, role: str, itemprop: str) -> int:
    """The rank of an element by its names besides its id; 0 without any of them."""
    if name not in _CONTAINERS:
        return 0
    rank = _BY_TAG.get(name, 0)
    if role == "main":
        rank = max(rank, MAIN)
    if itemprop.lower() == "articlebody":
        rank = max(rank, BODY)
    for word in classes.lower().split():
        rank = max(rank, _BY_CLASS.get(word, 0))
    return rank


def rank_of_id(name: str, identifier: str) -> int:
    return _BY_ID.get(identifier.lower(), 0) if name in _CONTAINERS else 0
