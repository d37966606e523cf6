"""Crawled markdown as safe HTML: raw HTML stays text, images become links, code is highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# a longer block is shown without colors: lexers take time in proportion to its length, or worse
MAX_HIGHLIGHTED = 50_000
# before the anchors of a page, so that they cannot collide with the dashboard's own ids
ANCHOR = "a-"


def to_html(text: str) -> Markup:
    """Render markdown of a crawled page. Its headings must already be outside `text`."""
    return Markup(_renderer().render(text))  # noqa: S704 - raw HTML is off, links are checked


@cache
def _renderer() -> MarkdownIt:
    options = {"html": False, "linkify": False, "highlight": _highlighted}
    return MarkdownIt("commonmark", options, renderer_cls=_PageRenderer).enable(
        ["table", "strikethrough"]
    )


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


def _highlighted(code: str, language: str, _attributes: str) -> str:
    """A code block with classes for its syntax, or nothing: then it is shown as plain text."""
    if not language or len(code) > MAX_HIGHLIGHTED:
        return ""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    inner = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code" tabindex="0"><code>{inner}</code></pre>'
