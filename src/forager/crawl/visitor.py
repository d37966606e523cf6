"""The visitor: fetches one entry of the frontier and decides its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from mmap import mmap
from typing import TypeGuard

from forager.archive.record import ArchiveError
from forager.crawl.extraction.pool import Extracted, ExtractionPool
from forager.crawl.frontier.entry import Entry
from forager.crawl.frontier.loops import CONTENT
from forager.crawl.judge import (
    LEAST_CONTENT,
    Judge,
    as_duplicate,
    excluded,
    failed,
    with_canonical,
)
from forager.crawl.pages import CarryOver, Pages
from forager.crawl.rendering import LeftToOthers, RenderedFacts, Rendering
from forager.crawl.settlement import Outcome, Resting, Settlement, Visit
from forager.crawl.store import visited as store
from forager.documents.page import PreviousPage
from forager.errors import NotFound, WorkFailed
from forager.extract.keys import url_key
from forager.extract.urls import Refusal, normalise
from forager.fetch.budgets.slots import DomainInactive, HostResting
from forager.fetch.response import Request, Response
from forager.fetch.robots.gate import RobotsGate
from forager.fetch.sender import Sender
from forager.jobs.context import JobContext
from forager.tracing import span

NOT_MODIFIED = 304


# Ten million contents make it wrong for about one in forty; memory is taken only as it fills.
_BITS = 27
_MASK = 2**_BITS - 1
_PROBES = 4


class ContentFilter:
    """A Bloom filter over content hashes, which are random enough to be their own hashes."""

    def __init__(self) -> None:
        # a bytearray of this size would be written to, and so be taken, at once
        self._bits = mmap(-1, 2**_BITS // 8)

    def add(self, content_hash: bytes) -> None:
        bits = self._bits
        for place in _places(content_hash):
            bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, content_hash: bytes) -> bool:
        bits = self._bits
        return all(bits[place >> 3] >> (place & 7) & 1 for place in _places(content_hash))


def _places(content_hash: bytes) -> Iterator[int]:
    number = int.from_bytes(content_hash[:16], "big")
    for _ in range(_PROBES):
        yield number & _MASK
        number >>= _BITS


@dataclass(frozen=True, slots=True)
class Visitor:
    context: JobContext
    judge: Judge
    sender: Sender
    robots: RobotsGate
    pool: ExtractionPool
    pages: Pages
    rendering: Rendering
    carry_over: CarryOver
    _contents: ContentFilter = field(default_factory=ContentFilter, init=False)
    # contents of pages that are not committed yet, and whose they are
    _fresh: dict[bytes, str] = field(default_factory=dict, init=False)

    def remember_content(self, content_hash: bytes) -> None:
        self._contents.add(content_hash)

    def committed(self, settled: Settlement) -> None:
        """A page can be found in the database from now on."""
        content = settled.content_hash
        # a copy may be committed before the page that it repeats
        if content is not None and self._fresh.get(content) == settled.entry.url:
            del self._fresh[content]

    async def visit(self, entry: Entry) -> Visit:
        """Check robots.txt, fetch, extract and decide. Failures are returned as settlements."""
        with span("page", attributes={"url.full": entry.url}) as page:
            visit = await self._visit(entry)
            if isinstance(visit, Settlement):
                visit = await self._carried_over(visit)
                page.set_attributes({"outcome": visit.outcome, "reason": visit.reason or ""})
            return visit

    async def _visit(self, entry: Entry) -> Visit:
        try:
            verdict = await self.robots.verdict(entry.url)
            if verdict.trouble is not None:
                return self.judge.failure(entry, verdict.trouble)
            if verdict.deferred_for is not None:
                return Resting(entry, verdict.deferred_for, verdict.reason)
            if not verdict.allowed:
                return excluded(entry, "robots", verdict.reason)
            previous = await self.pages.previous(entry.key)
            response = await self._fetch(entry, previous)
            if response.status == NOT_MODIFIED and _has_validators(previous):
                static = await self._static_before(entry, previous)
                if static is None:
                    return await self._unchanged(entry, response, previous)
                response = static
            settled = self.judge.status(entry, response)
            return settled or await self._read(entry, response, previous)
        except HostResting as rest:
            return Resting(entry, rest.seconds, rest.reason)
        except LeftToOthers as left:
            return Resting(entry, 0.0, left.message)
        except DomainInactive as error:
            return excluded(entry, "domain_inactive", error.message)
        except WorkFailed as error:
            return self.judge.failure(entry, error)

    async def _carried_over(self, visit: Settlement) -> Settlement:
        settled = await self.carry_over.apply(visit)
        if settled.carried_over and settled.content_hash is not None:
            self._remember(settled.content_hash, settled.entry.url)
        return settled

    async def _fetch(self, entry: Entry, previous: PreviousPage | None) -> Response:
        delay = await self.robots.crawl_delay(entry.url)
        with span("fetch"):
            return await self.sender.send(_request(entry, previous), delay)

    async def _static_before(self, entry: Entry, previous: PreviousPage) -> Response | None:
        """The response to render for a page that returns 304; None if it is unchanged."""
        try:
            return await self.rendering.static_before(entry.url, previous)
        except (ArchiveError, NotFound):
            return await self._fetch(entry, None)

    async def _unchanged(
        self, entry: Entry, response: Response, previous: PreviousPage
    ) -> Settlement:
        """A 304: the page is as it was, and so are its links."""
        self._remember(previous.content_hash, entry.url)
        return Settlement(
            entry=entry,
            outcome=Outcome.UNCHANGED,
            reason="not_modified",
            http_status=response.status,
            duration_ms=int(response.timing.total * 1000),
            content_hash=previous.content_hash,
            etag=previous.etag,
            last_modified=previous.last_modified,
            links=await self.pages.links_before(previous, entry.depth),
            previous=previous,
        )

    async def _read(self, entry: Entry, response: Response, previous: PreviousPage | None) -> Visit:
        with span("extract"):
            facts = await self.pool.extract(response)
        reason = self.rendering.reason(entry.url, response, facts)
        if reason is None:
            return await self._settle(self.judge.page(entry, response, facts), facts, previous)
        if (words := self.rendering.check_browser(response.url, reason)) is not None:
            settled = replace(self.judge.page(entry, response, facts), rendering=words)
            return await self._settle(settled, facts, previous)
        rendered = await self.rendering.render(entry.url, response, facts, reason, self.pool)
        if rendered.facts is None:
            return replace(self._led_elsewhere(entry, response, rendered), rendered_for=reason)
        settled = self.judge.page(entry, rendered.response, rendered.facts)
        settled = replace(
            settled,
            frame=rendered.frame,
            rendering=rendered.words,
            rendered_for=reason,
            loaded_bytes=rendered.page.bytes,
            lesson=rendered.lesson,
        )
        return await self._settle(settled, rendered.facts, previous)

    def _led_elsewhere(
        self, entry: Entry, response: Response, rendered: RenderedFacts
    ) -> Settlement:
        """A redirect by script."""
        target = normalise(rendered.page.moved or "")
        if isinstance(target, Refusal):
            words = f"a script leads to {rendered.page.moved!r}, which is not a page"
            return failed(entry, "bad_redirect", words, response.status)
        settled = self.judge.moved(entry, target, response.status)
        return replace(settled, rendering=rendered.words, lesson=rendered.lesson)

    async def _settle(
        self, settled: Settlement, facts: Extracted, previous: PreviousPage | None
    ) -> Settlement:
        if settled.outcome is not Outcome.FETCHED:
            return settled
        duplicate = await self._as_duplicate(settled, facts, previous)
        return duplicate or self._as_page(settled, previous)

    async def _as_duplicate(
        self, settled: Settlement, facts: Extracted, previous: PreviousPage | None
    ) -> Settlement | None:
        canonical = self.judge.canonical_of(settled.entry, facts)
        if canonical is not None and await self._can_stand_for_others(url_key(canonical)):
            return with_canonical(settled, canonical)
        content = settled.content_hash
        if content is None or not self._is_compared(facts):
            return None
        known = await self._known_content(content)
        if known is None and previous is None:
            known = await self._expected_content(content)
        return None if known is None else as_duplicate(settled, CONTENT, known)

    def _is_compared(self, facts: Extracted) -> bool:
        return self.judge.compares_content and facts.text_length >= LEAST_CONTENT

    async def _can_stand_for_others(self, key: bytes) -> bool:
        """Whether a URL is not itself a duplicate, excluded or failed."""
        job_id = self.context.lease.job_id
        return await self.context.database.run(store.settled_as_page, job_id, key) is not False

    async def _known_content(self, content: bytes) -> str | None:
        """The page of this crawl that says the same."""
        if content not in self._contents:
            return None
        if content in self._fresh:
            return self._fresh[content]
        job_id = self.context.lease.job_id
        return await self.context.database.run(store.select_url_of_content, job_id, content)

    async def _expected_content(self, content: bytes) -> str | None:
        """The page that said the same when it was crawled before, and is about to be visited.

        Otherwise chance would decide in each crawl which of two is the page.
        """
        base_id = self.pages.base_id
        if base_id is None:
            return None
        job_id = self.context.lease.job_id
        return await self.context.database.run(store.select_expected_url, job_id, base_id, content)

    def _as_page(self, settled: Settlement, previous: PreviousPage | None) -> Settlement:
        if settled.content_hash is not None:
            self._remember(settled.content_hash, settled.entry.url)
        if previous is None:
            return settled
        same = settled.document is not None and settled.content_hash == previous.content_hash
        outcome = Outcome.UNCHANGED if same else Outcome.FETCHED
        return replace(
            settled, outcome=outcome, reason="same_content" if same else None, previous=previous
        )

    def _remember(self, content_hash: bytes, url: str) -> None:
        self.remember_content(content_hash)
        self._fresh.setdefault(content_hash, url)


def _has_validators(previous: PreviousPage | None) -> TypeGuard[PreviousPage]:
    """Whether the request was conditional: an answer of 304 to any other one says nothing."""
    return previous is not None and bool(previous.etag or previous.last_modified)


def _request(entry: Entry, previous: PreviousPage | None) -> Request:
    """Conditional if the page was there before: then it may answer that nothing changed."""
    return Request(
        entry.url,
        etag=previous.etag if previous else None,
        last_modified=previous.last_modified if previous else None,
        is_retry=entry.attempts > 0,
    )
