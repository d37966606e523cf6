"""Differences of two generations: pages added, removed, changed and renamed.

The generations are of one source, or of two: `python@3.12` and `python@3.13`. Pages of two sources
are matched by their URLs without the beginning that differs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.page import CarriedPage, SectionRow
from forager.documents.publication import complete_generation, existing_source, readable_generation
from forager.documents.reader import named_section, no_such_section, spellings_of
from forager.documents.section_diff import Comparison, SectionChange, are_same
from forager.documents.store import differences, reads
from forager.documents.store.differences import PageDifference
from forager.errors import InvalidInput, NotAllowed, NotFound

MAX_CHANGES = 10_000
SECTIONS_AT_ONCE = 50
# pages whose URLs show how two sources correspond
MAX_MATCHED = 20_000
# pages of the same name in one source with which a page of another one is matched
_MAX_NAMESAKES = 5


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """One page that differs."""

    url: str
    title: str | None
    # only for changed pages, on request
    sections: list[SectionChange] = field(default_factory=list)
    # its URL in the other source
    old_url: str | None = None

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
    # the source of the older generation, if it is another one
    against: str | None = None
    added: list[ChangedPage] = field(default_factory=list)
    removed: list[ChangedPage] = field(default_factory=list)
    changed: list[ChangedPage] = field(default_factory=list)
    renamed: list[RenamedPage] = field(default_factory=list)
    carried_over: list[CarriedPage] = field(default_factory=list)
    # there are more differences than these
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Roots:
    """The beginnings of the URLs of two sources, which differ: `…/3.12/` and `…/3.13/`."""

    old: str
    new: str


async def diff_generations(
    database: Database,
    source_id: str,
    old: int | None = None,
    new: int | None = None,
    *,
    against: str | None = None,
    page: str | None = None,
    section: str | None = None,
    with_sections: bool = False,
    limit: int = MAX_CHANGES,
) -> Diff:
    """The differences of generation `new` (default: published) from `old` (default: its base).

    `against` is another source, whose published generation is the default of `old`. A page, by its
    URL or path, is compared alone and with its sections; a section of it, with all below it.
    """
    url, _, anchor = (page or "").partition("#")
    section = section or anchor or None
    if section and not url:
        raise InvalidInput("a section belongs to a page", hint="Give `page` as well.")
    names = _names(url)
    roots = None
    async with database.transaction() as connection:
        newer = await readable_generation(
            connection, await existing_source(connection, source_id), new
        )
        if against is None:
            older = await _base_or(connection, newer, old)
            rows = await differences.select_differences(
                connection, older.id, newer.id, names, limit=limit + 1
            )
        else:
            other = await existing_source(connection, against)
            older = await readable_generation(connection, other, old)
            roots = await _matching_roots(connection, older, newer)
            rows = await differences.select_differences_of_sources(
                connection, older.id, newer.id, (roots.old, roots.new), names, limit=MAX_CHANGES + 1
            )
        if names and not rows:
            await _must_list(connection, (older, newer), url, names)
        carried = await reads.select_carried_over(connection, newer.id, names, limit=limit + 1)
    is_cut = len(rows) > (limit if roots is None else MAX_CHANGES)
    if roots is not None:
        rows = await _without_equal(database, rows[:MAX_CHANGES], roots)
    diff = Diff(source_id, older.number, newer.number, against)
    diff.truncated = is_cut or max(len(rows), len(carried)) > limit
    diff.carried_over = carried[:limit]
    pairs = _collect(diff, rows[:limit])
    if with_sections or names:
        await _add_sections(database, diff, pairs, roots, section)
    return diff


async def _base_or(connection: Connection, new: Generation, number: int | None) -> Generation:
    number = new.base_number if number is None else number
    if number is None:
        raise NotAllowed(
            f"generation {new.number} of {new.source_id} has nothing before it to compare with",
            hint="A refresh that finds changes publishes the next one.",
        )
    return await complete_generation(connection, new.source_id, number)


# --- one page ------------------------------------------------------------------------------------


def _names(page: str) -> list[str]:
    """The path or the URLs by which a page may be listed; none without a page."""
    if not page:
        return []
    return [page] if page.startswith("/") else [str(url) for url in spellings_of(page)]


async def _must_list(
    connection: Connection, generations: Sequence[Generation], page: str, names: Sequence[str]
) -> None:
    if not await differences.generations_list_any(
        connection, [each.id for each in generations], names
    ):
        places = " and ".join(f"generation {e.number} of {e.source_id}" for e in generations)
        raise NotFound(
            f"there is no page {page} in {places}",
            hint="Name it by its URL, or by its path: /docs/intro",
        )


# --- two sources -----------------------------------------------------------------------------


async def _matching_roots(connection: Connection, old: Generation, new: Generation) -> Roots:
    return matching_roots(
        await differences.select_urls(connection, old.id, limit=MAX_MATCHED),
        await differences.select_urls(connection, new.id, limit=MAX_MATCHED),
    )


def matching_roots(old: Iterable[str], new: Iterable[str]) -> Roots:
    """The beginnings without which most URLs are the same; pages match by folder and name."""
    before, after = [url.split("/") for url in old], [url.split("/") for url in new]
    for size in (2, 1):
        namesakes: dict[tuple[str, ...], list[list[str]]] = {}
        for parts in before:
            namesakes.setdefault(tuple(parts[-size:]), []).append(parts)
        votes = Counter(
            _differing(one, other)
            for other in after
            for one in namesakes.get(tuple(other[-size:]), [])[:_MAX_NAMESAKES]
        )
        if votes:
            return max(votes, key=lambda roots: (votes[roots], len(roots.old)))
    return Roots("", "")


def _differing(old: Sequence[str], new: Sequence[str]) -> Roots:
    """Two URLs without the steps at their ends that are the same."""
    same = 0
    while same < min(len(old), len(new)) and old[-1 - same] == new[-1 - same]:
        same += 1
    if same == len(old) == len(new):
        return Roots("", "")
    return Roots("/".join([*old[: len(old) - same], ""]), "/".join([*new[: len(new) - same], ""]))


async def _without_equal(
    database: Database, rows: Sequence[PageDifference], roots: Roots
) -> list[PageDifference]:
    """Without pages whose sections are the same: their hashes include titles and full links."""
    equal: set[tuple[int, int]] = set()
    pairs = [(row.old_id, row.new_id) for row in rows if row.old_id and row.new_id]
    for start in range(0, len(pairs), SECTIONS_AT_ONCE):
        batch = pairs[start : start + SECTIONS_AT_ONCE]
        found = await database.run(reads.select_sections, [*chain.from_iterable(batch)])
        equal |= await asyncio.to_thread(_equal_pairs, batch, found, roots)
    return [row for row in rows if (row.old_id, row.new_id) not in equal]


def _equal_pairs(
    pairs: Sequence[tuple[int, int]], sections: dict[int, list[SectionRow]], roots: Roots
) -> set[tuple[int, int]]:
    return {
        (old, new)
        for old, new in pairs
        if are_same(
            _below(sections.get(old, []), roots.old), _below(sections.get(new, []), roots.new)
        )
    }


def _below(sections: Sequence[SectionRow], root: str) -> list[SectionRow]:
    """Sections with links from the root of their source, and without the title of the page.

    The title, which is the heading of text before the first one, may name the version.
    """
    return [
        replace(
            each,
            heading=each.heading if each.level else "",
            content=each.content.replace(root, "/") if root else each.content,
        )
        for each in sections
    ]


# --- pages and sections --------------------------------------------------------------------------


def _collect(diff: Diff, rows: Sequence[PageDifference]) -> list[tuple[int, int]]:
    """Sort the differences into the lists; return the two documents of each changed page."""
    pairs: dict[str, tuple[int, int]] = {}
    removed: dict[bytes, str] = {}
    added: dict[bytes, str] = {}
    for row in rows:
        page = ChangedPage(row.url, row.title)
        if row.new_id is None:
            diff.removed.append(page)
            removed[row.old_hash] = row.url
        elif row.old_id is None:
            diff.added.append(page)
            added[row.new_hash] = row.url
        else:
            old_url = None if row.old_url == row.url else row.old_url
            diff.changed.append(replace(page, old_url=old_url))
            pairs[row.url] = (row.old_id, row.new_id)
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


async def _add_sections(
    database: Database,
    diff: Diff,
    pairs: list[tuple[int, int]],
    roots: Roots | None,
    section: str | None,
) -> None:
    """Outside any transaction: comparing takes time, and documents do not change."""
    comparison = Comparison()
    for start in range(0, len(pairs), SECTIONS_AT_ONCE):
        batch = pairs[start : start + SECTIONS_AT_ONCE]
        found = await database.run(reads.select_sections, [*chain.from_iterable(batch)])
        for page, pair in zip(diff.changed[start:], batch, strict=False):
            old, new = (found.get(document, []) for document in pair)
            if section is not None:
                old, new = (named_section(each, page.title, section) for each in (old, new))
                if not old and not new:
                    raise no_such_section(page.url, section, found.get(pair[1], []))
            if roots is not None:
                old, new = _below(old, roots.old), _below(new, roots.new)
            page.sections.extend(await comparison.compare(old, new))
    if section is not None:
        diff.changed = [page for page in diff.changed if page.sections]
