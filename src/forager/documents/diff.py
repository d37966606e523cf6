"""Differences of two generations: pages added, removed, changed and renamed."""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from itertools import chain
from typing import Any, Literal

from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.page import CarriedPage, SectionRow
from forager.documents.publication import complete_generation, existing_source, readable_generation
from forager.documents.store import reads
from forager.errors import NotAllowed, WorkFailed
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
    return await _Comparison().compare(old, new)


def aligned_sections(
    old: Sequence[SectionRow], new: Sequence[SectionRow]
) -> list[tuple[SectionRow | None, SectionRow | None]]:
    """The sections of two versions of a page beside each other; removed ones come last."""
    before, after = _keyed(old), _keyed(new)
    pairs = [(before.get(key), section) for key, section in after.items()]
    return [*pairs, *((each, None) for key, each in before.items() if key not in after)]


class _Comparison:
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


MAX_CHANGES = 10_000
SECTIONS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """One page that differs."""

    url: str
    title: str | None
    # only for changed pages, on request
    sections: list[SectionChange] = field(default_factory=list)

    def count_lines(self, sign: Literal["+", "-"]) -> int:
        """Added or removed lines of its sections; the first two lines of a diff are names."""
        lines = (line for change in self.sections for line in change.diff.splitlines()[2:])
        return sum(line.startswith(sign) for line in lines)


@dataclass(frozen=True, slots=True)
class RenamedPage:
    """A page that was removed, and came back with the same content under another URL."""

    old_url: str
    new_url: str


@dataclass(slots=True)
class Diff:
    """All differences. A renamed page is not among the removed and the added ones.

    `carried_over` lists pages of the new generation whose changes, if any, are not known.
    """

    source_id: str
    old: int
    new: int
    added: list[ChangedPage] = field(default_factory=list)
    removed: list[ChangedPage] = field(default_factory=list)
    changed: list[ChangedPage] = field(default_factory=list)
    renamed: list[RenamedPage] = field(default_factory=list)
    carried_over: list[CarriedPage] = field(default_factory=list)
    # there are more differences than these
    truncated: bool = False


async def diff_generations(
    database: Database,
    source_id: str,
    old: int | None = None,
    new: int | None = None,
    *,
    with_sections: bool = False,
    limit: int = MAX_CHANGES,
) -> Diff:
    """The differences of generation `new` (default: published) from `old` (default: its base)."""
    async with database.transaction() as connection:
        source = await existing_source(connection, source_id)
        newer = await readable_generation(connection, source, new)
        older = await _base_or(connection, newer, old)
        diff = Diff(source_id, older.number, newer.number)
        rows = await reads.select_differences(connection, older.id, newer.id, limit + 1)
        carried = await reads.select_carried_over(connection, newer.id, limit=limit + 1)
    diff.truncated = max(len(rows), len(carried)) > limit
    diff.carried_over = carried[:limit]
    pairs = _collect(diff, rows[:limit])
    if with_sections:
        await _add_sections(database, diff, pairs)
    return diff


async def _base_or(connection: Connection, new: Generation, number: int | None) -> Generation:
    number = new.base_number if number is None else number
    if number is None:
        raise NotAllowed(
            f"generation {new.number} of {new.source_id} has nothing before it to compare with",
            hint="A refresh that finds changes publishes the next one.",
        )
    return await complete_generation(connection, new.source_id, number)


def _collect(diff: Diff, rows: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Sort the differences into the lists; return the two documents of each changed page."""
    pairs: dict[str, tuple[int, int]] = {}
    removed: dict[bytes, str] = {}
    added: dict[bytes, str] = {}
    for url, title, old_id, new_id, old_hash, new_hash in rows:
        page = ChangedPage(url, title)
        if new_id is None:
            diff.removed.append(page)
            removed[old_hash] = url
        elif old_id is None:
            diff.added.append(page)
            added[new_hash] = url
        else:
            diff.changed.append(page)
            pairs[url] = (old_id, new_id)
    diff.renamed = sorted(
        (RenamedPage(url, added[content]) for content, url in removed.items() if content in added),
        key=lambda page: page.new_url,
    )
    old_urls = {page.old_url for page in diff.renamed}
    new_urls = {page.new_url for page in diff.renamed}
    diff.removed = [page for page in diff.removed if page.url not in old_urls]
    diff.added = [page for page in diff.added if page.url not in new_urls]
    for pages in (diff.added, diff.removed, diff.changed):
        pages.sort(key=lambda page: page.url)
    return [pairs[page.url] for page in diff.changed]


async def _add_sections(database: Database, diff: Diff, pairs: list[tuple[int, int]]) -> None:
    """Outside any transaction: comparing takes time, and documents do not change."""
    comparison = _Comparison()
    for start in range(0, len(pairs), SECTIONS_AT_ONCE):
        batch = pairs[start : start + SECTIONS_AT_ONCE]
        sections = await database.run(reads.select_sections, [*chain.from_iterable(batch)])
        for page, (old, new) in zip(diff.changed[start:], batch, strict=False):
            page.sections.extend(
                await comparison.compare(sections.get(old, []), sections.get(new, []))
            )
