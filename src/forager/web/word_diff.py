"""Line differences with the changed words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import zip_longest

from markupsafe import Markup, escape

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# longer lines are marked as a whole: comparing words takes quadratic time
MAX_WORDS = 400
MARKS = {"ins": Markup("<ins>{}</ins>"), "del": Markup("<del>{}</del>")}
CLASSES = {"+": "plus", "-": "minus", "@": "at"}

MarkedLine = tuple[str, Markup]


def marked_lines(diff: str) -> list[MarkedLine]:
    """The lines of a unified diff with a CSS class each, without its two file names."""
    marked: list[MarkedLine] = []
    removed: list[str] = []
    added: list[str] = []
    for line in [*diff.splitlines()[2:], None]:
        if line is not None and line.startswith("-") and not added:
            removed.append(line)
        elif line is not None and line.startswith("+"):
            added.append(line)
        else:
            marked += _changed(removed, added)
            removed, added = [], []
            if line is not None and line.startswith("-"):
                removed.append(line)
            elif line is not None:
                marked.append((CLASSES.get(line[:1], ""), escape(line or " ")))
    return marked


def _changed(removed: list[str], added: list[str]) -> Iterator[MarkedLine]:
    pairs = [_compared(old, new) for old, new in zip_longest(removed, added)]
    yield from ((CLASSES["-"], old) for old, _ in pairs if old)
    yield from ((CLASSES["+"], new) for _, new in pairs if new)


def _compared(old: str | None, new: str | None) -> tuple[Markup, Markup]:
    if old is None or new is None:
        return escape(old or ""), escape(new or "")
    before, after = _WORDS.findall(old[1:]), _WORDS.findall(new[1:])
    if max(len(before), len(after)) > MAX_WORDS:
        return escape(old), escape(new)
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return (
        old[0] + _joined(((kind, before[i:j]) for kind, i, j, _, _ in steps), "del"),
        new[0] + _joined(((kind, after[i:j]) for kind, _, _, i, j in steps), "ins"),
    )


def _joined(parts: Iterable[tuple[str, list[str]]], tag: str) -> Markup:
    whole = Markup("")
    for kind, words in parts:
        text = escape("".join(words))
        whole += text if kind == "equal" or not words else MARKS[tag].format(text)
    return whole
