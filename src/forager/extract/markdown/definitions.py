"""Entries of definition lists that define a name: functions, options, terms with an anchor."""

from __future__ import annotations

import re

from forager.extract.markdown.escape import code_span, escape_text
from forager.extract.markdown.headings import HeadingText
from forager.extract.markdown.tags import Tag
from forager.extract.markdown.tokens import Tokens

MAX_TERM = 300  # characters; a longer entry is a paragraph, unless it is a signature
_OPTION = re.compile(r"--?[A-Za-z0-9?][\w-]*+(?:[\s=,\[|/]|$)")
# footnotes have anchors too
_NOTES = re.compile(r"footnote|citation|reference|bibliograph|field-list|option-list-notes")
_LETTER = re.compile(r"[^\W\d_]|[-$<@%_]")
_CODE = frozenset({"code", "tt", "kbd", "samp", "var"})


def is_definition(
    tag: Tag, heading: HeadingText, list_classes: str, *, after_another: bool
) -> bool:
    """Whether a term is one to link to and to search for: it has an anchor, or is an option.

    In a list with such a term, those after it are definitions as well, or they would belong to it.
    """
    text = heading.text
    if not _LETTER.search(text) or _NOTES.search(list_classes.lower()):
        return False
    if is_signature(tag):
        return bool(tag.attributes.get("id") or heading.anchor)
    if len(text) > MAX_TERM:
        return False
    anchored = bool(tag.attributes.get("id") or heading.anchor)
    return anchored or after_another or _OPTION.match(text) is not None


def is_signature(tag: Tag) -> bool:
    return "sig" in tag.attributes.get("class", "").split()


def signature(tokens: Tokens, start: int, end: int, text: str) -> str:
    """The term as the markdown of a heading: code where the page says that it is code."""
    is_code = is_signature(tokens.tags[start]) or any(
        tag.name in _CODE for tag in tokens.tags[start + 1 : min(end, start + 4)]
    )
    return code_span(text) if is_code or _OPTION.match(text) else escape_text(text)
