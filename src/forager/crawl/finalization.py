"""The end of a crawl: duplicates without a page, and why there may be no page at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from forager.crawl.batch import Committer
from forager.crawl.extraction.rereading import Rereading
from forager.crawl.frontier.loops import CANONICAL, CONTENT, REDIRECT, resolve
from forager.crawl.ledger import REMARKS, SITEMAPS, CrawlState
from forager.crawl.options import CrawlOptions
from forager.crawl.settlement import Outcome
from forager.crawl.store import ends as store
from forager.db.database import Connection
from forager.errors import ErrorKind, GiveUp
from forager.jobs.context import JobContext

Row = TypeVar("Row")

PAGES_PER_COMMIT = 50
# URLs per query: no result takes long or is large
URLS_PER_LOOK = 100_000


@dataclass(frozen=True, slots=True)
class _Promotion:
    """Why duplicates for a reason become pages after all."""

    reason: str
    remark: str
    detail: str


_CANONICAL_IS_NO_PAGE = _Promotion(
    CANONICAL, "canonical_is_no_page", "the canonical URL it names is no page"
)
_ORIGINAL_IS_NO_MORE = _Promotion(
    CONTENT, "original_is_no_more", "the page it repeated is no longer as it was"
)


@dataclass(frozen=True, slots=True)
class Finalization:
    """Settles what can only be settled when no URL is pending."""

    context: JobContext
    options: CrawlOptions
    state: CrawlState
    committer: Committer
    rereading: Rereading

    async def settle(self) -> None:
        """Duplicates of nothing become pages, and redirects in a loop failures."""
        if not self.state.ledger.settled[Outcome.DUPLICATE]:
            return
        pages, loops = resolve(await self._in_ranges(store.select_pointers))
        if loops:
            await self._fail_loops(loops)
        await self._make_pages(pages, _CANONICAL_IS_NO_PAGE)
        if self.rereading.pages.base_id is not None:
            await self._settle_copies()

    async def _settle_copies(self) -> None:
        """Copies of pages that were expected to stay as they were, and did not."""
        pages: dict[bytes, bytes] = {}
        others: dict[bytes, bytes] = {}
        for key, content in await self._in_ranges(store.select_left_copies):
            page = pages.setdefault(content, key)
            if page != key:
                others[key] = page
        await self._make_pages(list(pages.values()), _ORIGINAL_IS_NO_MORE)
        if others:
            async with self.context.commit() as connection:
                await store.repoint_copies(
                    connection, self.context.lease.job_id, list(others), list(others.values())
                )

    async def _in_ranges(
        self, select: Callable[[Connection, UUID, bytes, bytes], Awaitable[list[Row]]]
    ) -> list[Row]:
        """All rows of a query that reads the URLs between two keys."""
        found: list[Row] = []
        for first, last in store.key_ranges(self.state.ledger.discovered // URLS_PER_LOOK + 1):
            found += await self.context.database.run(select, self.context.lease.job_id, first, last)
        return found

    async def _fail_loops(self, keys: Sequence[bytes]) -> None:
        for _ in keys:
            self.state.ledger.resettle(Outcome.DUPLICATE, Outcome.FAILED, REDIRECT, "redirect_loop")
        job_id = self.context.lease.job_id
        async with self.context.commit() as connection:
            await store.fail_visited(
                connection, job_id, keys, reason="redirect_loop", detail="redirects in a loop"
            )
            await self.committer.write_state(connection)

    async def _make_pages(self, keys: Sequence[bytes], why: _Promotion) -> None:
        if self.options.page_limit is not None:
            keys = keys[: max(0, self.options.page_limit - self.state.ledger.listed)]
        for start in range(0, len(keys), PAGES_PER_COMMIT):
            await self._commit_pages(keys[start : start + PAGES_PER_COMMIT], why)

    async def _commit_pages(self, keys: Sequence[bytes], why: _Promotion) -> None:
        """Read duplicates again from the archive, and commit them as pages."""
        ledger, job_id = self.state.ledger, self.context.lease.job_id
        plan = await self.rereading.plan(job_id, keys)
        for _ in keys:
            ledger.resettle(Outcome.DUPLICATE, Outcome.FETCHED, why.reason, None)
            ledger.note(REMARKS, why.remark)
        async with self.context.commit() as connection:
            await store.make_pages(connection, job_id, keys, detail=why.detail)
            await self.rereading.pages.write(connection, plan)
            await self.committer.write_state(connection)

    async def expect_a_page(self) -> None:
        """A crawl that got no page at all has failed, and its start says why."""
        if self.state.ledger.pages:
            return
        reasons = await self.context.database.run(
            store.select_first_failures, self.context.lease.job_id
        )
        sitemaps = self.state.ledger.reasons.get(SITEMAPS)
        if sitemaps:
            reasons += [f"sitemaps: {count} {what}" for what, count in sitemaps.items()]
        message = "no page could be fetched: " + ("; ".join(reasons) or "nothing was found")
        failures = self.state.ledger.reasons_of(Outcome.FAILED)
        raise GiveUp(message, kind=_kind(failures[0][0] if failures else ""))


def _kind(reason: str) -> ErrorKind:
    """The kind of the most frequent failure; VALIDATION if nothing failed."""
    if reason.startswith("http_") and reason not in set(ErrorKind):
        return ErrorKind.HTTP_CLIENT if reason < "http_5" else ErrorKind.HTTP_SERVER
    return ErrorKind(reason) if reason in set(ErrorKind) else ErrorKind.VALIDATION
