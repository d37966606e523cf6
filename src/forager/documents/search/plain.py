"""Crawled text as it can be shown anywhere: no markup, nothing that steers a terminal or a line."""

from __future__ import annotations

import re

# controls, and the marks that turn the direction of writing around
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]"
)

# each part is bounded, so that no text is slow
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}(?:\s\"[^\"]{0,500}\")?\)")
_FENCE = re.compile(r"^[ \t]{0,20}(?:```|~~~)[^\n]{0,200}$", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]{0,20}(?:#{1,6}|>|[-*+])[ \t]", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]{0,20}\|?[ \t:|-]{3,500}$", re.MULTILINE)
_STRONG = re.compile(r"\*\*(?=\S)([^*\n]{1,500})(?<=\S)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]{1,300})(?<=[^\s*\\])\*(?![\w*])")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")


def one_line(text: str) -> str:
    """A text on one line, without characters that are orders rather than text."""
    return " ".join(_STEERING.sub(" ", text).split())


def plain_text(markdown: str) -> str:
    """The words of a markdown text on one line. HTML in it stays what it is: text."""
    text = _LINK.sub(r"\1", _FENCE.sub("", markdown))
    # again: a link around an image
    text = _LINK.sub(r"\1", text)
    text = _LINE_MARK.sub("", _TABLE_RULE.sub("", text))
    text = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\1", _BREAK.sub(" ", text)))
    text = text.replace("`", "").replace("|", " ")
    return one_line(_ESCAPE.sub(r"\1", text))
