"""What changed between two generations: pages added, removed, changed and renamed."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.page import CarriedPage, SectionRow, carried_page
from forager.documents.publication import complete_generation, no_such_source
from forager.documents.store import generations, reads
from forager.errors import NotAllowed
from forager.hints import Hint, action

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


MAX_CHANGES = 10_000
SECTIONS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """One page that differs."""

    url: str
    title: str | None
    # of changed pages, on request
    sections: list[SectionChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RenamedPage:
    """A page that was removed, and came back with the same content under another URL."""

    old_url: str
    new_url: str


@dataclass(slots=True)
class Diff:
    """All differences. A renamed page is also among the removed and the added ones.

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
    """What `new` (default: the published one) has otherwise than `old` (default: its base)."""
    async with database.transaction() as connection:
        newer = await _new_side(connection, source_id, new)
        older = await _old_side(connection, newer, old)
        diff = Diff(source_id, older.number, newer.number)
        pairs = await _collect(connection, older.id, newer.id, diff, limit)
        await _collect_carried_over(connection, newer.id, diff, limit)
    if with_sections:
        await _add_sections(database, diff, pairs)
    return diff


async def _new_side(connection: Connection, source_id: str, number: int | None) -> Generation:
    source = await generations.select_source(connection, source_id)
    if source is None:
        raise no_such_source(source_id)
    wanted = source.published_number if number is None else number
    if wanted is None:
        raise NotAllowed(f"{source_id} has nothing published yet")
    return await complete_generation(connection, source_id, wanted)


async def _old_side(connection: Connection, new: Generation, number: int | None) -> Generation:
    wanted = new.base_number if number is None else number
    if wanted is None:
        raise NotAllowed(
            f"generation {new.number} of {new.source_id} has nothing before it to compare with",
            hint=Hint(
                "Name two generations. {} lists them.",
                action("sources generations", new.source_id),
            ),
        )
    return await complete_generation(connection, new.source_id, wanted)


async def _collect(
    connection: Connection, old_id: int, new_id: int, diff: Diff, limit: int
) -> list[tuple[int, int]]:
    """Sort the differences into the lists; the answer is the documents of each changed page."""
    pairs: dict[str, tuple[int, int]] = {}
    gone: dict[bytes, str] = {}
    come: dict[bytes, str] = {}
    seen = 0
    async for difference in reads.stream_differences(connection, old_id, new_id, limit + 1):
        seen += 1
        if seen > limit:
            diff.truncated = True
            continue
        old_url, new_url, old_title, new_title, old_doc, new_doc, old_hash, new_hash = difference
        if new_url is None:
            assert old_url is not None
            assert old_hash is not None
            diff.removed.append(ChangedPage(old_url, old_title))
            gone[old_hash] = old_url
        elif old_url is None:
            assert new_hash is not None
            diff.added.append(ChangedPage(new_url, new_title))
            come[new_hash] = new_url
        else:
            assert old_doc is not None
            assert new_doc is not None
            diff.changed.append(ChangedPage(new_url, new_title))
            pairs[new_url] = (old_doc, new_doc)
    for pages in (diff.added, diff.removed, diff.changed):
        pages.sort(key=lambda page: page.url)
    diff.renamed = sorted(
        (RenamedPage(url, come[content]) for content, url in gone.items() if content in come),
        key=lambda page: page.new_url,
    )
    return [pairs[page.url] for page in diff.changed]


async def _collect_carried_over(
    connection: Connection, generation_id: int, diff: Diff, limit: int
) -> None:
    found = await reads.select_carried_over(connection, generation_id, limit=limit + 1)
    diff.truncated |= len(found) > limit
    diff.carried_over = [carried_page(page) for page in found[:limit]]


async def _add_sections(database: Database, diff: Diff, pairs: list[tuple[int, int]]) -> None:
    """Outside any transaction: comparing takes time, and documents do not change."""
    for start in range(0, len(pairs), SECTIONS_AT_ONCE):
        some = pairs[start : start + SECTIONS_AT_ONCE]
        sections = await database.run(
            reads.select_sections_of_many, [document for pair in some for document in pair]
        )
        for page, (old, new) in zip(diff.changed[start:], some, strict=False):
            page.sections.extend(section_changes(sections.get(old, []), sections.get(new, [])))
