"""One start or end tag, taken apart once however often it comes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from forager.extract.content.boilerplate import Verdict, judge, judge_id
from forager.extract.content.names import names
from forager.extract.content.themes import rank_of

VOID = names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source"
    " track wbr"
)

Attributes = dict[str, str]

_ATTRIBUTE = re.compile(r'([^\s="]+)(?:="([^"]*)")?')


class Tag(NamedTuple):
    name: str  # "/p" for an end tag
    attributes: Attributes
    verdict: Verdict
    void: bool
    rank: int  # of a main element, by its names


MAX_REMEMBERED = 400  # characters: memory must not fill with one page's monsters
_MAX_CLASSES = 400


def read_tag(raw: str) -> Tag:
    """The tag between `<` and `>`, as lexbor serialises it: quoted, escaped, lower-case names."""
    return _remembered(raw) if len(raw) <= MAX_REMEMBERED else _parse(raw)


def _parse(raw: str) -> Tag:
    name, _, rest = raw.partition(" ")
    if not rest:
        verdict = Verdict.KEEP if name[0] == "/" else judge(name, "", "")
        return Tag(name, {}, verdict, name in VOID, rank_of(name, "", "", "", ""))
    attributes = {key: unescape(value) for key, value in _ATTRIBUTE.findall(rest)}
    if len(attributes.get("class", "")) > _MAX_CLASSES:
        attributes["class"] = attributes["class"][:_MAX_CLASSES]
    get = attributes.get
    classes, identifier, role = get("class", ""), get("id", ""), get("role", "")
    verdict = judge(name, classes, role)
    if verdict is Verdict.KEEP and identifier:
        verdict = judge_id(name, identifier)
    if verdict is Verdict.KEEP:
        verdict = _hidden(attributes)
    rank = rank_of(name, classes, identifier, role, get("itemprop", ""))
    return Tag(name, attributes, verdict, name in VOID, rank)


# a page repeats few tags many times, and so do the pages of one site
_remembered = lru_cache(maxsize=8192)(_parse)

_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)


def _hidden(attributes: Attributes) -> Verdict:
    """Hidden elements are no content, except panels that a click would show."""
    hidden = (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or ("style" in attributes and _DISPLAY_NONE.search(attributes["style"]) is not None)
    )
    return Verdict.HIDDEN if hidden else Verdict.KEEP


def unescape(text: str) -> str:
    """Undo lexbor's escapes; it writes no others than these."""
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    return text.replace("&nbsp;", " ").replace("&amp;", "&")
