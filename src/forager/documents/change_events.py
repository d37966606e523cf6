"""Events about changed pages of a source, for webhooks that subscribed to them.

Publishing writes a message with the numbers of both generations. A service compares them later,
because a comparison takes time, and records one event for each pattern that webhooks have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from forager.db.database import Database
from forager.documents.diff import ChangedPage, Diff, diff_generations
from forager.documents.generation import Source
from forager.documents.publication_events import difference_path
from forager.documents.section_diff import SectionChange
from forager.documents.store.generations import select_generation_by_id, select_source
from forager.errors import NotAllowed, NotFound, error_text
from forager.events import service as events
from forager.events.event import EventKind, NewEvent
from forager.extract.wildcard import Pattern
from forager.outbox import service as outbox
from forager.outbox.claim import claimed
from forager.outbox.message import Lane, Message, RetryPolicy
from forager.services.service import Service, isolated

POLL_INTERVAL = 10.0
PER_CLAIM = 5
# longer than the comparisons of one claim can take
LEASE = 1800.0
RETRY = RetryPolicy(first=30.0, longest=3600.0, max_attempts=10)
# what one event can hold; `more` counts the other pages
MAX_PAGES = 50
MAX_SECTIONS = 20
MAX_DIFF = 2000
# differences that are read; with more, an event without pages that match says so
MAX_COMPARED = 5000


class ChangeReporter:
    """Any number of processes may run one; each message is reported once."""

    def __init__(self, database: Database, process_id: UUID | None = None) -> None:
        self._database = database
        self._process_id = process_id

    def service(self) -> Service:
        return Service(
            name="change events", every=POLL_INTERVAL, step=self.run_once, chunk=PER_CLAIM
        )

    async def run_once(self) -> int:
        """Report due messages; return their number."""
        lane = Lane(events.CHANGES, limit=PER_CLAIM)
        async with self._database.transaction() as connection:
            if not await outbox.has_due(connection, events.CHANGES):
                return 0
            messages = await outbox.claim(
                connection, [lane], lease=LEASE, claimed_by=self._process_id
            )
        async with claimed(self._database, messages) as claim:
            for message in messages:
                with isolated(f"changes of generation {message.ref_id}"):
                    try:
                        found = await self._events_of(message)
                    except Exception as error:
                        await claim.settle((), [RETRY.failure(message, error_text(error))])
                        raise
                    async with claim.settling(message) as connection:
                        await events.record_events(connection, found)
        return len(messages)

    async def _events_of(self, message: Message) -> list[NewEvent]:
        async with self._database.connection() as connection:
            generation = await select_generation_by_id(connection, message.ref_id)
            if generation is None:
                return []  # deleted since
            source = await select_source(connection, generation.source_id)
            if source is None:
                return []
            patterns = await events.select_subscribed_patterns(connection, source.id)
        if not patterns:
            return []
        before = message.payload[0] if message.payload else None
        try:
            diff = await diff_generations(
                self._database,
                source.id,
                before,
                generation.number,
                with_sections=True,
                limit=MAX_COMPARED,
            )
        except (NotAllowed, NotFound):  # the older generation is deleted
            return []
        found = (_event(source, diff, pattern) for pattern in patterns)
        return [event for event in found if event is not None]


def _event(source: Source, diff: Diff, pattern: str | None) -> NewEvent | None:
    """The event for webhooks with this pattern; None if nothing that changed matches it."""
    pages = [*_pages(diff, None if pattern is None else Pattern.compile(pattern))]
    if not pages and not diff.truncated:
        return None
    payload = {
        "source": source.id,
        "generation": diff.new,
        "previous_generation": diff.old,
        "pattern": pattern,
        "pages": pages[:MAX_PAGES],
        "more": len(pages) - len(pages[:MAX_PAGES]),
        "truncated": diff.truncated,
        "difference": difference_path(source.id, diff.old, diff.new),
    }
    return NewEvent(
        EventKind.SOURCE_CHANGED, None, None, payload, source_id=source.id, user_id=source.user_id
    )


def _pages(diff: Diff, pattern: Pattern | None) -> Iterator[dict[str, Any]]:
    for kind, pages in (("added", diff.added), ("removed", diff.removed)):
        for page in pages:
            if pattern is None or pattern.matches(page.url):
                yield {"change": kind, "url": page.url, "title": page.title, "sections": []}
    for renamed in diff.renamed:
        if pattern is None or pattern.matches(renamed.old_url) or pattern.matches(renamed.new_url):
            yield {"change": "renamed", "url": renamed.new_url, "old_url": renamed.old_url}
    for page in diff.changed:
        sections = [*_matching(page, pattern)]
        if sections or pattern is None or pattern.matches(page.url):
            yield {
                "change": "changed",
                "url": page.url,
                "title": page.title,
                "sections": [*map(_shown, sections[:MAX_SECTIONS])],
                "more_sections": len(sections) - len(sections[:MAX_SECTIONS]),
            }


def _matching(page: ChangedPage, pattern: Pattern | None) -> Iterator[SectionChange]:
    """Changed sections whose page, address or heading matches; headings by expressions only."""
    is_whole = pattern is None or pattern.matches(page.url)
    for section in page.sections:
        if (
            is_whole
            or pattern is None
            or (section.anchor and pattern.matches(f"{page.url}#{section.anchor}"))
            or (pattern.text.startswith("re:") and pattern.matches(section.heading))
        ):
            yield section


def _shown(section: SectionChange) -> dict[str, Any]:
    diff = section.diff
    return {
        "change": section.kind,
        "heading": section.heading,
        "anchor": section.anchor,
        "diff": diff if len(diff) <= MAX_DIFF else f"{diff[:MAX_DIFF]}…",
    }
