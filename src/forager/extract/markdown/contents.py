"""Tables of contents that have no name: links to the headings that follow, in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from urllib.parse import unquote

from forager.extract.markdown.blocks import HeadedText
from forager.extract.text import collapse

_MIN_LINKS = 2
_LABEL = 80  # characters of a title above a table of contents; longer text or ":" is prose
_LINK = re.compile(r"\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(<?([^()\s<>#]*)#([^()\s<>]*)>?\)")
_ONLY_LINKS = re.compile(rf"(?:\s*+(?:[-*>] |\d{{1,9}}\. )*{_LINK.pattern}[\s,;|·]*+)+")
_WORD = re.compile(r"\w+")


def remove_contents(parts: Sequence[HeadedText], url: str) -> list[str]:
    """Remove the links that name the headings after them, and return their texts.

    All words of such a list are in the headings. A list in prose is part of it, as are links to
    some of the headings only.
    """
    here = f"]({url}#"
    found = [part for part in parts if any(here in block for block in part.blocks)]
    if not found:
        return []
    places = {
        name: at
        for at, part in reversed(list(enumerate(parts)))
        for name in (part.anchor, *(name for _, name in part.anchors))
        if name and part.level
    }
    removed: list[str] = []
    for part in found:
        at = next(number for number, each in enumerate(parts) if each is part)
        start, end = _run_of_links(part, url)
        targets = _LINK.findall("".join(part.blocks[start:end]))
        if _names_what_follows(targets, parts, places, at):
            removed.append(collapse(_LINK.sub(r"\1", "".join(part.blocks[start:end]))))
            _remove_blocks(part, start, end)
    if removed and len(parts) > 1 and not parts[0].level and not parts[0].blocks:
        parts[1].anchors = [*((0, name) for _, name in parts[0].anchors), *parts[1].anchors]
    return removed


def _run_of_links(part: HeadedText, url: str) -> tuple[int, int]:
    """The first blocks of a part that are nothing but links to its page, after a title at most."""
    start = 0
    if part.blocks and not _is_links(part.blocks[0], url):
        label = part.blocks[0].strip()
        start = 1 if len(label) <= _LABEL and label[-1:] != ":" else len(part.blocks)
    end = start
    while end < len(part.blocks) and _is_links(part.blocks[end], url):
        end += 1
    return start, end


def _is_links(block: str, url: str) -> bool:
    if f"]({url}#" not in block or _ONLY_LINKS.fullmatch(block) is None:
        return False
    return all(page == url for _, page, _ in _LINK.findall(block))


def _names_what_follows(
    links: Sequence[tuple[str, str, str]],
    parts: Sequence[HeadedText],
    places: dict[str, int],
    at: int,
) -> bool:
    """Whether links name headings after a part, in their order, and most of the headings there."""
    if len(links) < _MIN_LINKS:
        return False
    headings = [_words(part.heading) if part.level else "" for part in parts]
    targets = []
    for text, _, anchor in links:
        name = _words(text)
        target = places.get(anchor, places.get(unquote(anchor), -1))
        if target <= at and name in headings[at + 1 :]:  # its anchor is above the links
            target = headings.index(name, at + 1)
        if target <= at or not _is_named(name, headings[target]):
            return False
        targets.append(target)
    if any(after <= before for before, after in pairwise(targets)):
        return False
    return 2 * len(targets) > targets[-1] - targets[0]


def _is_named(text: str, heading: str) -> bool:
    return bool(text) and (text in heading or heading in text)


def _words(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()


def _remove_blocks(part: HeadedText, start: int, end: int) -> None:
    del part.blocks[start:end], part.ends[start:end]
    if part.blocks and not start:
        part.blocks[0] = part.blocks[0].lstrip("\n")
    part.anchors = [(block - max(0, min(block, end) - start), name) for block, name in part.anchors]
