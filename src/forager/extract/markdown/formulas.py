"""Formulas that a page has as TeX: `$…$` in a line, `$$…$$` as a block, never escaped."""

from __future__ import annotations

import re

from forager.extract.markdown.tags import unescape
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import collapse

_DELIMITED = re.compile(r"\s*(?:\\\((.*)\\\)|\\\[(.*)\\\]|\$\$(.*)\$\$|\$(.*)\$)\s*", re.DOTALL)


def formula_of(tokens: Tokens, index: int, *, display: bool = False) -> str:
    """The formula in an element without other elements; empty if its text is no TeX."""
    end = tokens.closing[index]
    if end != index + 1:
        return ""
    found = _DELIMITED.fullmatch(unescape(tokens.texts[end]))
    if found is None:
        return ""
    return tex(next(filter(None, found.groups()), ""), display=display or bool(found[2]))


def tex(source: str, *, display: bool = False) -> str:
    """TeX in the delimiters of markdown."""
    if not display:
        return f"${collapse(source)}$"
    return f"$$\n{source.strip()}\n$$" if "\n" in source.strip() else f"$${source.strip()}$$"
