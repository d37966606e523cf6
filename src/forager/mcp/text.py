"""Text for models: without invisible characters, fenced as untrusted, cut to a token budget."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from forager.errors import InvalidInput

DEFAULT_TOKENS = 4_000
# of a search, which should answer in one call
SEARCH_TOKENS = 3_000
MIN_TOKENS = 500
# clients cut or refuse longer answers
MAX_TOKENS = 20_000
# an estimate that holds for English and is careful with other scripts
BYTES_PER_TOKEN = 4
LONGEST_LINE = 1_000

# control characters but tab and newline, marks of direction, and what no reader sees: zero-width
# characters and the tag characters, in which instructions for models can be hidden
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    return _INVISIBLE.sub("", text)


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def fenced_lines(lines: Iterable[str]) -> list[str]:
    """Lines between marks that a page cannot foresee, and so cannot close; none if there are none.

    Everything that is not Forager's own words goes through here: text, addresses and names of
    pages, and the messages and errors that repeat them.
    """
    text, mark = clean("\n".join(lines)), secrets.token_hex(4)
    return [f"<untrusted-content {mark}>", text, f"</untrusted-content {mark}>"] if text else []


def moment(at: datetime | None) -> str:
    return "never" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def age(at: datetime) -> str:
    seconds = max(0.0, (datetime.now(UTC) - at).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600)):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "less than an hour ago"


def size(text: str) -> int:
    """How much of a budget a line of text takes, in bytes."""
    return len(text.encode("utf-8", "replace")) + 1


def fitting(items: Iterable[str], max_tokens: int) -> list[str]:
    """The first items that fit a budget, and at least one."""
    room = max_tokens * BYTES_PER_TOKEN
    kept: list[str] = []
    for item in items:
        room -= size(item)
        if room < 0 and kept:
            break
        kept.append(item)
    return kept


@dataclass(frozen=True, slots=True)
class LineWindow:
    """Lines `first` to `last` of `total`."""

    lines: Sequence[str]
    first: int
    total: int

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    def note(self, call: str) -> str:
        """Say what is shown, and how `call` (a tool with its arguments) is continued."""
        if self.first == 1 and self.last == self.total:
            return f"Showing all {self.total} lines."
        following = f"; next: {call}, from_line={self.last + 1})" if self.last < self.total else ""
        return f"Showing lines {self.first}-{self.last} of {self.total}{following}"


def numbered_lines(text: str) -> list[str]:
    """The lines of a text. A very long one counts as several, so that each part can be read."""
    lines: list[str] = []
    for line in clean(text).rstrip("\n").split("\n"):
        starts = range(0, max(1, len(line)), LONGEST_LINE)
        lines += [line[start : start + LONGEST_LINE] for start in starts]
    return lines


def window(lines: Sequence[str], from_line: int, max_tokens: int) -> LineWindow:
    if from_line > len(lines):
        raise InvalidInput(f"there are {len(lines)} lines", hint=f"from_line was {from_line}.")
    shown = fitting(lines[from_line - 1 :], max_tokens)
    return LineWindow(shown, from_line, len(lines))


def more_of(cursor: str | None) -> list[str]:
    """How to get the next part of a list, if there is one."""
    return [f'More: the same call with cursor="{cursor}"'] if cursor else []
