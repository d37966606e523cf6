"""Keeps markup away from the parser that would cost it minutes.

The parser's time grows with the square of the depth of nesting and of the attributes of one
element. This catches the plain attacks cheaply; what slips through meets the time limit of the
process that extracts.
"""

from __future__ import annotations

import re

MAX_NESTING = 5_000
MAX_TAG_LENGTH = 65_536
MAX_ATTRIBUTES = 2_000

# At each of these the parser looks up through all open elements for a `<p>` to close. Other
# elements nest at no cost, and real pages leave thousands of them open (`<path/>`, `<input>`).
_BLOCK = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption"
    r"|figure|footer|form|header|hgroup|main|menu|nav|ol|search|section|summary|ul)(?=[\s/>])",
    re.IGNORECASE,
)
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{MAX_TAG_LENGTH // 2},}}+")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def cut_hostile_markup(text: str) -> tuple[str, str | None]:
    """The text up to where it would hurt the parser, and why it was cut there, if it was."""
    end, reason = len(text), None
    if _may_be_deep(text) and (deep := _too_deep(text)):
        end, reason = deep, f"elements nested deeper than {MAX_NESTING}"
    if _has_long_tag(text) and (crowded := _too_many_attributes(text, end)):
        end, reason = crowded, f"an element with more than {MAX_ATTRIBUTES} attributes"
    return text[:end], reason


def _may_be_deep(text: str) -> bool:
    """A cheap sum that nearly every page passes; only for the others every tag is looked at."""
    if len(text) < MAX_NESTING * len("<ul>"):
        return False
    return text.count("<") - 2 * text.count("</") > MAX_NESTING


def _has_long_tag(text: str) -> bool:
    start = 0
    while len(text) - start > MAX_TAG_LENGTH:
        # backwards from as far as a tag may reach: a few looks for a whole page
        start = text.rfind(">", start, start + MAX_TAG_LENGTH) + 1
        if not start:
            return True
    return False


def _too_deep(text: str) -> int | None:
    depth = 0
    for tag in _BLOCK.finditer(text):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_NESTING:
            return tag.start()
    return None


def _too_many_attributes(text: str, end: int) -> int | None:
    for tag in _LONG_TAG.finditer(text, 0, end):
        if len(_QUOTED.sub('"" ', tag[0]).split()) > MAX_ATTRIBUTES:
            return tag.start()
    return None


_SELF_CLOSED = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|a|div|span)\b([^<>]*)/>", re.IGNORECASE
)


def close_self_closed(xhtml: str) -> str:
    """`<script/>` is complete in XHTML; to an HTML parser it swallows the rest of the page."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", xhtml)
