"""Checks of sources: whether they are published, and what extraction lost of their pages."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from forager.amounts import counted
from forager.archive.storage import Storage
from forager.checks import MAX_EXAMPLES, Check, Result, Topic, check, warn
from forager.db.cursor import batches
from forager.db.database import Database
from forager.documents.archived import archived_page, repeated_blocks
from forager.documents.page import ArchivedDocument
from forager.documents.publication import publish_hint
from forager.documents.sources import get_source, list_held_back
from forager.documents.store import reads
from forager.extract.audit import LARGE_SECTION_BYTES, MIN_KEPT_SHARE, PageAudit, audit_page
from forager.extract.generators import UNKNOWN
from forager.settings import Settings

MAX_CLUSTERS = 100
_BATCH = 200
_SAMPLE = 20  # pages that a crawl's summary is about
_SAMPLE_BYTES = 1_000_000  # of their responses
SAMPLE_SECONDS = 1.0  # people wait for it


@check(
    "publication", Topic.WORK, "Readers see old pages, or none, until a generation is published."
)
async def check_publication(database: Database, _settings: Settings) -> Result:
    """Whether the newest generation of each source is published."""
    held_back = await list_held_back(database, limit=MAX_EXAMPLES)
    if not held_back:
        return "no generation is held back"
    return warn(
        "generations held back",
        str(publish_hint(held_back[0].source_id)),
        found=[
            f"generation {each.number} of {each.source_id} is {each.label}" for each in held_back
        ],
    )


@dataclass(frozen=True, slots=True)
class PageProblem:
    """Something that extraction may do to a page."""

    message: str
    impact: str
    size: Callable[[PageAudit], int]  # 0 for a page without it
    detail: Callable[[PageAudit], str]


PROBLEMS = {
    "empty_pages": PageProblem(
        "pages without text, although they show some",
        "Readers and searches find nothing of them.",
        lambda page: page.visible * page.is_empty,
        lambda page: f"{page.visible} characters visible",
    ),
    "cut_pages": PageProblem(
        f"pages that keep under {MIN_KEPT_SHARE:.0%} of their text",
        "Readers and searches miss most of them.",
        lambda page: (page.visible - page.kept) * (page.is_gutted and not page.is_empty),
        lambda page: f"{page.kept_share:.0%} kept",
    ),
    "lost_headings": PageProblem(
        "pages that lose headings",
        "Sections cannot be linked to, and searches rank them lower.",
        lambda page: len(page.lost_headings),
        lambda page: "; ".join(page.lost_headings[:3]),
    ),
    "lost_text": PageProblem(
        "pages with words, titles, code, rows or items that no rule removed and no section has",
        "Readers and searches miss them, and explain does not list them.",
        lambda page: page.losses.lost_count,
        lambda page: page.losses.summary,
    ),
    "large_sections": PageProblem(
        f"pages with sections over {LARGE_SECTION_BYTES >> 10} KB",
        "A search hit in them says little about the place.",
        lambda page: len(page.large_sections),
        lambda page: "; ".join(page.large_sections[:3]),
    ),
    "guessed_content": PageProblem(
        "pages whose main content was found by a fallback",
        "They may contain menus, or lack parts.",
        lambda page: page.fallbacks,
        lambda page: page.chosen_by,
    ),
}


@dataclass(slots=True)
class CheckedPages:
    """The published pages of a source, extracted again."""

    source_id: str
    # clusters of nearly the same text, their pages, and the largest of them
    near_duplicates: tuple[int, int, list[tuple[int, str, str]]]
    read: int = 0
    unreadable: int = 0  # pages that are not in the archive (any more)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROBLEMS, 0))
    # for each problem, the pages that have most of it
    worst: dict[str, list[tuple[int, str]]] = field(
        default_factory=lambda: {name: [] for name in PROBLEMS}
    )
    words: Counter[str] = field(default_factory=Counter)  # that pages show, by generator
    # by generator: words, titles, code blocks, rows and items that no rule removed
    lost: dict[str, Counter[str]] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)  # words, by rule

    def add(self, page: PageAudit) -> None:
        self.read += 1
        losses = page.losses
        generator = losses.generator or UNKNOWN  # pages of markdown have none
        self.words[generator] += losses.words
        lost = self.lost.setdefault(generator, Counter())
        lost.update({"word": len(losses.lost_words)})
        lost.update({kind: len(texts) for kind, texts in losses.lost.items()})
        self.removed.update(losses.removed_words)
        for name, problem in PROBLEMS.items():
            if size := problem.size(page):
                self.counts[name] += 1
                detail = " ".join(problem.detail(page).split())
                found = [*self.worst[name], (size, f"{page.url} ({detail})")]
                self.worst[name] = sorted(found, key=lambda each: -each[0])[:MAX_EXAMPLES]

    @property
    def summary(self) -> str:
        """Words of the pages, and what of them is lost, by generator."""
        return "; ".join(
            f"{'' if name == UNKNOWN else f'{name}: '}{words:,} words,"
            f" {_lost_text(self.lost[name])} lost"
            for name, words in self.words.most_common(MAX_EXAMPLES)
        )


def _lost_text(lost: Counter[str]) -> str:
    return ", ".join(counted(number, kind) for kind, number in lost.items() if number) or "nothing"


async def read_sample(database: Database, storage: Storage, source_id: str) -> CheckedPages:
    """Extract some of the first published pages of a source again, for a quick report."""
    checked = CheckedPages(source_id, (0, 0, []))
    repeated = await repeated_blocks(database, source_id)
    rows = await database.run(reads.select_archived_documents, source_id, after=0, limit=_BATCH)
    room = _SAMPLE_BYTES
    end = time.monotonic() + SAMPLE_SECONDS
    for row in rows[:: max(1, len(rows) // _SAMPLE)]:
        if time.monotonic() >= end:
            break
        page = await archived_page(storage, row)
        if page is not None and len(page[0]) <= room:
            room -= len(page[0])
            checked.add(await asyncio.to_thread(audit_page, *page, repeated))
    return checked


async def read_source(database: Database, storage: Storage, source_id: str) -> CheckedPages:
    """Extract every published page of a source again."""
    source = await get_source(database, source_id)
    repeated = await repeated_blocks(database, source.id)
    near = await database.run(reads.select_near_clusters, source.id, limit=MAX_CLUSTERS)
    checked = CheckedPages(source.id, near)

    async def select(after: int) -> list[ArchivedDocument]:
        return await database.run(
            reads.select_archived_documents, source.id, after=after, limit=_BATCH
        )

    async for rows in batches(select, 0, lambda row: row.document_id, _BATCH):
        for row in rows:
            if (page := await archived_page(storage, row)) is None:
                checked.unreadable += 1
            else:
                checked.add(await asyncio.to_thread(audit_page, *page, repeated))
    return checked


@check("pages", Topic.SOURCES, "Pages that are not in the archive cannot be checked.")
def check_pages(pages: CheckedPages) -> Result:
    message = f"{counted(pages.read, 'page')} of {pages.source_id} checked"
    if pages.unreadable:
        again = "Crawl the source again to archive them."
        return warn(f"{message}; not in the archive", again, count=pages.unreadable)
    return message


@check("removed_text", Topic.SOURCES, "Rules that remove much may remove content.")
def check_removed_text(pages: CheckedPages) -> Result:
    """Count the words of all pages, by generator, and those that each rule removed."""
    if not pages.words.total():
        return "nothing to compare"
    by_rule = "; ".join(f"{rule}: {words:,}" for rule, words in pages.removed.most_common())
    return f"{pages.summary}. Removed by rule: {by_rule or 'none'}"


def _check_problem(name: str, pages: CheckedPages) -> Result:
    if not pages.counts[name]:
        return "none"
    return warn(
        PROBLEMS[name].message,
        "Compare one with its archived response: forager explain URL",
        found=[text for _, text in pages.worst[name]],
        count=pages.counts[name],
    )


PROBLEM_CHECKS = [
    Check(name, Topic.SOURCES, problem.impact, partial(_check_problem, name))
    for name, problem in PROBLEMS.items()
]


@check("near_duplicates", Topic.SOURCES, "Searches find the same text several times.")
def check_near_duplicates(pages: CheckedPages) -> Result:
    clusters, count, largest = pages.near_duplicates
    if not count:
        return "none"
    return warn(
        f"pages with nearly the same text, in {counted(clusters, 'cluster')}",
        "Exclude copies from the crawl, for example versions and print views.",
        found=[f"{first} … {last} ({size} pages)" for size, first, last in largest],
        count=count,
    )
