"""A serialised element as a flat list of tags and texts.

The parser's tree is walked by its own serialiser, in C, and read again with one regular
expression: several times faster than touching every node from Python, and no nesting can be too
deep for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forager.extract.content.boilerplate import Verdict
from forager.extract.content.themes import BODY, MAIN
from forager.extract.markdown.tags import Tag, read_tag

# lexbor escapes < and > in texts and attributes
_TAG = re.compile(r"<(/?[a-zA-Z][^>]*)>")
_COMMENT = re.compile(r"<!--.*?-->|<[!?][^>]*>", re.DOTALL)
_RAW = re.compile(r"<(script|style|iframe|noembed|noframes)(?=[\s>])[^>]*>.*?</\1>", re.DOTALL)
_RAW_CODE = re.compile(r"<(xmp|plaintext|listing)(?=[\s>])[^>]*>(.*?)</\1>", re.DOTALL)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass(slots=True)
class Tokens:
    """texts[i] stands before tags[i]; closing[i] is the index of the end tag of tags[i]."""

    texts: list[str]
    tags: list[Tag]
    closing: list[int]
    # tables that hold other tables or headings: they lay out a page, and hold no data
    layout_tables: set[int] = field(default_factory=set)
    # elements around what is surely content: whatever they are called, they are not dropped
    shielded: set[int] = field(default_factory=set)
    # how many more tags may be looked at to decide what is boilerplate: elements of such names
    # inside each other could cost the square of the page
    patience: int = 0
    extent: int = 0  # how many tags are looked at: all, until the main element is known

    def kept_text(self, start: int, end: int) -> str:
        """The text between two tags, escaped as it is, without what is not content."""
        parts = []
        index = start + 1
        while index <= end:
            parts.append(self.texts[index])
            tag = self.tags[index]
            if index < end and tag.verdict is not Verdict.KEEP and tag.name[0] != "/":
                index = self.closing[index]
            elif tag.name in ("br", "/p", "/div", "/li"):
                parts.append(" ")
            index += 1
        return "".join(parts)


def tokenise(html: str) -> Tokens:
    """The tokens of one serialised element."""
    pieces = _TAG.split(_plain(html))
    texts, raws = pieces[0::2], pieces[1::2]
    tags = list(map(read_tag, raws))
    tokens = Tokens(texts, tags, list(range(len(tags))), extent=len(tags), patience=50 * len(tags))
    _pair(tokens)
    return tokens


def _pair(tokens: Tokens) -> None:
    tags, closing, layout = tokens.tags, tokens.closing, tokens.layout_tables
    open_elements: list[int] = []
    tables: list[int] = []
    for index, tag in enumerate(tags):
        name = tag.name
        if name[0] == "/":
            if open_elements and tags[open_elements[-1]].name == name[1:]:
                opened = open_elements.pop()
                closing[opened] = index
                if tables and tables[-1] == opened:
                    tables.pop()
        elif not tag.void:
            open_elements.append(index)
            if tag.rank >= MAIN and tag.rank != BODY:
                _shield(open_elements, tokens.shielded)
            if name == "table":
                layout.update(tables[-1:])
                tables.append(index)
            elif tables and name in _HEADINGS:
                layout.add(tables[-1])
    for index in open_elements:  # only of markup that was cut
        closing[index] = len(tags) - 1


def _shield(open_elements: list[int], shielded: set[int]) -> None:
    for index in reversed(open_elements):
        if index in shielded:  # and so is everything around it
            return
        shielded.add(index)


def _plain(html: str) -> str:
    """Without elements and comments in which `<` does not begin a tag."""
    if "<!" in html or "<?" in html:
        html = _COMMENT.sub("", html)
    html = _RAW.sub("", html)
    if "<xmp" in html or "<plaintext" in html or "<listing" in html:
        html = _RAW_CODE.sub(_as_pre, html)
    return html


def _as_pre(match: re.Match[str]) -> str:
    code = match[2]
    if match[1] != "listing":
        code = code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre>{code}</pre>"
