"""The element with the title of a page, where no heading of the main content has it."""

from __future__ import annotations

import re
from dataclasses import replace

from forager.extract.content.choose import MainContent
from forager.extract.markdown.headings import read_heading
from forager.extract.markdown.tags import traits_of
from forager.extract.markdown.tokens import Tokens

_MIN_LENGTH = 2  # characters of a title
_MAX_CANDIDATES = 20
_WORD = re.compile(r"\w+")


def find_title(tokens: Tokens, main: MainContent, title: str) -> int | None:
    """The index of the heading before the main element that is the title of the page.

    An element inside the main one that has the class of a title becomes a heading instead.
    """
    if not title:
        return main.title
    inside = [index for index in tokens.headings if main.start <= index <= main.end]
    if any(_is_title(tokens, index, title) for index in inside[:_MAX_CANDIDATES]):
        return main.title
    before = [index for index in tokens.headings if index < main.start][-_MAX_CANDIDATES:]
    captions = [index for index in tokens.captions if index <= main.end][:_MAX_CANDIDATES]
    named = [index for index in (*before, *captions) if _is_title(tokens, index, title)]
    found = max(named, key=lambda index: len(_text(tokens, index)), default=main.title)
    if found is None or found < main.start:
        return found
    tag = tokens.tags[found]
    if tag.name in ("div", "p"):
        traits = traits_of(tag.name, tag.attributes)._replace(heading=1)
        tokens.tags[found] = replace(tag, traits=traits)
    return main.title


def is_in_title(heading: str, title: str) -> bool:
    """Whether the title of a page contains a heading, or the heading begins with the title."""
    words, named = _compact(heading), _compact(title)
    if min(len(words), len(named)) < _MIN_LENGTH:
        return False
    return words in named or words.startswith(named)


def _is_title(tokens: Tokens, index: int, title: str) -> bool:
    return is_in_title(_text(tokens, index), title)


def _text(tokens: Tokens, index: int) -> str:
    return read_heading(tokens, index, tokens.closing[index]).text


def _compact(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()
