"""The element that holds the content of a page, found in its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from forager.extract.content.removal import is_dropped
from forager.extract.content.themes import BODY, LIKELY, MAIN, TEXT
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import name_set

# The share of the page's text without boilerplate that an element of each rank must have. A
# standard main element may be small beside a menu that is not recognized as one.
_RULES = ((TEXT, "theme", 0.1), (BODY, "article", 0.3), (MAIN, "main", 0.03), (LIKELY, "name", 0.3))
_MAX_CANDIDATES = 200
# of several elements of one name, the largest is the content if it has this share of all
_LARGEST = 0.75
# the share of all text with which an element is accepted without a further check
_SURELY_ENOUGH = 0.35
_LEAST_PROSE = 0.1
_FEW_WORDS = 25  # characters of text without a tag in it
_SENTENCE = 60


class MainContent(NamedTuple):
    """The token range of the main element, and the rule that chose it."""

    start: int
    end: int
    rule: str
    title: int | None  # the h1 before it, where it has none itself
    fallbacks: int  # candidates that were rejected because they have too little of the page


class _Text:
    """The amount of text between any two tags, without boilerplate."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        lengths = list(map(len, map(str.strip, tokens.texts)))
        self.visible = sum(lengths)
        _leave_out(tokens, lengths)
        self._lengths = lengths
        self._before = list(accumulate(lengths, initial=0))

    def between(self, start: int, end: int) -> int:
        return self._before[end + 1] - self._before[start + 1]

    def of(self, index: int) -> int:
        return self.between(index, self.tokens.closing[index])

    def prose(self, start: int = 0, end: int | None = None) -> int:
        """The text between two tags that reads like prose: neither a link nor a few words.

        A short text counts once: menus repeat the labels of their buttons.
        """
        tags, texts, lengths = self.tokens.tags, self.tokens.texts, self._lengths
        total = 0
        counted: set[str] = set()
        in_link = False
        for index in range(start + 1, (len(tags) - 1 if end is None else end) + 1):
            if not in_link and lengths[index] >= _FEW_WORDS and texts[index] not in counted:
                total += lengths[index]
                if lengths[index] < _SENTENCE:
                    counted.add(texts[index])
            name = tags[index].name
            in_link = name == "a" or (in_link and name != "/a")
        return total


def _leave_out(tokens: Tokens, lengths: list[int]) -> None:
    done = -1  # the end of the last dropped element
    for index in tokens.marked:
        if index > done and is_dropped(tokens, index):
            done = tokens.closing[index]
            lengths[index + 1 : done + 1] = [0] * (done - index)


def choose_main(tokens: Tokens) -> MainContent:
    """The most precisely named element with enough of the page, or else the densest one.

    Where each of them would lose most of the text, class names are ignored.
    """
    text = _Text(tokens)
    rejected: dict[int, None] = {}
    for start, rule in _by_precision(text):
        if start not in rejected:
            if _is_plausible(text, start):
                return _main(tokens, _with_first_section(text, start), rule, len(rejected))
            rejected[start] = None
    tokens.lenient = True
    text = _Text(tokens)
    start = _densest(text, text.between(0, len(tokens.tags) - 1))
    return _main(tokens, start, "density, names ignored", max(1, len(rejected)))


def _by_precision(text: _Text) -> Iterator[tuple[int, str]]:
    whole = text.between(0, len(text.tokens.tags) - 1)
    candidates = _candidates(text.tokens)
    for rank, name, share in _RULES:
        found = candidates.get(rank)
        if found and (start := _pick(text, found, share * whole)) is not None:
            if start not in found or _is_one_of_several(text, candidates, start):
                start = _widened(text.tokens, candidates, start)
            if not _is_part_of_manual(text, start, several=start not in found):
                yield start, name
    yield _densest(text, whole), "density"


def _is_plausible(text: _Text, start: int) -> bool:
    """Whether an element has enough of the page's prose; menus do not count."""
    if text.of(start) >= _SURELY_ENOUGH * text.visible:
        return True
    kept = text.prose(start, text.tokens.closing[start]) or text.of(start)
    return kept > 0 and kept >= _LEAST_PROSE * _prose_by_standard(text.tokens)


def _prose_by_standard(tokens: Tokens) -> int:
    """The prose of the page without elements that standard tags and roles call boilerplate."""
    before, tokens.lenient = tokens.lenient, True
    prose = _Text(tokens).prose()
    tokens.lenient = before
    return prose


