"""Differences of two versions of a page: sections added, removed and changed."""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

from forager.documents.page import SectionRow
from forager.errors import WorkFailed
from forager.processes.calls import call_limited

# comparing takes time in the product of the numbers of lines, and more for hostile text
MAX_COMPARISONS = 4_000_000
# comparisons of a page that a thread makes: less than a second, however hostile
IN_THREAD = 40_000
# pages of one diff whose comparison may exceed the limits; others that may are not compared
MAX_TOO_LONG = 3

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that was added, removed or changed."""

    kind: Literal["added", "removed", "changed"]
    heading: str
    anchor: str | None
    diff: str


async def compare_sections(
    old: Sequence[SectionRow], new: Sequence[SectionRow]
) -> list[SectionChange]:
    """The changes of one page. An expensive comparison runs in a process with limits."""
    return await Comparison().compare(old, new)


def aligned_sections(
    old: Sequence[SectionRow], new: Sequence[SectionRow]
) -> list[tuple[SectionRow | None, SectionRow | None]]:
    """The sections of two versions of a page beside each other; removed ones come last."""
    before, after = _keyed(old), _keyed(new)
    pairs = [(before.get(key), section) for key, section in after.items()]
    return [*pairs, *((each, None) for key, each in before.items() if key not in after)]


class Comparison:
    """Compares pages outside the event loop."""

    def __init__(self) -> None:
        self._too_long = 0

    async def compare(
        self, old: Sequence[SectionRow], new: Sequence[SectionRow]
    ) -> list[SectionChange]:
        if _comparisons(old, new) <= IN_THREAD:
            return await asyncio.to_thread(section_changes, old, new)
        if self._too_long < MAX_TOO_LONG:
            try:
                found = await call_limited(compare_rows, _as_rows(old), _as_rows(new))
                return [SectionChange(*fields) for fields in found]
            except (WorkFailed, OSError):
                self._too_long += 1
        return await asyncio.to_thread(section_changes, old, new, max_comparisons=0)


def _comparisons(old: Sequence[SectionRow], new: Sequence[SectionRow]) -> int:
    before, after = _keyed(old), _keyed(new)
    return sum(
        _line_count(before[key]) * _line_count(section)
        for key, section in after.items()
        if key in before and not _same(before[key], section)
    )


def _line_count(section: SectionRow) -> int:
    return section.content.count("\n") + 2


def _as_rows(sections: Sequence[SectionRow]) -> list[dict[str, Any]]:
    return [asdict(section) for section in sections]


def compare_rows(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The changes of one page, in a process that got its sections as JSON."""
    before = [SectionRow(**row) for row in old]
    return [astuple(each) for each in section_changes(before, [SectionRow(**row) for row in new])]


def section_changes(
    old: Sequence[SectionRow], new: Sequence[SectionRow], *, max_comparisons: int = MAX_COMPARISONS
) -> list[SectionChange]:
    """The changes in the order of the new page, then the removed sections."""
    before, after = _keyed(old), _keyed(new)
    changes = [
        SectionChange(
            "changed" if key in before else "added",
            section.heading,
            section.anchor,
            _unified(before.get(key), section, max_comparisons),
        )
        for key, section in after.items()
        if key not in before or not _same(before[key], section)
    ]
    removed = [
        SectionChange(
            "removed", section.heading, section.anchor, _unified(section, None, max_comparisons)
        )
        for key, section in before.items()
        if key not in after
    ]
    return changes + removed


def are_same(old: Sequence[SectionRow], new: Sequence[SectionRow]) -> bool:
    """Whether two versions of a page have the same sections, in any order."""
    before, after = _keyed(old), _keyed(new)
    return before.keys() == after.keys() and all(
        _same(before[key], section) for key, section in after.items()
    )


def _keyed(sections: Sequence[SectionRow]) -> dict[Key, SectionRow]:
    """Sections by anchor or else heading; the second one of a name is another section."""
    seen: Counter[str] = Counter()
    keyed = {}
    for section in sections:
        name = f"#{section.anchor}" if section.anchor else section.heading
        keyed[(name, seen[name])] = section
        seen[name] += 1
    return keyed


def _same(old: SectionRow, new: SectionRow) -> bool:
    return (old.heading, old.level, old.content) == (new.heading, new.level, new.content)


def _unified(old: SectionRow | None, new: SectionRow | None, max_comparisons: int) -> str:
    before, after = _lines(old), _lines(new)
    if len(before) * len(after) > max_comparisons:
        return f"too long to compare: {len(before)} lines before, {len(after)} now"
    return "\n".join(difflib.unified_diff(before, after, "old", "new", lineterm="", n=2))


def _lines(section: SectionRow | None) -> list[str]:
    if section is None:
        return []
    heading = [f"{'#' * max(1, section.level)} {section.heading}"] if section.heading else []
    return [*heading, *section.content.splitlines()]
