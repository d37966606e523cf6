"""Markdown of crawled pages as HTML, at a bounded cost even if the page is hostile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# Lexers by their first alias, with the length of the longest block that is highlighted. On repeated
# characters, quotes, brackets and words, the first ones take time in proportion to the length (less
# than 0.3 s), the others in its square (0.5 s for C#); all others may take minutes.
LINEAR = """
    bash batch c clojure cmake cpp css dart diff django docker elixir erlang fsharp go graphql
    haskell json julia kotlin latex less matlab mysql nginx nim objective-c php plpgsql postgresql
    properties protobuf psql pycon pytb python r ruby rust sass scala scheme scss solidity sql
    sqlite3 swift toml vb.net vim zig
"""
QUADRATIC = """
    console csharp groovy html http ini java javascript jsx lua make ocaml perl powershell terraform
    tsx typescript vue xml yaml
"""
MAX_HIGHLIGHTED = dict.fromkeys(LINEAR.split(), 20_000) | dict.fromkeys(QUADRATIC.split(), 2_000)
# when the code of a page has taken this many seconds, its other blocks are shown as plain text
HIGHLIGHT_SECONDS = 0.5
# before the anchors of a page, so that they cannot collide with the dashboard's own ids
ANCHOR = "a-"


def sections_to_html(texts: Sequence[str]) -> list[str]:
    """Render the sections of a crawled page from markdown, without their headings.

    Raw HTML stays text, images become links, code is highlighted.
    """
    options = {"html": False, "linkify": False, "highlight": _Highlighter()}
    renderer = MarkdownIt("commonmark", options, renderer_cls=_PageRenderer)
    renderer.enable(["table", "strikethrough"])
    return [renderer.render(text) for text in texts]


class _Highlighter:
    """Highlights the code blocks of one page."""

    def __init__(self) -> None:
        self._spent = 0.0

    def __call__(self, code: str, language: str, _attributes: str) -> str:
        """A code block with classes for its syntax, or nothing: then it is shown as plain text."""
        lexer = find_lexer(language, len(code))
        if lexer is None or self._spent > HIGHLIGHT_SECONDS:
            return ""
        began = time.thread_time()
        inner = highlight(code, lexer, HtmlFormatter(nowrap=True))
        self._spent += time.thread_time() - began
        return f'<pre class="code" tabindex="0"><code>{inner}</code></pre>'


def find_lexer(language: str, length: int) -> Lexer | None:
    """The lexer for a block of this length; None if it has none, or may take too long."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return None
    allowed = max(MAX_HIGHLIGHTED.get(alias, 0) for alias in lexer.aliases)
    return lexer if length <= allowed else None


class _PageRenderer(RendererHTML):
    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """A link instead of the picture: the dashboard loads nothing from crawled sites."""
        token = tokens[idx]
        source = str(token.attrGet("src") or "")
        text = self.renderInlineAsText(token.children or [], options, env) or "image"
        if not source.startswith(("http://", "https://")):
            return f'<span class="picture">{escape(text)}</span>'
        return f'<a class="picture" href="{escape(source)}" {_OUTSIDE}>{escape(text)}</a>'

    def link_open(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        if href.startswith("#"):
            return f'<a href="#{ANCHOR}{escape(href[1:])}">'
        if not href.startswith(("http://", "https://")):
            return "<a>"
        return f'<a href="{escape(href)}" {_OUTSIDE}>'

    def table_open(self, *_: object) -> str:
        return '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>'

    def table_close(self, *_: object) -> str:
        return "</table></div>"


_OUTSIDE = 'rel="noreferrer noopener external" target="_blank"'
