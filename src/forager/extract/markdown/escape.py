"""Escaping of text as markdown, and code.

Only characters that would really be read as markup are escaped: text is searched as it is stored,
and `snake_case` must stay one word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forager.extract.content.boilerplate import ElementVerdict
from forager.extract.content.removal import is_dropped
from forager.extract.markdown.tags import Tag, unescape
from forager.extract.markdown.tokens import Tokens

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
_MAY_BE_ACTIVE = re.compile(r"[\\`*_<&\]~]").search
# only with a command, or an index or exponent in braces: other texts have backslashes too
_FORMULA = re.compile(
    r"\\\((?=[^$]*?(?:\\[a-zA-Z]|[_^]\{|\^))[^$]{1,2000}?\\\)"
    r"|\\\[(?=[^$]*?(?:\\[a-zA-Z]|[_^]\{|\^))[^$]{1,2000}?\\\]"
    r"|\$[^$\n]{0,200}(?:\\[a-zA-Z]+|[_^]\{)[^$\n]{0,1000}\$"
)
_LINE_START = re.compile(
    r"(?:\#{1,6}(?=\s|$)|[-+](?=\s|$)|>|-[-\ ]{2,}$|_[_\ ]{2,}$|=+$|\|)|(\d{1,9})([.)](?=\s|$))"
)


def escape_text(text: str) -> str:
    return _ACTIVE.sub(_escaped, text) if _MAY_BE_ACTIVE(text) else text


def markdown_of(html: str) -> str:
    """The markdown of a text without tags."""
    if not _MAY_BE_ACTIVE(html):
        return html
    if "\\" in html and (found := _FORMULA.search(html)):
        # TeX in the text, as MathJax finds it
        start, end = found.span()
        return f"{markdown_of(html[:start])}{unescape(found[0])}{markdown_of(html[end:])}"
    return _ACTIVE.sub(_escaped, unescape(html))


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def escape_line_start(line: str) -> str:
    """Escape the start of a line that would be read as a heading, a list, a quote or a rule."""
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
    """Inline code; code with backticks gets more of them around it."""
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


_LINE_ENDS = frozenset({"br", "/div", "/p", "/li", "/tr", "/code"})


def code_text(tokens: Tokens, start: int, end: int) -> str:
    """The text of code, without line numbers, buttons and colors."""
    texts, tags = tokens.texts[start : end + 1], tokens.tags
    name = tags[start].name
    if name == "table" or (name != "pre" and any(tag.name == "br" for tag in tags[start:end])):
        texts = list(map(_unwrapped, texts))
    parts: list[str] = []
    index = start + 1
    while index < end:
        parts.append(texts[index - start])
        tag = tags[index]
        if tag.verdict is not ElementVerdict.KEEP and _is_not_code(tokens, index, tag.verdict):
            tokens.removed[index] = tag.verdict.value
            index = tokens.closing[index]
        elif tag.name in _LINE_ENDS and _ends_line(
            parts, tags, index, end, texts[index + 1 - start]
        ):
            parts.append("\n")
        index += 1
    parts.append(texts[-1])
    code = unescape("".join(parts)).replace("\r", "").strip("\n").rstrip()
    for split, reason in ((_colors, "colors of a terminal"), (_line_numbers, "numbers of lines")):
        kept, cut = split(code)
        if cut:
            tokens.cut[start, reason] = " ".join(cut)
            code = kept
    return code


_WRAPPED = re.compile(r"(?<![ \t])[ \t]*+\n\s*")


def _unwrapped(text: str) -> str:
    """A text whose lines end with tags: other line ends are blanks."""
    if "\n" not in text:
        return text
    return _WRAPPED.sub(" ", text.lstrip() if text.lstrip(" \t")[:1] == "\n" else text)


# colors of a terminal that were converted to tags, for a script of the page to show
_COLOR = re.compile(r'</?(?:font|span|u|b|i)(?: (?:color|style)="[^"<>]*")?>')


def _colors(code: str) -> tuple[str, list[str]]:
    """A terminal session without colors that are written as tags, and these; code stays."""
    if '<font color="' not in code or not code.startswith(("$ ", "# ", "> ")):
        return code, []
    plain = _COLOR.sub("", code).replace("&apos;", "'").replace("&quot;", '"')
    return plain, _COLOR.findall(code)


_NUMBERED = re.compile(r"[ \t]*(\d+)(?![.,:)%])(.*)")
_GLUED = re.compile(r"[A-Za-z_$#@<{\"'/]")


def _line_numbers(code: str) -> tuple[str, list[str]]:
    """Code without numbers at the beginning of its lines, if all lines are numbered from 1."""
    if not code.lstrip(" ").startswith("1") or "\n" not in code:
        return code, []
    lines = [_NUMBERED.fullmatch(line) for line in code.split("\n")]
    counted = all(line and int(line[1][:9]) == at for at, line in enumerate(lines, start=1))
    # a column of numbers is data; numbers that touch the words are not
    if not counted or not any(line and _GLUED.match(line[2]) for line in lines):
        return code, []
    numbered = [line for line in lines if line]
    return "\n".join(line[2] for line in numbered), [line[1] for line in numbered]


def _is_not_code(tokens: Tokens, index: int, verdict: ElementVerdict) -> bool:
    if verdict is ElementVerdict.NEVER or verdict is ElementVerdict.UNSHOWN:
        return True
    end = tokens.closing[index]
    if tokens.tags[index].name in _WIDGETS:
        return not _has_lines(tokens, index, end) and is_dropped(tokens, index)
    # a class such as "nav" may color a word: only empty elements and numbers are not code
    text = "".join(tokens.texts[index + 1 : end + 1]) if end - index < _FEW_TAGS else "code"
    return _NUMBERS.fullmatch(text) is not None


def _has_lines(tokens: Tokens, start: int, end: int) -> bool:
    """Whether an element in code is several lines of it, which a click may show."""
    texts = tokens.texts[start + 1 : min(end, start + _MANY_TAGS) + 1]
    return "\n" in "".join(texts).strip() and not all(map(_NUMBERS.fullmatch, texts))


_FEW_TAGS = 12
_MANY_TAGS = 400
_NUMBERS = re.compile(r"[\d\s.]*")
_WIDGETS = frozenset({"div", "a", "nav", "ul"})


def _ends_line(parts: list[str], tags: Sequence[Tag], index: int, end: int, following: str) -> bool:
    name = tags[index].name
    if name == "br":
        return True
    if name == "/code" and (index + 1 >= end or tags[index + 1].name != "code"):
        return False
    last = next((part for part in reversed(parts[-4:]) if part), "")
    return not last.endswith("\n") and not following.startswith("\n")
