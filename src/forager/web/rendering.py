"""Pages from templates. All values are escaped: crawled content is text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from hashlib import blake2b
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from forager import __version__
from forager.api.problems import problem_of
from forager.db.cursor import Page as Rows
from forager.errors import ForagerError
from forager.web import charts, formats
from forager.web.event_text import summary_of
from forager.web.navigation import NAVIGATION
from forager.web.sessions import NOTICE_COOKIE, delete_cookie, read_notice, write_session
from forager.web.visit import Visit

STATIC = Path(__file__).parent / "static"
# prefix of the blocks of a template that are updated live, and of the IDs of their elements
LIVE = "live_"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("forager.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        formats.FILTERS,
        summary=summary_of,
        rendered=to_html,
        marked_lines=marked_lines,
        paired_lines=paired_lines,
    )
    made.globals.update(asset=asset, navigation=NAVIGATION, version=__version__, **charts.DRAWINGS)
    return made


@cache
def asset(name: str) -> str:
    """The URL of a static file; it changes with the content."""
    digest = blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


class Page:
    """A template and its values. A page of a list is shown as its rows, with a link to the next."""

    code = 200

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = values

    def after(self, error: ForagerError | None) -> Page:
        """The page as the answer to a form, which failed if there is an error."""
        if error is not None:
            self.code = problem_of(error).status
        return self


def full_page(visit: Visit, page: Page) -> Response:
    """A whole page, with the cookie of a session that begins with it."""
    found = environment().get_template(page.template)
    context = page_values(visit, page.values)
    context["live"] = any(name.startswith(LIVE) for name in found.blocks)
    response = HTMLResponse(found.render(context), page.code)
    if visit.is_new:
        write_session(response, visit.session, visit.vault)
    if NOTICE_COOKIE in visit.request.cookies:
        delete_cookie(response, NOTICE_COOKIE)
    return response


def live_blocks(visit: Visit, page: Page) -> dict[str, str]:
    """The current content of the blocks of a page that are updated live."""
    found = environment().get_template(page.template)
    context = found.new_context(page_values(visit, page.values))
    return {
        name: "".join(block(context))
        for name, block in found.blocks.items()
        if name.startswith(LIVE)
    }


def bare_page(
    request: Request, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """A page for a visitor without a session."""
    return HTMLResponse(
        environment().get_template(template).render(values, request=request), status
    )


def page_values(visit: Visit, values: Mapping[str, object]) -> dict[str, Any]:
    """Values of all templates and of this one; `ui` are the components."""
    known = {
        "visit": visit,
        "csrf": visit.session.csrf,
        "path": visit.request.url.path,
        "asked": visit.asked,
        "notice": read_notice(visit.request, visit.vault),
    }
    components = environment().get_template("ui.html").make_module(known)
    cursors = [each.next_cursor for each in values.values() if isinstance(each, Rows)]
    next_url = visit.following(cursors[0]) if cursors else None
    rows = {name: each.items for name, each in values.items() if isinstance(each, Rows)}
    return {**known, "ui": components, "next_url": next_url, **values, **rows}


_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# longer lines are marked as a whole: comparing words takes quadratic time
MAX_WORDS = 400
MARKS = {"ins": Markup("<ins>{}</ins>"), "del": Markup("<del>{}</del>")}
CLASSES = {"+": "plus", "-": "minus", "@": "at"}

MarkedLine = tuple[str, Markup]
# the line before and the line after; equal lines and places are on both sides
LinePair = tuple[MarkedLine | None, MarkedLine | None]


def paired_lines(diff: str) -> list[LinePair]:
    """The lines of a unified diff beside each other, without its two file names."""
    pairs: list[LinePair] = []
    removed: list[str] = []
    added: list[str] = []
    for line in [*diff.splitlines()[2:], None]:
        if line is not None and line.startswith("-") and not added:
            removed.append(line)
        elif line is not None and line.startswith("+"):
            added.append(line)
        else:
            pairs += _changed(removed, added)
            removed, added = [], []
            if line is not None and line.startswith("-"):
                removed.append(line)
            elif line is not None:
                same = (CLASSES.get(line[:1], ""), escape(line or " "))
                pairs.append((same, same))
    return pairs


def marked_lines(diff: str) -> list[MarkedLine]:
    """The lines of a unified diff below each other, with a CSS class each."""
    lines: list[MarkedLine] = []
    for changed, pairs in groupby(paired_lines(diff), key=lambda pair: pair[0] is not pair[1]):
        before, after = zip(*pairs, strict=True)
        lines += [line for line in (*before, *(after if changed else ())) if line is not None]
    return lines


def _changed(removed: list[str], added: list[str]) -> Iterator[LinePair]:
    for old, new in zip_longest(removed, added):
        before, after = _compared(old, new)
        yield (CLASSES["-"], before) if before else None, (CLASSES["+"], after) if after else None


def _compared(old: str | None, new: str | None) -> tuple[Markup, Markup]:
    if old is None or new is None:
        return escape(old or ""), escape(new or "")
    before, after = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    if max(len(before), len(after)) > MAX_WORDS:
        return escape(old), escape(new)
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return (
        old[0] + _joined(((kind, before[i:j]) for kind, i, j, _, _ in steps), "del"),
        new[0] + _joined(((kind, after[i:j]) for kind, _, _, i, j in steps), "ins"),
    )


def _joined(parts: Iterable[tuple[str, list[str]]], tag: str) -> Markup:
    whole = Markup("")
    for kind, words in parts:
        text = escape("".join(words))
        whole += text if kind == "equal" or not words else MARKS[tag].format(text)
    return whole


# a longer block is shown without colors: lexers take time in proportion to its length, or worse
MAX_HIGHLIGHTED = 50_000
# before the anchors of a page, so that they cannot collide with the dashboard's own ids
ANCHOR = "a-"


def to_html(text: str) -> Markup:
    """Render markdown of a crawled page, without its headings.

    Raw HTML stays text, images become links, code is highlighted.
    """
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
