"""Inline elements (phrasing content) of a paragraph or a heading."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import ada_url

from forager.extract.markdown.escape import (
    balanced,
    code_span,
    escape_line_start,
    escape_text,
    markdown_of,
)
from forager.extract.markdown.formulas import formula_of, tex
from forager.extract.markdown.headings import is_label, is_sign
from forager.extract.markdown.tags import Attributes, Tag, unescape
from forager.extract.markdown.tokens import Tokens, is_exponent
from forager.extract.text import collapse
from forager.extract.urls import MAX_CACHED_LENGTH, NEEDS_NO_PAGE, PLAIN_SEGMENT, directory_of


class Phrasing:
    """The current paragraph. Every method gets a start tag, and returns the next index to read.

    Open elements are keyed by the index of their end tag.
    """

    def __init__(self, tokens: Tokens, links: Links) -> None:
        self._tokens = tokens
        self._links = links
        self._parts: list[str] = []
        self._frames: list[_OpenElement] = []
        self._ends: dict[int, Callable[[], None]] = {}
        self._anchor: str | None = None  # of the position before the next text
        self._in_heading = False
        self._skipped: set[int] = set()  # elements of the heading that are left out

    def _add_text(self, text: str) -> None:
        if not text or text.isspace():
            if self._parts and text:
                self._parts.append(" ")
            return
        self._parts.append(markdown_of(text))
        if not self._in_heading:
            self._anchor = None

    def _kept(self, start: int, end: int) -> str:
        if end == start + 1:
            return collapse(unescape(self._tokens.texts[end]))
        return collapse(unescape(self._tokens.kept_text(start, end)))

    def _open_inline(self, index: int, mark: str, url: str = "") -> int:
        """Begin an element, unless it is nested in one of its kind or too deep."""
        frames = self._frames
        if frames and (len(frames) >= MAX_FRAMES or any(frame.mark == mark for frame in frames)):
            return index + 1
        frame = _OpenElement(len(self._parts), mark, url)
        end = self._tokens.closing[index]
        if end == index + 1:  # nothing but text, as most have
            self._add_text(self._tokens.texts[end])
            self._wrap(frame)
            return end + 1
        frames.append(frame)
        self._ends[end] = self._close_inline
        return index + 1

    def _close_inline(self) -> None:
        self._wrap(self._frames.pop())

    def _wrap(self, frame: _OpenElement) -> None:
        parts, start = self._parts, frame.start
        if start >= len(parts) or (frame.mark == "]" and not frame.url):
            return
        text = "".join(parts[start:])
        stripped = text.strip(_EDGES)
        if not stripped:
            return
        before, _, after = text.partition(stripped)
        parts[start:] = [before, _marked(stripped, frame), after]

    @property
    def _in_link(self) -> bool:
        return any(frame.url for frame in self._frames)

    def _take_line(self) -> str:
        """The paragraph as one line; it is empty afterwards."""
        for frame in reversed(self._frames):
            if frame.url:
                self._wrap(frame)
                frame.url = ""
            frame.start = 0
        text = collapse("".join(self._parts).replace(BREAK, " "))
        self._parts.clear()
        return text

    def _take_lines(self) -> list[str]:
        """The lines of the paragraph, which is empty afterwards; open elements continue."""
        for frame in reversed(self._frames):
            self._wrap(frame)
            frame.start = 0
            frame.url = ""  # a link around several blocks is written at the first
        text = "".join(self._parts)
        self._parts.clear()
        lines = text.split(BREAK) if BREAK in text else (text,)
        return [escape_line_start(line) for line in map(collapse, lines) if line]

    def strong(self, index: int, _tag: Tag) -> int:
        return index + 1 if self._in_heading else self._open_inline(index, "**")

    def emphasis(self, index: int, _tag: Tag) -> int:
        return self._open_inline(index, "*")

    def struck(self, index: int, _tag: Tag) -> int:
        return self._open_inline(index, "~~")

    def code(self, index: int, _tag: Tag) -> int:
        end = self._tokens.closing[index]
        if end == index + 1 and len(self._tokens.texts[end]) <= _MAX_CACHED_CODE:
            span = _cached_code(self._tokens.texts[end])
        elif text := self._kept(index, end):
            span = code_span(text)
            url = None if self._in_link else self._only_link(index, end, text)
            span = f"[{span}]({url})" if url else span
            span = _with_edges(span, self._tokens.texts[index + 1], self._tokens.texts[end])
        else:
            span = " " if self._parts else ""
        if span:
            self._parts.append(span)
            if not self._in_heading:
                self._anchor = None
        return end + 1

    def _only_link(self, start: int, end: int, text: str) -> str | None:
        """The URL of a link around the whole piece of code."""
        tags = self._tokens.tags
        for index in range(start + 1, min(end, start + 3)):
            if tags[index].name == "a":
                same = self._kept(index, self._tokens.closing[index]) == text
                return self._links.absolute(tags[index].attributes.get("href")) if same else None
        return None

    def link(self, index: int, tag: Tag) -> int:
        href = tag.attributes.get("href")
        if self._in_heading:
            return self._heading_link(index, href)
        if named := tag.attributes.get("id") or tag.attributes.get("name"):
            self._anchor = self._anchor or named
        if href is None:
            return index + 1
        if len(href) > 1 and href[0] == "#" and self._is_sign(index):
            self._anchor = self._anchor or href[1:]
            return self._tokens.closing[index] + 1
        return self._open_link(index, href)

    def _heading_link(self, index: int, href: str | None) -> int:
        """A link in a heading; a link to the same page is the permalink, or leads to a list."""
        if index in self._skipped:
            return self._tokens.closing[index] + 1
        return index + 1 if href is None or href[:1] == "#" else self._open_link(index, href)

    def _open_link(self, index: int, href: str) -> int:
        tokens, parts = self._tokens, self._parts
        if parts and tokens.tags[index - 1].name == "/a" and not tokens.texts[index]:
            parts.append(" ")  # two links, which the page separates by style
        url = None if self._in_link else self._links.absolute(href)
        return self._open_inline(index, "]", url) if url else index + 1

    def _is_sign(self, index: int) -> bool:
        end = self._tokens.closing[index]
        if end > index + 3 or self._tokens.tags[index + 1].name == "img":
            return False
        return is_sign(self._kept(index, end))

    def image(self, index: int, tag: Tag) -> int:
        if markdown := image_markdown(tag.attributes, self._links):
            self._parts.append(markdown)
        return index + 1

    def line_break(self, index: int, _tag: Tag) -> int:
        if self._parts:
            self._parts.append(BREAK)
        return index + 1

    def span(self, index: int, tag: Tag) -> int:
        """Separate adjacent labels, which the page separates by style alone."""
        parts = self._parts
        if tag.is_math and (formula := formula_of(self._tokens, index)):
            parts.append(formula)
            return self._tokens.closing[index] + 1
        if not parts:
            return index + 1
        if tag.gap:
            self._separate(index, tag.gap)
        elif is_label(self._tokens, index) and parts[-1][-1:].isalnum():
            parts.append(" ")
        return index + 1

    def _separate(self, index: int, gap: str) -> None:
        """Write what the page shows around an element by its style."""
        self._parts.append(gap)
        if gap == " ":
            self._ends.setdefault(self._tokens.closing[index], lambda: self._parts.append(" "))

    def superscript(self, index: int, _tag: Tag) -> int:
        """Write exponents as such: 2<sup>32</sup> is not 232."""
        if self._parts and is_exponent(self._tokens, index):
            self._parts.append("^")
        return index + 1

    def quoted(self, index: int, _tag: Tag) -> int:
        self._parts.append("“")
        self._ends[self._tokens.closing[index]] = lambda: self._parts.append("”")
        return index + 1

    def math(self, index: int, tag: Tag) -> int:
        """The source of a formula, where the page has it; else its characters."""
        end = self._tokens.closing[index]
        if written := tag.attributes.get("alttext") or self._annotation(index, end):
            self._parts.append(tex(written, display=tag.attributes.get("display") == "block"))
        elif text := self._kept(index, end):
            self._parts.append(escape_text(text))
        return end + 1

    def _annotation(self, start: int, end: int) -> str | None:
        for index in range(start + 1, end):
            if self._tokens.tags[index].name == "annotation":
                return unescape(self._tokens.texts[index + 1])
        return None


_MAX_CACHED_CODE = 100  # characters


@lru_cache(maxsize=8192)
def _cached_code(html: str) -> str:
    """Inline code without tags: the names of functions and options are on many pages."""
    text = collapse(unescape(html))
    return _with_edges(code_span(text), html, html) if text else " " if html else ""


def _with_edges(span: str, first: str, last: str) -> str:
    """Code with the blanks at its ends outside: "`INTEGER` in", also for `<tt>INTEGER </tt>in`."""
    return f"{' ' * first[:1].isspace()}{span}{' ' * last[-1:].isspace()}"


# --- images ---------------------------------------------------------------------------------

_DOT = frozenset({"0", "1", "2", "0px", "1px"})  # the sizes of tracking pixels
_SOURCES = ("src", "data-src", "data-original", "data-lazy-src")
MAX_ALT = 2_000


def image_markdown(attributes: Attributes, links: Links) -> str:
    """The image, only its text where it has no URL, or nothing where it is decoration."""
    alt = collapse(attributes.get("alt", ""))[:MAX_ALT]
    if "alt" in attributes and not alt:  # decoration, as the page says
        return ""
    if attributes.get("width") in _DOT or attributes.get("height") in _DOT:
        return ""
    url = links.absolute(_source(attributes))
    if url is None:
        return escape_text(alt)
    return f"![{alt.replace('[', '(').replace(']', ')')}]({url})"


def _source(attributes: Attributes) -> str | None:
    sources = (attributes.get(name) for name in _SOURCES)
    return next((source for source in sources if source and not source.startswith("data:")), None)


# in place of <br> until the paragraph is complete; not white space, so that collapsing keeps it
BREAK = "\x01"
MAX_FRAMES = 40  # inline elements inside each other; deeper ones are text


@dataclass(slots=True)
class _OpenElement:
    """An open inline element: the start of its text, and its markup."""

    start: int
    mark: str
    url: str


_EDGES = " \t\n\r\f\v\u00a0" + BREAK


def _marked(text: str, frame: _OpenElement) -> str:
    if frame.url:
        if ("[" in text or "]" in text) and not balanced(text):
            text = _BRACKET.sub(r"\\\g<0>", text)
        return f"[{text.replace(BREAK, ' ')}]({frame.url})"
    mark = frame.mark
    if BREAK in text:
        lines = (line.strip() for line in text.split(BREAK))
        return BREAK.join(f"{mark}{line}{mark}" if line else "" for line in lines)
    return f"{mark}{text}{mark}"


_BRACKET = re.compile(r"(?<!\\)[\[\]]")


MAX_HREF = 8_192
# Every link repeats the page's URL: a page of short links with a long URL could grow by 1,000.
# Real pages stay far below this.
MIN_BUDGET = 2_000_000

_NOWHERE = ("javascript:", "data:", "blob:", "about:", "vbscript:")


class Links:
    """Resolves links against one normalized base, with a cache: pages repeat their links."""

    __slots__ = ("_directory", "_is_plain", "_known", "base", "budget", "dropped")

    def __init__(self, base: str, budget: int = MIN_BUDGET) -> None:
        self.base = base
        self.budget = budget
        self.dropped = 0  # links beyond the budget
        self._directory = directory_of(base)
        # parsing changes nothing in it, and markdown escapes nothing
        self._is_plain = _target("#x", base) == f"{base}#x"
        self._known: dict[str, str | None] = {}

    def absolute(self, href: str | None) -> str | None:
        """The absolute URL as markdown writes it, or None for a link that leads nowhere."""
        if href is None:
            return None
        if href not in self._known:
            self._known[href] = self._resolve(href)
        url = self._known[href]
        if url is None:
            return None
        self.budget -= len(url)
        if self.budget < 0:
            self.dropped += 1
            return None
        return url

    def _resolve(self, href: str) -> str | None:
        if len(href) > MAX_CACHED_LENGTH:
            return _target(href, self.base)
        if self._is_plain and (simple := _SIMPLE.fullmatch(href)):
            return (self._directory if simple[1] else self.base) + href
        shared = NEEDS_NO_PAGE.match(href)
        return _shared_target(href, self._directory) if shared else _target(href, self.base)


# Most links of real pages: a path below the directory of the page, a fragment, or both. Parsing
# would change nothing in them.
_SIMPLE = re.compile(rf"((?:{PLAIN_SEGMENT}/)*{PLAIN_SEGMENT})?(?:#[A-Za-z0-9_.~-]++)?(?<!^)")


@lru_cache(maxsize=16_384)
def _shared_target(href: str, directory: str) -> str | None:
    """The target of a link that is the same for all pages of a directory."""
    return _target(href, directory)


def _target(href: str, base: str) -> str | None:
    href = href.strip()
    if not href or len(href) > MAX_HREF or href[:11].lower().startswith(_NOWHERE):
        return None
    try:
        url: str = ada_url.join_url(base, href)
    except ValueError:
        return None
    if "(" in url or ")" in url or "<" in url or ">" in url or " " in url:
        for character in "()<> ":
            url = url.replace(character, f"%{ord(character):02X}")
    return url
