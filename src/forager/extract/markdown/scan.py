"""Headings of markdown pages, found without a full parser.

A scan of the lines that recognizes fences finds the same headings, many times faster.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from forager.extract.markdown.blocks import HeadedText
from forager.extract.text import collapse

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-+*>|#]|\d{1,9}[.)]|<|```|~~~)|    |\t|\s*$")
_EXPLICIT_ID = re.compile(
    r"\s*\{#([^\s{}]{1,200})\}\s*$|\s*<a\s+(?:id|name)=[\"']([^\"']{1,200})[\"']\s*>\s*(?:</a>)?"
)
_ANCHOR_LINE = re.compile(r"\s*<a\s+(?:id|name)=[\"']([^\"']+)[\"']\s*/?>\s*+(?:</a>)?\s*+")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+)$", re.MULTILINE)
_LOOKS_LIKE_MARKDOWN = re.compile(
    r"^#{2,6} \S|^# \S.*\n(?:\n|=)|\]\(\S|^```|^={3,}$|^-{3,}$", re.MULTILINE
)


MAX_HEADING_LINE = 2_000


class ScannedMarkdown(NamedTuple):
    """Markdown in parts, each with its heading."""

    parts: list[HeadedText]
    title: str | None  # from the front matter


def looks_like_markdown(text: str) -> bool:
    """Whether plain text has markup of markdown."""
    return _LOOKS_LIKE_MARKDOWN.search(text[:100_000]) is not None


def scan_markdown(text: str) -> ScannedMarkdown:
    """The parts of a markdown page."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = None
    if front := _FRONT_MATTER.match(text):
        found = _TITLE.search(front[1])
        title = found[1].strip().strip("\"'") if found else None
        text = text[front.end() :]
    return ScannedMarkdown(_Scan().run(text), title)


class _Scan:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._part = HeadedText(0)
        self._parts = [self._part]
        self._fence = ""
        self._in_comment = False

    def run(self, text: str) -> list[HeadedText]:
        for line in text.split("\n"):
            if self._fence:
                self._lines.append(line)
                if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                    self._fence = ""
            elif not self._is_comment(line) and not self._is_heading(line):
                fence = _FENCE.fullmatch(line)
                self._fence = fence[1] if fence else ""
                self._lines.append(line)
        self._end_part()
        return self._parts

    def _is_comment(self, line: str) -> bool:
        """Whether a line belongs to a comment; such lines are kept, but have no headings."""
        if not self._in_comment and not line.lstrip().startswith("<!--"):
            return False
        self._in_comment = "-->" not in line
        self._lines.append(line)
        return True

    def _is_heading(self, line: str) -> bool:
        if len(line) > MAX_HEADING_LINE:
            return False
        if heading := _HEADING.fullmatch(line):
            return self._begin(len(heading[1]), heading[2] or "")
        if not self._lines or not _UNDERLINE.fullmatch(line):
            return False
        above = self._lines[-1]
        before = self._lines[-2] if len(self._lines) > 1 else ""
        alone = not before.strip() or _FENCE.fullmatch(before)
        if len(above) > MAX_HEADING_LINE or _NO_PARAGRAPH.match(above) or not alone:
            return False
        self._lines.pop()
        return self._begin(1 if "=" in line else 2, above.strip())

    def _begin(self, level: int, markdown: str) -> bool:
        anchor = self._anchor_above()
        if ("{#" in markdown or "<a" in markdown) and (own := _EXPLICIT_ID.search(markdown)):
            anchor = own[1] or own[2]
            markdown = markdown[: own.start()] + markdown[own.end() :]
        markdown = collapse(markdown)
        if not markdown:
            return False
        self._end_part()
        self._part = HeadedText(level, plain_heading(markdown), markdown, anchor)
        self._parts.append(self._part)
        return True

    def _anchor_above(self) -> str | None:
        for at in range(len(self._lines) - 1, max(-1, len(self._lines) - 3), -1):
            if found := _ANCHOR_LINE.fullmatch(self._lines[at]):
                del self._lines[at:]
                return found[1]
            if self._lines[at].strip():
                return None
        return None

    def _end_part(self) -> None:
        content = "\n".join(self._lines).strip("\n").rstrip()
        self._lines = []
        if content.strip():
            self._part.blocks.append(content)


_LINK = re.compile(r"!?\[([^\]]{0,1000})\](?:\([^)]{0,4000}\)|\[[^\]]{0,200}\])")
_MARK = re.compile(r"(?<!\\)(?:\*\*|__|`+|\*)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def plain_heading(markdown: str) -> str:
    """The text of a heading without its markup."""
    text = _MARK.sub("", _LINK.sub(r"\1", markdown))
    return collapse(_ESCAPED.sub(r"\1", text)) or markdown
