"""The style sheet that a page contains: which classes are shown as code, and which as blocks."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from forager.extract.markdown.tags import MONOSPACE, traits_of
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import name_set

_MAX_STYLES = 100_000  # characters
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_MAX_RULE = 2_000  # characters of selectors or of a style
_SELECTOR = re.compile(r"(?:div|p|span|blockquote)?\.([\w-]+)", re.IGNORECASE)
_CODE = re.compile(rf"{MONOSPACE.pattern}|white-space\s*:\s*pre\s*(?:;|$|!)", re.IGNORECASE)
_BLOCK = re.compile(r"display\s*:\s*(?:block|flex|grid|table|list-item)\s*(?:;|$|!)", re.IGNORECASE)
_CODE_BLOCKS = frozenset({"div", "p", "blockquote"})
_INLINE = name_set("span a em strong b i code small")
_MAX_SHARE = 0.5  # of a page: a larger element is not a piece of code


class _Styled(NamedTuple):
    """Class names by the style that they have."""

    code: frozenset[str]
    blocks: frozenset[str]


@lru_cache(maxsize=64)
def _read(styles: str) -> _Styled:
    code: set[str] = set()
    blocks: set[str] = set()
    for rule in _COMMENT.sub("", styles).split("}"):
        around, _, style = rule.rpartition("{")
        selectors = around.rpartition("{")[2]
        if max(len(selectors), len(style)) > _MAX_RULE:
            continue
        found = [code] * bool(_CODE.search(style)) + [blocks] * bool(_BLOCK.search(style))
        if not found:
            continue
        for selector in selectors.split(","):
            if named := _SELECTOR.fullmatch(selector.strip()):
                for classes in found:
                    classes.add(named[1].lower())
    return _Styled(frozenset(code), frozenset(blocks))


def apply_styles(tokens: Tokens, styles: str) -> None:
    """Mark what a page shows as code, and separate inline elements that it shows as blocks.

    Only rules for one class are read, such as `div.example { font-family: monospace }`.
    """
    code, blocks = _read(styles[:_MAX_STYLES])
    if not code and not blocks:
        return
    # most elements have one of few lists of classes
    known: dict[str, tuple[bool, bool]] = {}
    for index, tag in enumerate(tokens.tags):
        if "class" not in tag.attributes:
            continue
        if (classes := tag.attributes["class"]) not in known:
            names = classes.lower().split()
            known[classes] = not code.isdisjoint(names), not blocks.isdisjoint(names)
        is_code, is_block = known[classes]
        if is_code and tag.name in _CODE_BLOCKS:
            if tokens.closing[index] - index < _MAX_SHARE * len(tokens.tags):
                traits = traits_of(tag.name, tag.attributes)._replace(code=True)
                tokens.tags[index] = replace(tag, traits=traits)
        elif is_code and tag.name == "span":
            tokens.tags[index] = replace(tag, name="code")
        elif is_block and tag.name in _INLINE and not tag.gap:
            tokens.tags[index] = replace(tag, gap=" ")