def _main(tokens: Tokens, start: int, rule: str, fallbacks: int) -> MainContent:
    end = tokens.closing[start]
    tokens.extent = end - start + 1
    inside = any(start <= index <= end for index in tokens.titles)
    before = [index for index in tokens.titles if index < start]
    return MainContent(start, end, rule, before[-1] if before and not inside else None, fallbacks)


def _candidates(tokens: Tokens) -> dict[int, list[int]]:
    """Elements by rank, only the outermost of those inside each other."""
    found: dict[int, list[int]] = {}
    closing = tokens.closing
    for index in tokens.ranked:
        same = found.setdefault(tokens.tags[index].rank, [])
        if len(same) < _MAX_CANDIDATES and (not same or closing[same[-1]] < index):
            same.append(index)
    return found


def _pick(text: _Text, found: list[int], least: float) -> int | None:
    sizes = {index: text.of(index) for index in found}
    total = sum(sizes.values())
    if total < least or not total:
        return None
    largest = max(found, key=sizes.__getitem__)
    if sizes[largest] >= _LARGEST * total:
        return largest
    return _around(text.tokens, found[0], found[-1])


def _is_one_of_several(text: _Text, candidates: dict[int, list[int]], start: int) -> bool:
    """Whether an `<article>` is a part of a page, such as one function: much text is around it."""
    tokens = text.tokens
    if tokens.tags[start].name != "article":
        return False
    around = _widened(tokens, candidates, start)
    end, outer_end = tokens.closing[start], tokens.closing[around]
    if around == start or not _holds_heading(tokens, around, start):
        return False
    own = text.prose(start, end)
    return own < _LARGEST * (own + text.prose(around, start) + text.prose(end, outer_end))


def _with_first_section(text: _Text, start: int) -> int:
    """The element around the main one and a head with the title and a section, as man pages have.

    The main element itself if it has a title, or if much else would come with the head.
    """
    tokens = text.tokens
    titles = [index for index in tokens.titles if index < tokens.closing[start]]
    if not titles or titles[-1] > start:
        return start
    head = tokens.parent_of(titles[-1])
    end = tokens.closing[head]
    inside = [
        at for at in tokens.headings if titles[-1] < at < end and tokens.parent_of(at) == head
    ]
    if end > start or not inside or text.prose(tokens.closing[inside[0]], end) < _FEW_WORDS:
        return start
    around = _around(tokens, titles[-1], start)
    others = text.of(around) - text.of(start) - text.of(head)
    return around if others < _LEAST_PROSE * text.of(start) else start


def _is_part_of_manual(text: _Text, start: int, *, several: bool) -> bool:
    """Whether reference pages are some chapters of a manual on one page, which has more prose."""
    tokens = text.tokens
    is_page = "refentry" in tokens.tags[start].attributes.get("class", "").split()
    if not (several or is_page) or not _holds_heading(tokens, 0, start):
        return False
    own = text.prose(start, tokens.closing[start])
    return own < _LARGEST * text.prose()


def _holds_heading(tokens: Tokens, start: int, end: int) -> bool:
    return any(start < index < end for index in tokens.headings)


def _widened(tokens: Tokens, candidates: dict[int, list[int]], start: int) -> int:
    """The named element around several articles, which also has the text before them."""
    end = tokens.closing[start]
    named = (*candidates.get(MAIN, ()), *candidates.get(LIKELY, ()))
    return max((at for at in named if at < start and tokens.closing[at] > end), default=start)


def _around(tokens: Tokens, first: int, last: int) -> int:
    """The innermost element around two others."""
    end = tokens.closing[last]
    for index in range(first - 1, -1, -1):
        if tokens.closing[index] > end and tokens.tags[index].name[0] != "/":
            return index
    return 0


_DENSE = 0.8
_BLOCKS = name_set("body div section td tr tbody table article center form main")


def _densest(text: _Text, whole: int) -> int:
    """The innermost block with nearly all text and every heading."""
    tokens = text.tokens
    headings = [index for index in tokens.headings if text.of(index)]
    chosen = index = 0
    while index < tokens.closing[chosen]:
        tag = tokens.tags[index]
        if tag.name in _BLOCKS and index != chosen:
            is_data = tag.name == "table" and index not in tokens.layout_tables
            if (
                not is_data
                and text.of(index) >= _DENSE * whole
                and _holds_all(text, headings, index)
            ):
                chosen = index
            else:
                index = tokens.closing[index]
        index += 1
    return chosen


def _holds_all(text: _Text, headings: list[int], start: int) -> bool:
    if not headings:
        return True
    return start < headings[0] and headings[-1] < text.tokens.closing[start]
