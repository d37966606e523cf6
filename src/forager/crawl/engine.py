"""The engine: starts visits and commits their results until the crawl is done."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from urllib.parse import urlsplit

from forager.clock import wait_for_event
from forager.crawl.batch import Batch, Committer
from forager.crawl.ending import Ending
from forager.crawl.extraction.rereading import BoilerplateLearner
from forager.crawl.frontier.entry import Entry
from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.frontier.window import Rests, Window
from forager.crawl.ledger import CARRIED_OVER
from forager.crawl.options import CrawlOptions
from forager.crawl.settlement import Postponed, Resting, Settlement, Visit
from forager.crawl.store import frontier as store
from forager.crawl.visitor import Visitor
from forager.errors import ErrorKind
from forager.fetch.budgets.waits import HostWait
from forager.jobs.kinds import Completed, Outcome, Stopped, Waiting
from forager.render import store as render_store
from forager.render.store import Lesson

BATCH_SIZE = 50
BATCH_LINKS = 50_000
BATCH_BYTES = 32 * 1024 * 1024
# limit for pages that are read and not committed yet; beyond it, none are fetched
BYTES_WAITING = 4 * BATCH_BYTES
BATCH_SECONDS = 1.0
# visits that may wait for a browser beside all others
RENDER_ROOM = 50
DEFAULT_CONCURRENCY = 5
# a crawl of many hosts may talk to several of them at once
HOSTS_AT_ONCE = 8
RETRY_LOOK = 0.5
# if nothing can be done for longer than this, the job is given back until then
LONGEST_WAIT = 60.0
# a refresh whose first pages all fail, this many, is of a site that is down
SITE_IS_DOWN = 20
# fewer for network errors on the only host of a crawl: the delays between its requests grow
SITE_IS_UNREACHABLE = 5

FINISHED = Completed("finished")


class Engine:
    """Runs one crawl from its last commit to its end, a pause, or a reason to wait.

    Nothing is in memory alone: entries that are under way, resting or settled but not committed
    are still in the frontier, and the next run reads them from there.
    """

    def __init__(
        self,
        committer: Committer,
        window: Window,
        visitor: Visitor,
        ending: Ending,
        learner: BoilerplateLearner,
    ) -> None:
        self._committer = committer
        self._context = committer.context
        self._options = options = committer.options
        self._state = state = committer.state
        self._window = window
        self._visitor = visitor
        self._ending = ending
        self._learner = learner
        self._page_limit = options.page_limit
        self._concurrency = _concurrency(options)
        self._has_one_host = len({urlsplit(url).netloc for url in options.urls}) == 1
        self._visits: set[asyncio.Task[Visit]] = set()
        self._failure: BaseException | None = None
        self._settled: list[Settlement | Postponed] = []
        # bytes of these pages, which the ledger does not count yet
        self._bytes_waiting = 0
        self._oldest = 0.0
        self._committing: asyncio.Task[None] | None = None
        self._committing_pages = 0
        # how many entries of each depth are under way or not committed yet
        self._depths: Counter[int] = Counter()
        self._rests = Rests()
        # there are entries, but none that may be fetched now
        self._blocked = False
        # until when nothing can be fetched, by the local clock, and why
        self._idle_until: tuple[float, str] | None = None
        self._retry_look = 0.0
        self._changed = asyncio.Event()
        self._started = time.monotonic() - state.seconds

    async def run(self) -> Outcome:
        stopping = asyncio.ensure_future(self._context.stopping.wait())
        stopping.add_done_callback(lambda _: self._changed.set())
        try:
            return await self._run()
        finally:
            stopping.cancel()
            await self._abandon_visits()
            if self._committing is not None:
                await asyncio.gather(self._committing, return_exceptions=True)

    async def _run(self) -> Outcome:
        while True:
            self._state.seconds = time.monotonic() - self._started
            if self._context.stopping.is_set():
                return await self._leave(Stopped())
            reached = self._limit_reached()
            if reached is not None:
                return await self._finish(Completed(reached))
            if self._site_is_down():
                return await self._finish(FINISHED)
            if (lesson := self._visitor.rendering.left_to_others) is not None:
                return await self._hand_over(lesson)
            await self._read_frontier()
            self._launch()
            await self._commit_if_due()
            if not self._busy():
                if self._learner.pages_missing(self._state.ledger.listed) == 0:
                    for content in await self._learner.learn():
                        self._visitor.remember_content(content)
                outcome = await self._idle()
                if outcome is not None:
                    return outcome
            await self._nap()

    def wait(self) -> HostWait | None:
        """The reason why the crawl waits if nothing is under way."""
        if self._idle_until is None or self._visits:
            return None
        until, reason = self._idle_until
        return HostWait(reason, max(0.0, until - time.monotonic()))

    # --- what comes next ------------------------------------------------------------------

    def _limit_reached(self) -> str | None:
        options, ledger, limit = self._options, self._state.ledger, self._page_limit
        if limit is not None and ledger.listed >= limit:
            return "max pages" if limit == options.max_pages else "page quota"
        fetched = ledger.bytes_fetched + self._bytes_waiting
        if options.max_bytes is not None and fetched >= options.max_bytes:
            return "max bytes"
        if options.max_time is not None and self._state.seconds >= options.max_time:
            return "max time"
        return None

    def _site_is_down(self) -> bool:
        """Every page failed so far; the links of earlier versions would lead to all the others."""
        ledger = self._state.ledger
        if ledger.pages:
            return False
        reasons = ledger.reasons.get(CARRIED_OVER, Counter())
        unreachable = self._has_one_host and reasons[ErrorKind.NETWORK] == ledger.carried_over
        return ledger.carried_over >= (SITE_IS_UNREACHABLE if unreachable else SITE_IS_DOWN)

    async def _read_frontier(self) -> None:
        await self._window.refill()
        now = time.monotonic()
        if now >= self._retry_look:
            self._retry_look = now + RETRY_LOOK
            await self._window.add_retries()

    def _launch(self) -> None:
        self._blocked = False
        while self._room() > 0:
            entry = self._next_entry()
            if entry is None:
                return
            self._depths[entry.depth] += 1
            self._idle_until = None
            task = asyncio.create_task(self._visitor.visit(entry))
            self._visits.add(task)
            task.add_done_callback(self._arrived)

    def _room(self) -> int:
        """Visits that may still be started: what a kill would cost stays bounded by this."""
        if self._bytes_waiting >= BYTES_WAITING:
            return 0
        taken = len(self._visits) + len(self._settled) + self._committing_pages
        # rendered pages have separate slots: they are slow, and must not delay others
        rendered = min(self._visitor.rendering.under_way, RENDER_ROOM)
        room = self._concurrency + BATCH_SIZE + rendered - taken
        wanted = self._pages_wanted()
        if wanted is None:
            return room
        # any of those that are under way or not entered yet may turn out to be a page
        waiting = sum(isinstance(visit, Settlement) for visit in self._settled)
        return min(room, wanted - waiting - len(self._visits))

    def _pages_wanted(self) -> int | None:
        """Pages up to the limit, or up to where the crawl pauses to learn from them."""
        listed, limit = self._state.ledger.listed, self._page_limit
        missing = self._learner.pages_missing(listed)
        left = None if limit is None else limit - listed
        return min((each for each in (missing, left) if each is not None), default=None)

    def _next_entry(self) -> Entry | None:
        entry = self._rests.over() or self._window.take()
        while entry is not None and self._rests.concerns(entry):
            if not self._rests.put_aside(entry):
                break
            entry = self._window.take()
        if entry is None or not (self._rests.concerns(entry) or self._is_too_early(entry)):
            return entry
        self._window.put_back(entry)
        self._blocked = True
        return None

    def _is_too_early(self, entry: Entry) -> bool:
        """With a depth limit, a level is fetched only after the level before it is committed.

        Otherwise a page could count as too deep because a shorter path to it was slower.
        """
        if self._options.max_depth is None:
            return False
        return any(depth < entry.depth for depth in +self._depths)

    # --- what comes back --------------------------------------------------------------------

    def _arrived(self, task: asyncio.Task[Visit]) -> None:
        self._visits.discard(task)
        self._changed.set()
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # a bug, or the database is unreachable: raised in the loop
            self._failure = self._failure or error
            return
        self._take_in(task.result())

    def _take_in(self, visit: Visit) -> None:
        if isinstance(visit, Resting):
            self._depths[visit.entry.depth] -= 1
            self._rests.add(visit)
            return
        if not self._settled:
            self._oldest = time.monotonic()
        self._settled.append(visit)
        self._bytes_waiting += _size(visit)

    # --- commits ------------------------------------------------------------------------------

    async def _commit_if_due(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._committing is not None:
            if not self._committing.done():
                return
            task, self._committing = self._committing, None
            task.result()
        if self._settled and self._due():
            self._start_commit()

    def _due(self) -> bool:
        full = len(self._settled) >= BATCH_SIZE or self._bytes_waiting >= BATCH_BYTES
        # with nothing left to launch, the crawl waits for the links of these pages
        starving = not self._visits or not len(self._window)
        return full or starving or time.monotonic() - self._oldest >= BATCH_SECONDS

    def _start_commit(self) -> None:
        """Start a commit. Only writing awaits, so the frontier is not read in between."""
        size = self._batch_size()
        visits, self._settled = self._settled[:size], self._settled[size:]
        self._bytes_waiting -= sum(map(_size, visits))
        self._oldest = time.monotonic()
        batch = self._committer.assemble(visits)
        # discovered URLs may be fetched at once: their commit can only come after this one
        self._window.append(batch.discovered.entries)
        self._committing_pages = len(visits)
        self._committing = asyncio.create_task(self._commit(batch, visits))
        self._committing.add_done_callback(lambda _: self._changed.set())

    def _batch_size(self) -> int:
        """A page may have 50,000 links or 20 MB: not many of those in one commit."""
        links = size_of_pages = 0
        for size, visit in enumerate(self._settled[:BATCH_SIZE], start=1):
            links += len(visit.links or ()) if isinstance(visit, Settlement) else 0
            size_of_pages += _size(visit)
            if links >= BATCH_LINKS or size_of_pages >= BATCH_BYTES:
                return size
        return BATCH_SIZE

    async def _commit(self, batch: Batch, visits: list[Settlement | Postponed]) -> None:
        await self._committer.write(batch)
        self._committing_pages = 0
        self._window.committed(visit.entry for visit in visits)
        self._depths.subtract(visit.entry.depth for visit in visits)
        for visit in visits:
            if isinstance(visit, Settlement):
                self._visitor.committed(visit)

    # --- ends -----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._visits or self._settled or self._committing)

    async def _idle(self) -> Outcome | None:
        """Finish, or wait for a host or a retry, when nothing is under way."""
        if not self._window.exhausted and not self._blocked:
            return None
        waits = self._rests.waits()
        retry = await self._context.database.run(
            store.select_next_retry, self._context.lease.job_id, besides=self._window.retrying
        )
        if retry is not None:
            waits.append((retry, "URLs are waiting to be tried again"))
        if not waits:
            return await self._finish(FINISHED)
        seconds, reason = min(waits)
        self._idle_until = (time.monotonic() + seconds, reason)
        return await self._leave(Waiting(seconds, reason)) if seconds > LONGEST_WAIT else None

    async def _finish(self, outcome: Outcome) -> Outcome:
        await self._leave(outcome)
        await self._learner.finish()
        await self._ending.settle()
        if outcome is FINISHED:
            await self._ending.expect_a_page()
        return outcome

    async def _hand_over(self, lesson: Lesson) -> Outcome:
        """Leave the crawl to a worker with a browser: the lesson keeps the others from it."""
        await self._leave(Stopped())
        source = self._context.job.source_id
        assert source is not None
        async with self._context.commit() as connection:
            await render_store.upsert_lessons(connection, source, [lesson])
        return Waiting(0.0, "some pages need a worker with a browser")

    async def _leave(self, outcome: Outcome) -> Outcome:
        """Commit what is settled; what is under way was never begun."""
        await self._abandon_visits()
        while self._busy():
            await self._commit_if_due()
            if self._settled and self._committing is None:
                self._start_commit()
            if self._committing is not None:
                await asyncio.wait({self._committing})
        return outcome

    async def _abandon_visits(self) -> None:
        visits = list(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    async def _nap(self) -> None:
        """Wait until something arrives, or until retries and limits are checked again."""
        await wait_for_event(self._changed, RETRY_LOOK)
        self._changed.clear()


def _size(visit: Settlement | Postponed) -> int:
    return visit.size or 0 if isinstance(visit, Settlement) else 0


def _concurrency(options: CrawlOptions) -> int:
    if options.concurrency is not None:
        return options.concurrency
    many = options.scope is ScopeMode.DOMAIN or len(options.urls) > 1
    return DEFAULT_CONCURRENCY * (HOSTS_AT_ONCE if many else 1)
