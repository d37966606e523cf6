"""Headings and definitions: their words without permalinks and buttons, and their anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forager.extract.content.boilerplate import HEADINGS, ElementVerdict
from forager.extract.markdown.tags import Tag, unescape
from forager.extract.markdown.tokens import Tokens, is_exponent
from forager.extract.text import collapse, name_set

PERMALINK = "a permalink, a button or a link to the source in a heading"
_MAX_TAGS = 200  # of one heading; what comes after them is read as it is
_NEAR = 8  # tags before a heading among which the element around it begins
# zero-width characters and soft hyphens, with which themes fill the links of headings; joiners
# inside a word are letters of it in Persian and Hindi
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u00ad]|(?<!\\w)[\u200c\u200d]|[\u200c\u200d](?!\\w)")
_SIGNS = "¶§ "
_ASCII_SIGNS = "#^ "
_ENOUGH_WORDS = 12  # characters
_TOGGLES = name_set("collapse expand show hide toggle fold unfold open close more less")
_PERMALINKS = frozenset({"link", "permalink", "permanent link", "direct link", "anchor"})
_SOURCE = frozenset({"source", "src", "view source", "edit"})
_SOURCE_LENGTH = 13  # characters
_BREAKS = name_set("br p div li /p /div /li")


@dataclass(slots=True)
class HeadingText:
    """The text of a heading, the elements of it that are left out, and its anchors."""

    text: str
    skipped: set[int] = field(default_factory=set)
    permalink: str | None = None  # the target of a link to the heading itself
    inner: str | None = None  # the id of an element in it
    around: str | None = None  # the target of a link around all of its text, or to its element

    @property
    def anchor(self) -> str | None:
        return self.permalink or self.inner


def read_heading(tokens: Tokens, start: int, end: int) -> HeadingText:
    """Read the heading between two tags."""
    if end == start + 1:
        return HeadingText(plain(tokens.texts[end]))
    whole = plain(_text(tokens, start, end))
    heading = HeadingText("")
    parts: list[str] = []
    index = start + 1
    while index <= end:
        parts.append(tokens.texts[index])
        tag = tokens.tags[index]
        if tag.gap and index < end:
            parts.append(tag.gap)
        elif tag.name == "sup" and index < end and is_exponent(tokens, index):
            parts.append("^")
        elif is_label(tokens, index) and "".join(parts[-4:])[-1:].isalnum():
            parts.append(" ")
        is_element = index < min(end, start + _MAX_TAGS) and tokens.closing[index] > index
        if is_element and _read_element(tokens, start, index, heading, whole):
            index = tokens.closing[index]
        if tokens.tags[index].name in _BREAKS:
            parts.append(" ")
        index += 1
    text = plain("".join(parts))
    if not text and not is_sign(whole):  # nothing is left: keep everything
        heading.skipped.clear()
        text = whole
    heading.text = text.rstrip(_SIGNS).removesuffix(" #") if len(text) > 1 else text
    return heading


def _read_element(tokens: Tokens, start: int, index: int, heading: HeadingText, whole: str) -> bool:
    """Record the anchors of one element in a heading; return whether it is left out."""
    tag = tokens.tags[index]
    heading.inner = heading.inner or tag.attributes.get("id") or _old_anchor(tag)
    if tag.verdict is ElementVerdict.KEEP and tag.name != "a":
        return False
    text = plain(_text(tokens, index, tokens.closing[index]))
    href = tag.attributes.get("href", "")
    is_place = len(href) > 1 and href[0] == "#"
    is_left_out = _is_left_out(tag.verdict, text, whole)
    if tag.name == "a" and not is_left_out:
        is_left_out = (
            (is_place and (is_sign(text) or _is_permalink(text, whole)))
            or _is_source_link(tokens, start, text, whole)
            or _is_toggle(href, text, whole)
        )
    if is_left_out:
        heading.skipped.add(index)
        if is_place:
            heading.permalink = heading.permalink or href[1:]
        return True
    if is_place and (
        _is_around(tokens, start, href[1:])
        or (text == whole and _belongs_here(tokens, index, href[1:]))
    ):
        heading.around = href[1:]
    return False


def _old_anchor(tag: Tag) -> str | None:
    """The name of `<a name>`; links elsewhere have names too, which are not for this heading."""
    names = tag.attributes
    return names.get("name") if tag.name == "a" and names.get("href", "#")[:1] == "#" else None


def _is_left_out(verdict: ElementVerdict, text: str, whole: str) -> bool:
    """Whether permalinks and buttons are left out: not if hardly any other text is left."""
    if verdict in (ElementVerdict.NEVER, ElementVerdict.REPEATED):
        return True
    if verdict in (ElementVerdict.KEEP, ElementVerdict.CONTENTS):
        return False
    rest = len(whole) - len(text)
    return rest > min(len(text), _ENOUGH_WORDS) or is_sign(text)


def _is_permalink(text: str, whole: str) -> bool:
    return text != whole and text.strip("[]()").lower() in _PERMALINKS


def _is_source_link(tokens: Tokens, start: int, text: str, whole: str) -> bool:
    """Whether a link leads from a definition to its source code.

    In a heading, the word needs brackets: "Getting the source" is a title.
    """
    if not len(text) <= _SOURCE_LENGTH < len(whole) or text.strip("[] ").lower() not in _SOURCE:
        return False
    return tokens.tags[start].name not in HEADINGS or text[0] == "["


def _is_toggle(href: str, text: str, whole: str) -> bool:
    """Whether a link that leads nowhere folds what is below the heading."""
    leads_nowhere = href == "#" or href[:11].lower() == "javascript:"
    return leads_nowhere and len(whole) > len(text) and text.strip("[]()+- ").lower() in _TOGGLES


def _is_around(tokens: Tokens, start: int, target: str) -> bool:
    """Whether a link target is the element that begins shortly before the heading and holds it."""
    return any(
        tokens.tags[at].attributes.get("id") == target and tokens.closing[at] > start
        for at in range(max(0, start - _NEAR), start)
    )


def _belongs_here(tokens: Tokens, index: int, target: str) -> bool:
    """Whether a link target is the anchor of the heading around the link."""
    for at in range(index - 1, max(-1, index - 1 - _NEAR), -1):
        if tokens.texts[at + 1].strip():
            break
        if tokens.tags[at].attributes.get("id") == target:
            return True
    return target not in tokens.ids


def is_label(tokens: Tokens, index: int) -> bool:
    """Whether a `<span>` follows another one at once: labels, which the page separates by style."""
    if tokens.tags[index].name != "span" or tokens.tags[index - 1].name != "/span":
        return False
    return not tokens.texts[index] and tokens.texts[index + 1][:1].isalnum()


def is_sign(text: str) -> bool:
    """Whether a text is only a sign such as ¶, # or § of a permalink, and no name or operator."""
    return len(text) <= 2 and not any(map(_is_of_name, text))


def _is_of_name(character: str) -> bool:
    return character.isalnum() or (character.isascii() and character not in _ASCII_SIGNS)


def _text(tokens: Tokens, start: int, end: int) -> str:
    return "".join(tokens.texts[start + 1 : end + 1])


def plain(text: str) -> str:
    """Escaped text in its readable form."""
    return visible(collapse(unescape(text)))


def visible(text: str) -> str:
    """The text without invisible characters."""
    return text if text.isascii() else collapse(_INVISIBLE.sub("", text))
