"""Characters that would mean something in markdown where the page only wrote them.

Only what would really be read as markup is escaped: text is searched as it is stored, and
`snake_case` must stay one word.
"""

from __future__ import annotations

import re

_ACTIVE = re.compile(
    r"""
      \\(?=[!-/:-@\[-`{-~])                 # a backslash that would escape what follows
    | `
    | \*(?=\S)|(?<=\S)\*                    # a star beside a word may begin or end emphasis
    | (?<!\w)_+(?=\S)|(?<=[^\s_])_+(?!\w)   # so may underscores at the edge of one
    | <(?=[a-zA-Z/!?])                      # would begin a tag or an address
    | &(?=\#?[a-zA-Z0-9]{1,32};)            # would be a character's name
    | \](?=[(\[:])                          # would end a link
    | ~(?=~)
    """,
    re.VERBOSE,
)
_MAY_BE_ACTIVE = re.compile(r"[\\`*_<&\]~]")
_LINE_START = re.compile(
    r"(?:\#{1,6}(?=\s|$)|[-+](?=\s|$)|>|-[-\ ]{2,}$|_[_\ ]{2,}$|=+$|\|)|(\d{1,9})([.)](?=\s|$))"
)


def escape_text(text: str) -> str:
    return _ACTIVE.sub(_escaped, text) if _MAY_BE_ACTIVE.search(text) else text


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def escape_line_start(line: str) -> str:
    """A paragraph that begins like a heading, a list, a quote or a rule is none of them."""
    if line[:1] not in "#-+>_=|0123456789":
        return line
    found = _LINE_START.match(line)
    if not found:
        return line
    if found[1]:
        return f"{found[1]}\\{line[len(found[1]) :]}"
    return f"\\{line}"


_BACKTICKS = re.compile(r"`+")


def code_span(code: str) -> str:
    """Inline code; code that holds backticks gets more of them around it."""
    if "`" not in code:
        return f"`{code}`"
    mark = "`" * (_longest_run(code) + 1)
    pad = " " if code[0] == "`" or code[-1] == "`" else ""
    return f"{mark}{pad}{code}{pad}{mark}"


def fence(code: str, language: str) -> str:
    """A fenced block, with a fence that the code cannot close."""
    mark = "`" * max(3, _longest_run(code) + 1) if "```" in code else "```"
    return f"{mark}{language}\n{code}\n{mark}"


def _longest_run(code: str) -> int:
    return max(map(len, _BACKTICKS.findall(code)), default=0)


def balanced(text: str) -> bool:
    """Whether brackets in a link's text close in order, so that they cannot end it."""
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0
