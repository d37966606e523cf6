"""The visitor: fetches one entry of the frontier and decides its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from forager.archive.warc_record import ArchiveError
from forager.crawl.extraction.pool import Extracted, PageExtractor
from forager.crawl.extraction.rereading import BoilerplateLearner
from forager.crawl.frontier.entry import FrontierEntry
from forager.crawl.frontier.known import KnownUrls
from forager.crawl.frontier.loops import CONTENT
from forager.crawl.pages import CarryOver, Pages
from forager.crawl.settlement import Deferred, Outcome, Settlement, Visit
from forager.crawl.store import visited as store
from forager.crawl.visit.content_filter import ContentFilter
from forager.crawl.visit.logins import LoginWatch
from forager.crawl.visit.markdown import MarkdownFirst, MarkdownPage
from forager.crawl.visit.outcomes import (
    LEAST_CONTENT,
    OutcomeRules,
    as_duplicate,
    compared,
    excluded,
    with_canonical,
)
from forager.crawl.visit.rendering import NeedsBrowserWorker, Rendering
from forager.documents.page import PreviousPage
from forager.errors import NotFound, WorkFailed
from forager.extract.keys import url_key
from forager.fetch.budgets.slots import DomainInactive, HostThrottled
from forager.fetch.response import Request, Response
from forager.fetch.robots.gate import ForbiddenByRobots, RobotsGate
from forager.fetch.sender import Sender
from forager.jobs.context import JobContext
from forager.tracing import span

NOT_MODIFIED = 304
WASTED = "not rendered: pages like this one show no more when they are rendered"


@dataclass(frozen=True, slots=True)
class HostRequest:
    """What a visit reports about its request: that it is sent, and that it has ended."""

    sent: Callable[[], None]
    ended: Callable[[], None]


NO_REQUEST = HostRequest(lambda: None, lambda: None)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Visits one entry of the frontier: robots.txt, request, rendering, extraction, outcome.

    It writes nothing to the database; `Committer` commits the results of many visits together.
    """

    context: JobContext
    outcomes: OutcomeRules
    sender: Sender
    robots: RobotsGate
    extractor: PageExtractor
    pages: Pages
    rendering: Rendering
    markdown: MarkdownFirst
    logins: LoginWatch
    carry_over: CarryOver
    # held during a commit
    writing: asyncio.Lock
    known: KnownUrls
    learner: BoilerplateLearner
    _contents: ContentFilter
    # contents of pages that are not committed yet, and whose they are
    _fresh: dict[bytes, str] = field(default_factory=dict, init=False)

    def remember_content(self, content_hash: bytes) -> None:
        """Remember a content, so that the next page with it is a duplicate."""
        self._contents.add(content_hash)

    def committed(self, settled: Settlement) -> None:
        """A page can be found in the database from now on."""
        content = settled.content_hash
        # a copy may be committed before the page that it repeats
        if content is not None and self._fresh.get(content) == settled.entry.url:
            del self._fresh[content]

    async def visit(self, entry: FrontierEntry, request: HostRequest = NO_REQUEST) -> Visit:
        """Check robots.txt, fetch, extract and decide. Failures are returned as settlements."""
        with span("page", attributes={"url.full": entry.url}) as page:
            visit = await self._visit(entry, request)
            if isinstance(visit, Settlement):
                visit = await self._carried_over(visit)
                await self.known.look_up(visit.found_keys())
                page.set_attributes({"outcome": visit.outcome, "reason": visit.reason or ""})
            return visit

    async def _visit(self, entry: FrontierEntry, request: HostRequest) -> Visit:
        try:
            if (duplicate := await self.markdown.as_duplicate(entry)) is not None:
                return duplicate
            await self.robots.check(entry.url)
            previous = await self.pages.previous(entry.key)
            response = await self._fetch(entry, previous, request)
            if response.status == NOT_MODIFIED and _has_validators(previous):
                static = await self._static_before(entry, previous, request)
                if static is None:
                    return await self._unchanged(entry, response, previous)
                response = static
            if self.logins.is_sent_to_login(entry, response):
                return self.logins.suspect(entry, previous)
            settled = self.outcomes.status(entry, response)
            return settled or await self._read(entry, response, previous)
        except HostThrottled as throttled:
            return Deferred(entry, throttled.seconds, throttled.reason)
        except NeedsBrowserWorker as left:
            return Deferred(entry, 0.0, left.message)
        except ForbiddenByRobots as error:
            return excluded(entry, "robots", error.reason)
        except DomainInactive as error:
            return excluded(entry, "domain_inactive", error.message)
        except WorkFailed as error:
            return self.outcomes.failure(entry, error)

    async def _carried_over(self, visit: Settlement) -> Settlement:
        settled = await self.carry_over.apply(visit)
        if settled.carried_over and settled.content_hash is not None:
            self._remember(settled.content_hash, settled.entry.url)
        return settled

    async def _fetch(
        self, entry: FrontierEntry, previous: PreviousPage | None, request: HostRequest
    ) -> Response:
        try:
            with span("fetch"):
                plain = _request(entry, previous)
                sent = self.markdown.negotiate(plain)
                response = await self.robots.fetch(sent, on_slot=request.sent)
                if sent is not plain and self.markdown.take_offer(response):
                    response = await self.robots.fetch(plain)
                return response
        finally:
            request.ended()

    async def _static_before(
        self, entry: FrontierEntry, previous: PreviousPage, request: HostRequest
    ) -> Response | None:
        """The response to render for a page that returns 304; None if it is unchanged."""
        try:
            return await self.rendering.static_before(entry.url, previous)
        except (ArchiveError, NotFound):
            return await self._fetch(entry, None, request)

    async def _unchanged(
        self, entry: FrontierEntry, response: Response, previous: PreviousPage
    ) -> Settlement:
        """A 304: the page is as it was, and so are its links."""
        self.logins.read_page(entry)
        self._remember(previous.content_hash, entry.url)
        links = await self.pages.links_before(previous, entry.depth)
        return self.outcomes.not_modified(entry, response, previous, links)

    async def _read(
        self, entry: FrontierEntry, response: Response, previous: PreviousPage | None
    ) -> Visit:
        await self.learner.turn(entry, len(response.body))
        with span("extract"):
            facts = await self.extractor.extract(response)
        if self.logins.is_login_form(entry, asks_password=facts.asks_password):
            return self.logins.suspect(entry, previous)
        self.logins.read_page(entry)
        reason = self.rendering.reason(entry.url, response, facts)
        if reason is None:
            settled = self.outcomes.page(entry, response, facts)
            return await self._settle(
                await self._as_markdown(settled, response, facts), facts, previous
            )
        if (message := self.rendering.check_browser(response.url, reason)) is not None:
            settled = replace(self.outcomes.page(entry, response, facts), rendering=message)
            return await self._settle(settled, facts, previous)
        rendered = await self.rendering.render(entry.url, response, facts, reason, self.extractor)
        if rendered is None:
            settled = replace(self.outcomes.page(entry, response, facts), rendering=WASTED)
            return await self._settle(settled, facts, previous)
        if rendered.facts is None:
            moved = self.outcomes.moved_by_script(entry, response, rendered.page.moved or "")
            message, shape_stats = rendered.message, rendered.shape_stats
            return replace(moved, rendering=message, rendered_for=reason, shape_stats=shape_stats)
        settled = self.outcomes.page(entry, rendered.response, rendered.facts)
        settled = replace(
            settled,
            frame=rendered.frame,
            rendering=rendered.message,
            rendered_for=reason,
            loaded_bytes=rendered.page.bytes,
            shape_stats=rendered.shape_stats,
        )
        return await self._settle(settled, rendered.facts, previous)

    async def _as_markdown(
        self, settled: Settlement, response: Response, facts: Extracted
    ) -> Settlement:
        """The page with the markdown that its site offers, if it does."""
        is_page = settled.outcome is Outcome.FETCHED
        if not is_page or self.outcomes.canonical_of(settled.entry, facts) is not None:
            return settled
        found = await self.markdown.read(settled.entry, response, facts)
        if not isinstance(found, MarkdownPage):
            return replace(settled, detail=found)
        return replace(
            settled,
            document=found.document,
            content_hash=found.document.content_hash,
            frame=found.frame,
            size=(settled.size or 0) + found.size,
            detail=found.message,
        )

    async def _settle(
        self, settled: Settlement, facts: Extracted, previous: PreviousPage | None
    ) -> Settlement:
        if settled.outcome is not Outcome.FETCHED:
            return settled
        duplicate = await self._as_duplicate(settled, facts, previous)
        if duplicate is not None:
            return duplicate
        if settled.content_hash is not None:
            self._remember(settled.content_hash, settled.entry.url)
        return settled if previous is None else compared(settled, previous)

    async def _as_duplicate(
        self, settled: Settlement, facts: Extracted, previous: PreviousPage | None
    ) -> Settlement | None:
        canonical = self.outcomes.canonical_of(settled.entry, facts)
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
        return self.outcomes.compares_content and facts.text_length >= LEAST_CONTENT

    async def _can_stand_for_others(self, key: bytes) -> bool:
        """Whether a URL is not itself a duplicate, excluded or failed."""
        job_id = self.context.lease.job_id
        return await self.context.database.run(store.settled_as_page, job_id, key) is not False

    async def _known_content(self, content: bytes) -> str | None:
        """The page of this crawl that says the same."""
        if content not in self._contents and self.known.is_complete:
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
        async with self.writing:
            pass  # that page may be in the same commit as the entry of this one
        return await self.context.database.run(store.select_expected_url, job_id, base_id, content)

    def _remember(self, content_hash: bytes, url: str) -> None:
        self.remember_content(content_hash)
        self._fresh.setdefault(content_hash, url)


def _has_validators(previous: PreviousPage | None) -> TypeGuard[PreviousPage]:
    """Whether the request was conditional: an answer of 304 to any other one says nothing."""
    return previous is not None and bool(previous.etag or previous.last_modified)


def _request(entry: FrontierEntry, previous: PreviousPage | None) -> Request:
    """Conditional if the page was there before: then it may answer that nothing changed."""
    return Request(
        entry.url,
        etag=previous.etag if previous else None,
        last_modified=previous.last_modified if previous else None,
        is_retry=entry.attempts > 0,
    )
