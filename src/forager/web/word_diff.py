"""Differences as HTML with the changed words marked: unified diffs, and rendered pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest

from markupsafe import Markup, escape

from forager.web.markdown import sections_to_html

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# longer lines are marked as a whole: comparing words takes quadratic time, or worse
MAX_WORDS = 200
MARKS = {"ins": Markup("<ins>{}</ins>"), "del": Markup("<del>{}</del>")}
CLASSES = {"+": "plus", "-": "minus", "@": "at"}

MarkedLine = tuple[str, Markup]
# the line before and the line after; equal lines and places are on both sides
LinePair = tuple[MarkedLine | None, MarkedLine | None]


def paired_lines(diff: str) -> list[LinePair]:
    """The lines of a unified diff beside each other, without its two file names."""
    pairs: list[LinePair] = []
    removed: list[str] = []
    added: list[str] = []
    for line in [*diff.splitlines()[2:], None]:
        if line is not None and line.startswith("-") and not added:
            removed.append(line)
        elif line is not None and line.startswith("+"):
            added.append(line)
        else:
            pairs += _changed(removed, added)
            removed, added = [], []
            if line is not None and line.startswith("-"):
                removed.append(line)
            elif line is not None:
                same = (CLASSES.get(line[:1], ""), escape(line or " "))
                pairs.append((same, same))
    return pairs


def marked_lines(diff: str) -> list[MarkedLine]:
    """The lines of a unified diff below each other, with a CSS class each."""
    lines: list[MarkedLine] = []
    for changed, pairs in groupby(paired_lines(diff), key=lambda pair: pair[0] is not pair[1]):
        before, after = zip(*pairs, strict=True)
        lines += [line for line in (*before, *(after if changed else ())) if line is not None]
    return lines


def _changed(removed: list[str], added: list[str]) -> Iterator[LinePair]:
    for old, new in zip_longest(removed, added):
        before, after = _compared(old, new)
        yield (CLASSES["-"], before) if before else None, (CLASSES["+"], after) if after else None


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


def diffs_to_html(diffs: Sequence[str], side: bool) -> list[str]:
    """Unified diffs as HTML: lines below each other, or side by side."""
    return [_side_by_side(diff) if side else _inline(diff) for diff in diffs]


_TAGS = re.compile(r"(<[^>]*>)")
_HTML_WORDS = re.compile(r"(?:&#?\w+;|[^\s&])+\s*|\s+|&")
# above this, words that are frequent are not compared, which bounds the time
MAX_COMPARED = 400


def changes_to_html(texts: Sequence[str]) -> list[str]:
    """Markdown of two versions of each section, one after the other, as one HTML with marks."""
    html = sections_to_html(texts)
    return [mark_changes(*pair) for pair in zip(html[::2], html[1::2], strict=True)]


def mark_changes(old: str, new: str) -> str:
    """The new HTML with added words in `ins` and removed words in `del`.

    Each word is marked inside its own element, so the result is as well-formed as the new HTML.
    """
    if old == new:
        return new
    before = [word for kind, word in _tokens(old) if kind == "word"]
    tokens = list(_tokens(new))
    after = [word for kind, word in tokens if kind == "word"]
    is_long = max(len(before), len(after)) > MAX_COMPARED
    matcher = SequenceMatcher(None, before, after, autojunk=is_long)
    added: set[int] = set()
    removed: dict[int, str] = {}
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            added.update(range(k, m))
            removed[k] = "".join(f"{word.rstrip()} " for word in before[i:j])
    return "".join(_marked(tokens, added, removed, len(after)))


def _tokens(html: str) -> Iterator[tuple[str, str]]:
    """Tags, words (each with the space after it) and other space between tags."""
    for part in _TAGS.split(html):
        if part.startswith("<"):
            yield "tag", part
        else:
            for word in _HTML_WORDS.findall(part):
                yield "space" if word.isspace() else "word", word


def _marked(
    tokens: Sequence[tuple[str, str]], added: set[int], removed: dict[int, str], words: int
) -> Iterator[str]:
    at = 0
    for kind, token in tokens:
        if kind != "word":
            yield token
            continue
        yield _mark("del", removed.get(at, ""))
        yield _mark("ins", token) if at in added else token
        at += 1
    if removed.get(words):
        yield f"<p>{_mark('del', removed[words])}</p>"


def _mark(tag: str, html: str) -> str:
    return f"<{tag}>{html}</{tag}>" if html.strip() else html


def _inline(diff: str) -> str:
    lines = "".join(_line(each) for each in marked_lines(diff) or [("", escape(diff))])
    return f'<div class="diff" tabindex="0" role="region" aria-label="Difference">{lines}</div>'


def _side_by_side(diff: str) -> str:
    pairs = paired_lines(diff) or [(("", escape(diff)), None)]
    lines = "".join(_line(each) for pair in pairs for each in pair)
    return (
        '<div class="diff sides" tabindex="0" role="region"'
        f' aria-label="Difference, side by side">{lines}</div>'
    )


def _line(line: MarkedLine | None) -> str:
    kind, text = line or ("", "")
    return f'<span class="{kind}">{text}</span>'
