"""How the sections of a changed page differ, as unified diffs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from forager.documents.reading import SectionRow

# comparing takes time in the product of the numbers of lines
MAX_COMPARISONS = 4_000_000

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that was added, removed or changed."""

    kind: Literal["added", "removed", "changed"]
    heading: str
    anchor: str | None
    diff: str


def section_changes(old: Sequence[SectionRow], new: Sequence[SectionRow]) -> list[SectionChange]:
    """The changes in the order of the new page, then what is gone."""
    before, after = _keyed(old), _keyed(new)
    changes = [
        _change("changed" if key in before else "added", before.get(key), section)
        for key, section in after.items()
        if key not in before or not _same(before[key], section)
    ]
    gone = [
        _change("removed", section, None) for key, section in before.items() if key not in after
    ]
    return [*changes, *gone]


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


def _change(
    kind: Literal["added", "removed", "changed"], old: SectionRow | None, new: SectionRow | None
) -> SectionChange:
    named = new or old
    assert named is not None
    return SectionChange(kind, named.heading, named.anchor, _unified(old, new))


def _unified(old: SectionRow | None, new: SectionRow | None) -> str:
    before, after = _lines(old), _lines(new)
    if len(before) * len(after) > MAX_COMPARISONS:
        return f"too long to compare: {len(before)} lines before, {len(after)} now"
    return "\n".join(difflib.unified_diff(before, after, "old", "new", lineterm="", n=2))


def _lines(section: SectionRow | None) -> list[str]:
    if section is None:
        return []
    heading = [f"{'#' * max(1, section.level)} {section.heading}"] if section.heading else []
    return [*heading, *section.content.splitlines()]
