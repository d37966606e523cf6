"""Wildcard patterns that match in linear time, even hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import re2  # type: ignore[import-untyped]

from forager.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Literal parts in order, with anything between them; `anchored` ties the last to the end."""

    parts: tuple[str, ...]
    anchored: bool

    @classmethod
    def compile(cls, pattern: str, *, anchored: bool) -> Wildcard:
        """Split at each `*`; no other character is special."""
        first, *others = pattern.split("*")
        if not others:
            return cls((first,), anchored)
        # "**" means "*": an empty part in the middle matches anywhere
        return cls((first, *filter(None, others[:-1]), others[-1]), anchored)

    def matches(self, text: str) -> bool:
        # The leftmost match of each part leaves most room for the next, so no backtracking is
        # needed: every character of the text is compared with one part only.
        first, rest = self.parts[0], self.parts[1:]
        if not text.startswith(first):
            return False
        if not rest:
            return not self.anchored or len(text) == len(first)
        position = len(first)
        for part in rest[:-1]:
            position = text.find(part, position)
            if position < 0:
                return False
            position += len(part)
        return self._ends(text, rest[-1], position)

    def _ends(self, text: str, last: str, position: int) -> bool:
        if self.anchored:
            return len(text) - len(last) >= position and text.endswith(last)
        return text.find(last, position) >= 0


_MAX_PATTERN = 2000
# for one compiled regular expression and the states it caches: a crawl may have 2000 of them
_MAX_EXPRESSION_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Pattern:
    """An include or exclude pattern as a user writes it.

    A glob, in which only `*` is special (any characters, also `/`), has to match the whole of path
    and query, or of the URL if it begins with a scheme: `/blog/*`, `*.pdf`, `https://a.example/*`.
    The name of a folder, such as `/blog/`, also matches all URLs below it. After `re:` comes a
    regular expression in the syntax of RE2, searched for anywhere in the URL. All match in linear
    time, because patterns also come from callers of the API.
    """

    text: str
    matches: Callable[[str], object]

    @classmethod
    def compile(cls, text: str) -> Self:
        if not 0 < len(text) <= _MAX_PATTERN:
            raise InvalidInput(f"a pattern must have 1 to {_MAX_PATTERN} characters")
        if text.startswith("re:"):
            return cls(text, _regular_expression(text))
        glob = Wildcard.compile(text, anchored=not _is_folder(text))
        if text.startswith(("/", "*")):
            return cls(text, lambda url: glob.matches(path_and_query(url)))
        if text.startswith(("http://", "https://")):
            return cls(text, glob.matches)
        raise InvalidInput(
            f"the pattern {text!r} can match no URL",
            hint=f"write */{text}/* for a part of the path, or re:{text}",
        )


def _is_folder(pattern: str) -> bool:
    path = pattern if pattern.startswith("/") else path_and_query(pattern)
    return path != "/" and path.endswith("/") and "*" not in pattern


def path_and_query(url: str) -> str:
    start = url.find("/", url.find("//") + 2)
    return url[start:] if start >= 0 else "/"


def _regular_expression(text: str) -> Callable[[str], object]:
    options = re2.Options()
    options.max_mem = _MAX_EXPRESSION_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        search: Callable[[str], object] = re2.compile(text.removeprefix("re:"), options).search
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if isinstance(error, re2.error) else "invalid character"
        raise InvalidInput(
            f"{text!r} is not a regular expression that can be used: {reason}",
            hint="Patterns use the syntax of RE2, which has no look-around and no backreferences.",
        ) from None
    return search
