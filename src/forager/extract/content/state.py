"""Pages that need a script: empty until it has run, sent in pieces, or with text in its state.

The state is that of Next.js (both routers) and of Nuxt. It is read if the page itself has no text:
an application that renders in the browser sends its content as state. The state is converted to
HTML, which is then read like any other page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_STATE = 4_000_000  # characters that are read
_MAX_NODES = 50_000
_MAX_DEPTH = 120

_FLIGHT = re.compile(r"self\.__next_f\.push\((\[1,\s*\"(?:[^\"\\]|\\.)*+\"\])\)", re.DOTALL)
_JSON = re.compile(
    r"<script[^>]*\sid=[\"']?__(?:NEXT|NUXT)_DATA__[\"']?[^>]*>(.*?)</script",
    re.IGNORECASE | re.DOTALL,
)
_ROW = re.compile(r"([0-9a-f]{1,8}):(?:T([0-9a-f]{1,8}),)?")
_REFERENCE = re.compile(r"\$[L@]?([0-9a-f]{1,8})")
_QUOTED_REFERENCE = re.compile(r'"\$[L@]?([0-9a-f]{1,8})"')
_TAG = re.compile(r"[a-z][a-z0-9]{0,15}")
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
_NOT_SHOWN = frozenset({"script", "style", "template", "noscript", "title", "svg"})
_HTML = re.compile(r"<(?:p|h[1-6]|ul|ol|pre|div|section|table)[\s>]", re.IGNORECASE)
_PROSE = re.compile(r"(?:[^\s<>{}\[\]=;]+\s+){5}")


def state_html(page: str) -> str:
    """The content in a page's script state as HTML; empty where there is none."""
    page = page[:MAX_STATE]
    flight = "".join(_flight_chunks(page))
    if flight:
        return _Flight(flight).html()
    return "".join(
        _texts(value) for found in _JSON.finditer(page) if (value := _loaded(found[1])) is not None
    )


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        return None


# --- the app router: rows of elements ------------------------------------------------------------


def _flight_chunks(page: str) -> Iterator[str]:
    for found in _FLIGHT.finditer(page):
        value = _loaded(found[1])
        if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
            yield value[1]


class _Flight:
    """Rows by number. An element is `["$", tag, key, props]`; `$L1a` stands for a row."""

    def __init__(self, text: str) -> None:
        self._rows = dict(_rows(text))
        self._inside = set(_QUOTED_REFERENCE.findall(text))  # rows that others show
        self._used: set[str] = set()
        self._room = _MAX_NODES

    def html(self) -> str:
        """All rows in order; a row that another one refers to is rendered there."""
        roots = [row for number, row in self._rows.items() if number not in self._inside]
        return "".join(self._render(row, 0) for row in roots)

    def _render(self, value: Any, depth: int) -> str:
        self._room -= 1
        if depth > _MAX_DEPTH or self._room < 0:
            return ""
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, list):
            if len(value) >= 4 and value[0] == "$" and isinstance(value[3], dict):
                return self._element(str(value[1]), value[3], depth)
            return "".join(self._render(each, depth + 1) for each in value)
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""

    def _text(self, value: str, depth: int) -> str:
        reference = _REFERENCE.fullmatch(value)
        if reference is None:
            return "" if value.startswith("$") and value[1:2] != "$" else escape(value)
        number = reference[1]
        if number in self._used or number not in self._rows:
            return ""
        self._used.add(number)
        return self._render(self._rows[number], depth + 1)

    def _element(self, tag: str, props: dict[str, Any], depth: int) -> str:
        if tag in _NOT_SHOWN:
            return ""
        inner = self._inner(props, depth)
        if not _TAG.fullmatch(tag):  # a component: only its properties are known
            return inner
        known = {"id": props.get("id"), "class": props.get("className"), "href": props.get("href")}
        attributes = "".join(
            f' {name}="{escape(value)}"' for name, value in known.items() if isinstance(value, str)
        )
        return f"<{tag}{attributes}>" + ("" if tag in _VOID else f"{inner}</{tag}>")

    def _inner(self, props: dict[str, Any], depth: int) -> str:
        raw = props.get("dangerouslySetInnerHTML")
        if isinstance(raw, dict) and isinstance(raw.get("__html"), str):
            reference = _REFERENCE.fullmatch(raw["__html"])
            row = self._rows.get(reference[1]) if reference else raw["__html"]
            return row if isinstance(row, str) else ""
        return self._render(props.get("children"), depth + 1)


