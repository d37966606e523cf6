"""Whether an element with a name of boilerplate is left out, by its position and content.

No rule here removes an element around the main content, or a heading whose text follows it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from forager.extract.content.boilerplate import ElementVerdict, is_panel, is_semantic

if TYPE_CHECKING:
    from forager.extract.markdown.tokens import Tokens

_WRAPPER = 0.5  # an element with this share of the tags may be around the content
_FEW_TAGS = 12
_FEW_CHARACTERS = 20
_MANY_TAGS = 400
_SENTENCE = 60  # characters of a paragraph
_PARAGRAPH_ENDS = frozenset({"p", "/p", "/div", "li", "/li", "dt", "dd", "/dd"})
_CONTROLS = frozenset({"input", "form", "nav", "select"})


def is_dropped(tokens: Tokens, index: int) -> bool:
    """Whether an element whose verdict is not KEEP is left out."""
    tag = tokens.tags[index]
    verdict, end, role = tag.verdict, tokens.closing[index], tag.attributes.get("role", "")
    if verdict is ElementVerdict.NEVER:
        return True
    if index in tokens.shielded or verdict is ElementVerdict.UNSHOWN:
        return False
    if verdict is ElementVerdict.HIDDEN:
        return not is_panel(tag.attributes.get("class", ""), role)
    if verdict is ElementVerdict.REPEATED:
        heads = _heads_what_follows(tokens, index, end)
        return not heads and not _is_below_heading(tokens, index, end)
    if tokens.lenient and not is_semantic(tag.name, role):
        return False
    tokens.removal_budget -= end - index
    if tokens.removal_budget < 0:
        return False
    share = (end - index) / tokens.extent
    if share >= _WRAPPER and _holds_content(tokens, index, end):
        return False
    return _is_removed(tokens, index, end, share) and not _heads_what_follows(tokens, index, end)


def _is_removed(tokens: Tokens, index: int, end: int, share: float) -> bool:
    verdict = tokens.tags[index].verdict
    if verdict is ElementVerdict.CONTENTS:
        return share < 0.5 and leads_within_page(tokens, index, end)
    if verdict is ElementVerdict.FORM:
        return share < 0.3
    if _is_boxed_prose(tokens, index, end):
        return False
    return share < 0.35 or is_link_list(tokens, index, end)


def _is_boxed_prose(tokens: Tokens, start: int, end: int) -> bool:
    """Whether a sidebar is a box of the text, as DocBook and docutils write it, and no menu."""
    if "sidebar" not in tokens.tags[start].attributes.get("class", "").lower().split():
        return False
    inside = range(start + 1, min(end, start + _MANY_TAGS) + 1)
    if any(tokens.tags[index].name in _CONTROLS for index in inside):
        return False
    run = linked = 0  # characters of the current paragraph, and of the links in it
    for index in inside:
        length = len(tokens.texts[index].strip())
        name = tokens.tags[index].name
        run, linked = run + length, linked + length * (name == "/a")
        if name in _PARAGRAPH_ENDS:
            if run >= _SENTENCE and 2 * linked < run:
                return True
            run = linked = 0
    return False


def _holds_content(tokens: Tokens, start: int, end: int) -> bool:
    """Whether a title or an element that may be the main one is inside."""
    return any(
        at < len(found) and found[at] < end
        for found in (tokens.titles, tokens.ranked)
        for at in (bisect_left(found, start + 1),)
    )


def _heads_what_follows(tokens: Tokens, start: int, end: int) -> bool:
    """Whether an element ends with a heading, whose text follows the element."""
    at = bisect_left(tokens.headings, end) - 1
    tag = tokens.tags[start]
    if (
        at < 0
        or tokens.headings[at] < start
        or is_semantic(tag.name, tag.attributes.get("role", ""))
    ):
        return False
    heading_end = tokens.closing[tokens.headings[at]]
    if end - heading_end > _FEW_TAGS:
        return False
    after = sum(len(text.strip()) for text in tokens.texts[heading_end + 1 : end + 1])
    return after < _FEW_CHARACTERS and _is_followed(tokens, end)


def _is_below_heading(tokens: Tokens, start: int, end: int) -> bool:
    """Whether an element is prose right after a heading that is not the title."""
    at = bisect_left(tokens.headings, start) - 1
    if at < 0 or tokens.tags[tokens.headings[at]].name == "h1" or is_link_list(tokens, start, end):
        return False
    heading_end = tokens.closing[tokens.headings[at]]
    if any(tag.name in _ENDS_OF_PARTS for tag in tokens.tags[heading_end:start]):
        return False
    return not "".join(tokens.texts[heading_end + 1 : start + 1]).strip()


_ENDS_OF_PARTS = frozenset({"/nav", "/aside", "/header", "/footer", "/main"})


def _is_followed(tokens: Tokens, end: int) -> bool:
    """Whether text comes before the next heading."""
    for index in range(end + 1, min(end + _FEW_TAGS, len(tokens.tags))):
        if tokens.texts[index].strip():
            return True
        if tokens.tags[index].heading:
            return False
    return False


def is_link_list(tokens: Tokens, start: int, end: int) -> bool:
    """Whether nearly all text between two tags is that of links."""
    return _link_share(tokens, start, end) >= 0.7


def _link_share(tokens: Tokens, start: int, end: int) -> float:
    known = tokens.link_shares.get(start)
    if known is not None:
        return known
    linked = total = 0
    in_link = False
    inside = slice(start + 1, end + 1)
    for text, tag in zip(tokens.texts[inside], tokens.tags[inside], strict=True):
        if text and (length := len(text.strip())):
            total += length
            if in_link:
                linked += length
        in_link = tag.name == "a" or (in_link and tag.name != "/a")
    share = tokens.link_shares[start] = linked / total if total else 1.0
    return share


def leads_within_page(tokens: Tokens, start: int, end: int) -> bool:
    """Whether at least half of the links between two tags lead to anchors of the same page."""
    hrefs = [tag.attributes.get("href", "") for tag in tokens.tags[start:end] if tag.name == "a"]
    if not hrefs:
        return end - start <= _FEW_TAGS
    return sum(href.startswith("#") for href in hrefs) * 2 >= len(hrefs)


# --- tables of contents without a name --------------------------------------------------------

_MIN_LINKS = 3
_MAX_OTHER_TEXT = 200


def is_contents_list(tokens: Tokens, start: int, end: int, *, in_prose: bool) -> bool:
    """Whether a list is a table of contents of its page.

    After a paragraph or below a heading inside the page, a list of links is part of the text,
    unless it names most of the headings of the page.
    """
    targets = _targets(tokens, start, end)
    if len(targets) < _MIN_LINKS:
        return False
    if not in_prose:
        return True
    named = sum(target in tokens.heading_ids for target in targets)
    return 2 * named >= len(tokens.heading_ids) and 2 * named > len(targets)


def _targets(tokens: Tokens, start: int, end: int) -> list[str]:
    """The anchors of a list of links to its page; empty if the list has other content."""
    targets: list[str] = []
    linked = total = 0
    in_link = False
    for index in range(start + 1, end + 1):
        length = len(tokens.texts[index].strip())
        total += length
        linked += length * in_link
        tag = tokens.tags[index]
        if tag.name == "a":
            href = tag.attributes.get("href", "#")
            if not href.startswith("#"):
                return []
            targets.append(href[1:])
            in_link = True
        elif tag.name == "/a":
            in_link = False
        if total > linked + _MAX_OTHER_TEXT:
            return []
    return targets if linked >= 0.8 * total else []
