"""Whether a term or an element is a definition, by its tokens; where it begins and ends."""

from __future__ import annotations

import re

from forager.extract.markdown.escape import code_span, escape_text
from forager.extract.markdown.headings import HeadingText
from forager.extract.markdown.tags import Tag
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import name_set

MAX_HEADING_LENGTH = 1_000
_MAX_TAGS = 400  # of a declaration
_MAX_SOURCE = 8 * MAX_HEADING_LENGTH  # characters of a declaration with those between its tags
_NEAR = 8  # tags before a signature among which the element around it begins
MAX_TERM = 300  # characters; a longer entry is a paragraph, unless it is a signature
_CALL = re.compile(r"[\w.:$@~]+\(.*\)(?: ?(?:->|:|→|=).*)?")
_OPTION = re.compile(r"--?[A-Za-z0-9?][\w-]*+(?:[\s=,\[|/]|$)")
# footnotes have anchors too
_NOTES = re.compile(r"footnote|citation|reference|bibliograph|field-list|option-list-notes")
_LETTER = re.compile(r"[^\W\d_]|[-$<@%_]")
_CODE = frozenset({"code", "tt", "kbd", "samp", "var", "pre"})
# in a declaration, the name stands in one of these, and none of the blocks is in it
_NAMED = _CODE | {"a", "span", "strong", "b", "em", "i"}
_BOXES = name_set("blockquote td tr tbody table p")
_DESCRIPTIONS = name_set("div p ul ol table blockquote")
_BLOCKS = name_set("h1 h2 h3 h4 h5 h6 p pre table img figure blockquote ul dl")


def first_block(tokens: Tokens, start: int) -> int:
    """The end of a term, or the first block in it after some text: a description of the term."""
    end = tokens.closing[start]
    for index in range(start + 1, end):
        if tokens.tags[index].name in _DESCRIPTIONS:
            has_text = any(map(str.strip, tokens.texts[start + 1 : index + 1]))
            return index if has_text else end
    return end


def may_be_definition(tokens: Tokens, start: int) -> bool:
    """Whether a term without an id is worth reading: it holds an anchor, or begins as an option."""
    end = tokens.closing[start]
    if wrapper_id(tokens, start):
        return True
    for tag in tokens.tags[start + 1 : end]:
        names = tag.attributes
        if names and ("id" in names or "name" in names or names.get("href", "")[:1] == "#"):
            return True
    text = "".join(tokens.texts[start + 1 : end + 1]).lstrip()
    return text[:1] == "-" or not text[:1].isascii()


def wrapper_id(tokens: Tokens, start: int) -> str | None:
    """The id of the `div` that groups a term with its descriptions."""
    before = tokens.tags[start - 1]
    return before.attributes.get("id") if before.name == "div" else None


def is_definition(
    tokens: Tokens, start: int, heading: HeadingText, list_classes: str, *, after_another: bool
) -> bool:
    """Whether a term is a definition to link to and to search for: by an anchor, or as an option.

    In a list with such a term, the following terms are definitions too, or they would belong to it.
    """
    text, tag = heading.text, tokens.tags[start]
    if not _LETTER.search(text) or _NOTES.search(list_classes.lower()):
        return False
    anchored = bool(tag.attributes.get("id") or heading.anchor or wrapper_id(tokens, start))
    if is_signature(tag) or (anchored and tokens.tags[start + 1].name == "pre"):
        return anchored
    if len(text) > MAX_TERM:
        return False
    return anchored or after_another or _OPTION.match(text) is not None


def is_signature(tag: Tag) -> bool:
    return "sig" in tag.attributes.get("class", "").split()


def signature(tokens: Tokens, start: int, end: int, text: str) -> str:
    """The term as the markdown of a heading: code where the page says that it is code."""
    is_code = is_signature(tokens.tags[start]) or any(
        tag.name in _CODE for tag in tokens.tags[start + 1 : min(end, start + 4)]
    )
    is_code = is_code or _OPTION.match(text) is not None or _CALL.fullmatch(text) is not None
    return code_span(text) if is_code else escape_text(text)


def is_declaration(tokens: Tokens, start: int) -> bool:
    """Whether an element with the name of a signature is one, and no box or closing of a letter."""
    end = tokens.closing[start]
    # elements inside of each other could cost the square of the page
    if end - start > _MAX_TAGS or sum(map(len, tokens.texts[start + 1 : end])) > _MAX_SOURCE:
        return False
    names = {tag.name for tag in tokens.tags[start + 1 : end]}
    return names.isdisjoint(_BLOCKS) and not names.isdisjoint(_NAMED)


def owner_of(tokens: Tokens, start: int) -> int:
    """The element with a definition and its text: around all boxes that only hold the signature."""
    inner, around = start, tokens.parent_of(start)
    while around and around != inner:
        end = tokens.closing[inner]
        after = tokens.texts[end + 1 : min(tokens.closing[around], end + _MAX_TAGS) + 1]
        if tokens.tags[around].name not in _BOXES and any(map(str.strip, after)):
            break
        inner, around = around, tokens.parent_of(around)
    return around


def anchor_before(tokens: Tokens, start: int, name: str | None) -> str | None:
    """The target of a permalink if an anchor right before the signature has that name."""
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        if name is None or tokens.texts[at + 1].strip():
            return None
        if tokens.tags[at].anchor == name:
            return name
    return None


def id_around(tokens: Tokens, start: int) -> tuple[str, int] | None:
    """The id of the nearest element that begins with this one, and its index."""
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        if tokens.texts[at + 1].strip():
            return None
        if tokens.closing[at] > start and (found := tokens.tags[at].attributes.get("id")):
            return found, at
    return None