def _rows(text: str) -> Iterator[tuple[str, Any]]:
    """Rows of JSON end with their line; rows of text begin with their length in bytes."""
    data = text.encode()
    at = 0
    while at < len(data):
        head = _ROW.match(data[at : at + 40].decode(errors="ignore"))
        start = at + (head.end() if head else 0)
        if head and head[2]:
            at = start + int(head[2], 16)
            yield head[1], data[start:at].decode(errors="replace")
            continue
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if head and data[start : start + 1] in b'[{"':
            yield head[1], _loaded(data[start:end].decode(errors="replace"))
        at = end + 1


# --- plain JSON -----------------------------------------------------------------------------


def _texts(value: Any) -> str:
    """HTML and sentences in a state, in order, without keys, codes, URLs and styles."""
    pieces: dict[str, None] = {}
    stack = [value]
    room = _MAX_NODES
    while stack and room > 0:
        room -= 1
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, str):
            if _HTML.search(item):
                pieces[item] = None
            elif _PROSE.match(item):
                pieces[f"<p>{escape(item)}</p>"] = None
    return "".join(pieces)


MAX_TEXT_OF_SHELL = 300

# the elements in which common frameworks put the application
_ROOTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #q-app, #svelte, #app-root, #react-root, #main-app,"
    " app-root, [ng-app], [data-reactroot], [ng-version], flutter-view"
)
_ASKS_FOR_JAVASCRIPT = re.compile(r"java\s?script", re.IGNORECASE)

_PLACEHOLDER = re.compile(
    r"(?:(?:now |page |still )?(?:loading|initiali[sz]ing|please wait)[\w ,]{0,30})?[.\u2026\s]*",
    re.IGNORECASE,
)


def needs_javascript(tree: LexborHTMLParser, text_length: int, scripts: int, noscript: str) -> bool:
    """Whether a page has little text, scripts, and a request for them or a framework's root."""
    if text_length > MAX_TEXT_OF_SHELL or not scripts:
        return False
    if _ASKS_FOR_JAVASCRIPT.search(noscript):
        return True
    root = tree.css_first(_ROOTS)
    # a root that already holds text was rendered on the server: a short page, not a shell
    return root is not None and _PLACEHOLDER.fullmatch(root.text(strip=True)) is not None


# --- streamed pages -------------------------------------------------------------------------

# React puts late pieces at the end of a page: `<div hidden id="S:1">` replaces
# `<template id="B:1">`; the nodes between that template and the comment `/$` are placeholders.
STREAMED = '<template id="B:'  # in every page with such pieces
MAX_PIECES = 500


def place_streamed_pieces(tree: LexborHTMLParser) -> None:
    """Move late pieces to their places, as the page's script would do."""
    places = {node.id: node for node in tree.css('template[id^="B:"]')[:MAX_PIECES]}
    if not places:
        return
    for piece in tree.css('div[hidden][id^="S:"]')[:MAX_PIECES]:
        place = places.get(f"B:{(piece.id or '')[2:]}")
        if place is not None:
            _remove_waiting(place)
            del piece.attrs["hidden"]
            place.insert_before(piece)
            piece.remove()


def _remove_waiting(place: LexborNode) -> None:
    following = place.next
    for _ in range(1000):
        if following is None or (following.is_comment_node and following.comment_content == "/$"):
            return
        after = following.next
        following.remove()
        following = after
