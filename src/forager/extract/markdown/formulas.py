"""Formulas that a page has as TeX: `$…$` in a line, `$$…$$` as a block, never escaped."""

from __future__ import annotations

import re
from html import escape

from forager.extract.markdown.tags import unescape
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import collapse

_DELIMITED = re.compile(r"\s*(?:\\\((.*)\\\)|\\\[(.*)\\\]|\$\$(.*)\$\$|\$(.*)\$)\s*", re.DOTALL)


# how MathJax 2 and kramdown write formulas
MATH_SCRIPT = "math/tex"
# any script: what looks like one in the text of another is text, and not replaced
_SCRIPT = re.compile(
    r"<script\b([^>]*+)>?((?:[^<]++|<(?!/script\b))*+)(</script\b[^>]*+>)?", re.IGNORECASE
)
_MATH_TYPE = re.compile(r"""\btype=["']?math/tex(; ?mode=display)?""", re.IGNORECASE)
_CDATA = re.compile(r"(?:% {0,9})?(?:<!\[CDATA\[|\]\]>)")


def formulas_of_scripts(html: str) -> str:
    """The page with its formulas in scripts as text, in the delimiters of TeX."""

    def shown(script: re.Match[str]) -> str:
        kind = _MATH_TYPE.search(script[1])
        if kind is None or script[3] is None:
            return script[0]
        source = escape(_CDATA.sub("", script[2]).strip(), quote=False)
        if kind[1]:
            return f'<div class="math">\\[{source}\\]</div>'
        return f'<span class="math">\\({source}\\)</span>'

    return _SCRIPT.sub(shown, html)


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
