"""The places that links lead to: each `id` and `name` of a page, and the part that has it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from forager.extract.markdown.blocks import HeadedText
from forager.extract.markdown.tokens import Tokens

MAX_ANCHORS = 20_000
MAX_ANCHOR_LENGTH = 500
_NEAR = 60  # tags between an anchor and the heading that it is for


def place_anchors(tokens: Tokens, parts: Sequence[HeadedText], start: int, end: int) -> None:
    """Give each part the anchors in it, with the number of the block that each of them is in.

    An anchor with nothing but a heading after it belongs to the part of that heading. Anchors
    before and after the main element belong to the first and the last part.
    """
    found = [(index, tag.anchor) for index, tag in enumerate(tokens.tags) if tag.anchor]
    starts = [part.start for part in parts]
    if not parts:
        return
    starts[0] = 0
    # there is no section of the text before the first heading if that text is empty
    first = 1 if len(parts) > 1 and not parts[0].level and not parts[0].blocks else 0
    for index, anchor in found[:MAX_ANCHORS]:
        if len(anchor) > MAX_ANCHOR_LENGTH:
            continue
        at = max(first, bisect_right(starts, min(max(index, start), end)) - 1)
        if at + 1 < len(parts) and index >= start and _leads_to(tokens, index, starts[at + 1]):
            at += 1
        part = parts[at]
        block = bisect_left(part.ends, index) if index >= start else 0
        part.anchors.append((block, anchor))


def _leads_to(tokens: Tokens, index: int, heading: int) -> bool:
    """Whether no text is between an anchor and a heading."""
    if heading - index > _NEAR:
        return False
    return not any(map(str.strip, tokens.texts[index + 1 : heading + 1]))
