"""Cuts markup that would cost the parser minutes.

The parser's time grows with the square of the attributes of one element, and with the number of
open elements times the tags inside them. This catches simple attacks cheaply; other markup meets
the time limit of the extraction process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MAX_NESTING = 5_000
MAX_TAG_LENGTH = 65_536
MAX_ATTRIBUTES = 2_000
# elements open at each tag, summed up: this many take the parser a second or two
MAX_SEARCHED = 500_000_000
# this many nested tags cost a tenth of a second: no further check is needed
_FEW_TAGS = 10_000

# At each of these the parser searches all open elements for a `<p>` to close. Other elements nest
# at no cost, and real pages leave thousands of them open (`<path/>`, `<input>`).
_BLOCK = re.compile(
    rb"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset"
    rb"|figcaption|figure|footer|form|header|hgroup|main|menu|nav|ol|search|section|summary|ul)"
    rb"(?=[\s/>])",
    re.IGNORECASE,
)
_LONG_TAG = re.compile(rb"<[a-zA-Z][^<>]{%d,}+" % (MAX_TAG_LENGTH // 2))
_QUOTED = re.compile(rb"\"[^\"]*\"|'[^']*'")


def cut_hostile_markup(text: str) -> tuple[str, str | None]:
    """The text before hostile markup, and why it was cut, if it was."""
    source, reason = cut_hostile_source(text.encode("utf-8", "surrogatepass"))
    return (text if reason is None else source.decode("utf-8", "surrogatepass")), reason


def cut_hostile_source(source: bytes) -> tuple[bytes, str | None]:
    """The same for UTF-8, which is searched much faster than text."""
    end, reason = len(source), None
    # counting is most of what this costs on a harmless page, so it is done once
    if (tags := source.count(b"<")) > _FEW_TAGS:
        opening = tags - source.count(b"</")
        if 2 * opening - tags > MAX_NESTING and (deep := _too_deep(source)):
            end, reason = deep, f"elements nested deeper than {MAX_NESTING}"
        if (
            tags * opening > MAX_SEARCHED
            and (costly := _too_many_searches(source, end)) is not None
        ):
            end, reason = costly, "too many tags inside of too many open elements"
    if (crowded := _too_many_attributes(source, end)) is not None:
        end, reason = crowded, f"an element with more than {MAX_ATTRIBUTES} attributes"
    return source[:end], reason


def _too_deep(source: bytes) -> int | None:
    depth = 0
    for tag in _BLOCK.finditer(source):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_NESTING:
            return tag.start()
    return None


_ANY_TAG = re.compile(rb"<(/?)([a-z][^\s/<>]*+)[^<>]*+>", re.IGNORECASE)
# elements without a required end tag: the next one closes them, or they have no content
_CLOSED_BY_ITSELF = frozenset(
    b"area base body br caption col colgroup dd dt embed head hr html img input li link meta"
    b" optgroup option p param rp rt source tbody td tfoot th thead tr track wbr".split()
)


def _too_many_searches(source: bytes, end: int) -> int | None:
    """The position at which the parser would have searched too many open elements."""
    opened: Counter[bytes] = Counter()
    depth = searched = 0
    for tag in _ANY_TAG.finditer(source, 0, end):
        searched += depth
        if searched > MAX_SEARCHED:
            return tag.start()
        change = _change(tag, opened)
        opened[tag[2].lower()] += change
        depth += change
    return None


def _change(tag: re.Match[bytes], opened: Counter[bytes]) -> int:
    """The change of the number of open elements by a tag."""
    name = tag[2].lower()
    if name in _CLOSED_BY_ITSELF:
        return 0
    if tag[1]:
        return -1 if opened[name] else 0
    in_drawing = opened[b"svg"] or opened[b"math"]
    return 0 if in_drawing and tag[0].endswith(b"/>") else 1


def _too_many_attributes(source: bytes, end: int) -> int | None:
    for start, stop in _long_gaps(source, end):
        for tag in _LONG_TAG.finditer(source, start, stop):
            if len(_QUOTED.sub(b'"" ', tag[0]).split()) > MAX_ATTRIBUTES:
                return tag.start()
    return None


def _long_gaps(source: bytes, end: int) -> Iterator[tuple[int, int]]:
    """Ranges longer than the longest tag in which no tag ends."""
    start = 0
    while end - start > MAX_TAG_LENGTH:
        # backwards from the longest possible tag: few searches for a whole page
        last = source.rfind(b">", start, start + MAX_TAG_LENGTH)
        if last < 0:
            last = source.find(b">", start + MAX_TAG_LENGTH, end)
            last = end if last < 0 else last
            yield start, last
        start = last + 1


_SELF_CLOSED = re.compile(
    r"<(script|style|title|textarea|iframe|noscript|a|div|span)\b([^<>]*)/>", re.IGNORECASE
)


def close_self_closed(xhtml: str) -> str:
    """`<script/>` is complete in XHTML; to an HTML parser it swallows the rest of the page."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", xhtml)
