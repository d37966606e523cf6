"""The engine: starts visits and commits their results until the crawl is done."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from math import inf

from forager.clock import local_time, wait_for_event
from forager.crawl.batch import Batch, Committer
from forager.crawl.events import record_logged_out
from forager.crawl.extraction.rereading import LEARNING, BoilerplateLearner
from forager.crawl.finalization import Finalization
from forager.crawl.frontier.entry import FrontierEntry
from forager.crawl.frontier.window import Window
from forager.crawl.limits import CrawlLimits
from forager.crawl.settlement import Deferred, Postponed, Settlement, Visit
from forager.crawl.store import frontier as store
from forager.crawl.visit.visitor import HostRequest, Visitor
from forager.fetch.budgets.terms import CrawlTerms
from forager.fetch.budgets.view import HostPace
from forager.fetch.budgets.waits import HostWait
from forager.jobs.kinds import Completed, Outcome, Paused, Stopped, Waiting
from forager.render.stats import ShapeStats

BATCH_SIZE = 50
BATCH_LINKS = 50_000
BATCH_BYTES = 32 * 1024 * 1024
# limit for pages that are read and not committed yet; beyond it, none are fetched
BYTES_WAITING = 4 * BATCH_BYTES
# how long settled pages wait for a full batch, and at most while a host has nothing else to fetch
BATCH_SECONDS = 5.0
STARVING_SECONDS = 1.0
# beside many crawls a batch of few pages waits longer, so that all of them together make about this
# many commits per second: a kill costs each crawl no more than these pages
COMMITS_PER_SECOND = 40
FEW_PAGES = 10
LONGEST_BATCH_SECONDS = 25.0
# visits that may wait for a browser beside all others
RENDER_ROOM = 50
# hosts whose connections may all be in use at a time
MANY_HOSTS = 100
# visits under way beyond which none are started while the pages of all crawls wait for extraction
FEW_VISITS = 4
# how long the engine waits at most before it checks limits again
LONGEST_PAUSE = 5.0
# a wait that is worth saying in a report
LONG_WAIT = 1.0
# if nothing can be done for longer than this, the job is given back until then
LONGEST_WAIT = 60.0

RETRIES_WAIT = "URLs are waiting to be tried again"
SHORTEST_PAUSE = 0.01
FINISHED = Completed("finished")


class Engine:
    """Runs one crawl from its last commit to its end, a pause, or a reason to wait.

    Nothing is in memory alone: entries that are under way, deferred or settled but not committed
    are still in the frontier, and the next run reads them from there.
    """

    def __init__(
        self,
        committer: Committer,
        window: Window,
        visitor: Visitor,
        finalization: Finalization,
        learner: BoilerplateLearner,
    ) -> None:
        self._committer = committer
        self._context = committer.context
        self._options = options = committer.options
        self._state = state = committer.state
        self._window = window
        self._queues = window.queues
        self._visitor = visitor
        self._finalization = finalization
        self._learner = learner
        self._limits = CrawlLimits(options)
        self._page_limit = options.page_limit
        self._connections = CrawlTerms(concurrency=options.concurrency).connections
        self._visits: dict[asyncio.Task[Visit], FrontierEntry] = {}
        self._failure: BaseException | None = None
        self._settled: list[Settlement | Postponed] = []
        # bytes of these pages, which the ledger does not count yet
        self._bytes_waiting = 0
        self._oldest = 0.0
        self._committing: asyncio.Task[None] | None = None
        self._committing_pages = 0
        # how many entries of each depth are under way or not committed yet
        self._depths: Counter[int] = Counter()
        # the hosts that could be requested have only entries that are too deep for now
        self._blocked = False
        # when the first postponed entry is due, by the local clock; None: there is none
        self._retry_at: float | None = 0.0
        self._waits_for_retry = False
        self._changed = asyncio.Event()
        self._started = time.monotonic() - state.seconds

    async def run(self) -> Outcome:
        """Crawl until the frontier is empty, a limit is reached, or a stop is asked for."""
        stopping = asyncio.ensure_future(self._context.stopping.wait())
        stopping.add_done_callback(lambda _: self._changed.set())
        self._visitor.sender.budgets.on_slot = self._paced
        try:
            return await self._run()
        finally:
            stopping.cancel()
            await self._abandon_visits()
            await self._learner.stop()
            if self._committing is not None:
                await asyncio.gather(self._committing, return_exceptions=True)

    async def _run(self) -> Outcome:
        while True:
            self._state.seconds = time.monotonic() - self._started
            if self._context.stopping.is_set():
                return await self._leave(Stopped())
            reached = self._limits.reached(self._state, self._bytes_waiting)
            if reached is not None:
                return await self._finish(Completed(reached))
            if self._limits.site_is_down(self._state.ledger):
                return await self._finish(FINISHED)
            if (shape_stats := self._visitor.rendering.needs_browser_worker) is not None:
                return await self._hand_over(shape_stats)
            if (message := self._visitor.logins.message) is not None:
                await self._leave(Stopped())
                return Paused(message, partial(record_logged_out, self._context.job, message))
            await self._read_frontier()
            self._learn()
            self._launch()
            await self._commit_if_due()
            if not self._busy():
                outcome = await self._idle()
                if outcome is not None:
                    return outcome
            await self._wait_for_change()

    def wait(self) -> HostWait | None:
        """The reason why the crawl waits, or what it does if nothing is under way."""
        if self._learner.is_learning:
            return HostWait(LEARNING)
        if self._visits:
            return None
        waits = self._queues.waits()
        if not waits and self._retry_at is not None and self._waits_for_retry:
            waits = [(self._retry_at - local_time(), RETRIES_WAIT)]
        seconds, reason = min(waits, default=(0.0, ""))
        return HostWait(reason, seconds) if seconds >= LONG_WAIT else None

    # --- what comes next ------------------------------------------------------------------

    def _learn(self) -> None:
        for content in self._learner.advance(self._state.ledger.listed, self._changed.set):
            self._visitor.remember_content(content)

    async def _read_frontier(self) -> None:
        await self._window.refill()
        if self._retry_at is not None and local_time() >= self._retry_at:
            await self._window.add_retries()
            await self._find_next_retry()

    async def _find_next_retry(self) -> None:
        seconds = await self._context.database.run(
            store.select_next_retry, self._context.lease.job_id, besides=self._window.retrying
        )
        self._retry_at = None if seconds is None else local_time() + max(0.0, seconds)

    def _launch(self) -> None:
        self._blocked, deepest = False, self._deepest()
        while self._room() > 0:
            entry = self._queues.take(deepest)
            if entry is None:
                next_at = self._queues.next_at()
                self._blocked = next_at is not None and next_at <= local_time()
                return
            self._depths[entry.depth] += 1
            self._waits_for_retry = False
            request = HostRequest(partial(self._queues.sent, entry), partial(self._ended, entry))
            task = asyncio.create_task(self._visitor.visit(entry, request))
            self._visits[task] = entry
            task.add_done_callback(self._arrived)

    def _deepest(self) -> int | None:
        """With a depth limit, a level is fetched only after the level before it is committed.

        Otherwise a page could count as too deep because a shorter path to it was slower.
        """
        if self._options.max_depth is None:
            return None
        under_way = min((depth for depth, count in self._depths.items() if count > 0), default=None)
        waiting = self._window.least_depth()
        return min((depth for depth in (under_way, waiting) if depth is not None), default=None)

    def _paced(self, host: str, pace: HostPace) -> None:
        self._queues.paced(host, pace)
        self._changed.set()

    def _ended(self, entry: FrontierEntry) -> None:
        """The request of a visit has ended: its host may get the next one."""
        self._queues.fetched(entry)
        self._changed.set()

    def _room(self) -> int:
        """Visits that may still be started: what a kill would cost stays bounded by this."""
        if self._bytes_waiting + self._learner.waiting_bytes >= BYTES_WAITING:
            return 0
        if len(self._visits) >= FEW_VISITS and self._context.shared.is_backlogged:
            return 0  # each page that waits is in memory
        taken = len(self._visits) + len(self._settled) + self._committing_pages
        # rendered pages have separate slots: they are slow, and must not delay others
        rendered = min(self._visitor.rendering.under_way, RENDER_ROOM)
        hosts = min(MANY_HOSTS, max(1, self._queues.hosts))
        room = self._connections * hosts + BATCH_SIZE + rendered - taken
        if self._page_limit is None:
            return room
        # any of those that are under way or not entered yet may turn out to be a page
        waiting = sum(isinstance(visit, Settlement) for visit in self._settled)
        wanted = self._page_limit - self._state.ledger.listed
        return min(room, wanted - waiting - len(self._visits))

    # --- what comes back --------------------------------------------------------------------

    def _arrived(self, task: asyncio.Task[Visit]) -> None:
        entry = self._visits.pop(task)
        self._ended(entry)
        error = None if task.cancelled() else task.exception()
        is_settled = not (task.cancelled() or error or isinstance(task.result(), Deferred))
        self._learner.arrived(entry, settled=is_settled)
        if task.cancelled():
            return
        if error is not None:
            # a bug, or the database is unreachable: raised in the loop
            self._failure = self._failure or error
            return
        self._take_in(task.result())

    def _take_in(self, visit: Visit) -> None:
        if isinstance(visit, Deferred):
            self._depths[visit.entry.depth] -= 1
            self._queues.defer(visit.entry, visit.seconds, visit.reason)
            return
        if not self._settled:
            self._oldest = time.monotonic()
        self._settled.append(visit)
        self._bytes_waiting += visit.size or 0

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
        if len(self._settled) >= BATCH_SIZE or self._bytes_waiting >= BATCH_BYTES:
            return True
        age = time.monotonic() - self._oldest
        return self._is_starving() or self._learner.needs_commit or age >= self._max_batch_age()

    def _is_starving(self) -> bool:
        """Whether the crawl waits for the links of settled pages, or for their commit."""
        if not len(self._window):
            # visits under way can join the batch until the hosts may be requested again
            return not self._visits or self._links_wanted_at() <= local_time()
        # the entries that are left are too deep, or beyond a limit
        return not self._visits and (self._blocked or self._room() <= 0)

    def _links_wanted_at(self) -> float:
        """When the first host that has nothing else to fetch could fetch a link of its page."""
        hosts = {self._queues.of_entry(visit.entry) for visit in self._settled}
        return min((host.ready_at() for host in hosts if not host.entries), default=inf)

    def _max_batch_age(self) -> float:
        """How long a batch may wait: not long if one of its hosts has nothing else to fetch."""
        if self._links_wanted_at() <= local_time():
            return STARVING_SECONDS
        if len(self._settled) >= FEW_PAGES:
            return BATCH_SECONDS
        share = self._context.shared.jobs / COMMITS_PER_SECOND
        return min(max(BATCH_SECONDS, share), LONGEST_BATCH_SECONDS)

    def _start_commit(self) -> None:
        """Start a commit. Only writing awaits, so the frontier is not read in between."""
        size = self._batch_size()
        visits, self._settled = self._settled[:size], self._settled[size:]
        self._bytes_waiting -= sum(visit.size or 0 for visit in visits)
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
            size_of_pages += visit.size or 0
            if links >= BATCH_LINKS or size_of_pages >= BATCH_BYTES:
                return size
        return BATCH_SIZE

    async def _commit(self, batch: Batch, visits: list[Settlement | Postponed]) -> None:
        await self._committer.write(batch)
        self._committing_pages = 0
        self._window.committed(visit.entry for visit in visits)
        self._learner.committed(visit.entry for visit in visits)
        self._depths.subtract(visit.entry.depth for visit in visits)
        for visit in visits:
            if isinstance(visit, Settlement):
                self._visitor.committed(visit)
            else:
                retry_at = local_time() + visit.seconds
                self._retry_at = min(retry_at, self._retry_at or retry_at)

    # --- ends -----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._visits or self._settled or self._committing or self._learner.is_learning)

    async def _idle(self) -> Outcome | None:
        """Finish, or wait for a host or a retry, when nothing is under way."""
        waits = self._queues.waits()
        if not waits:
            if not self._window.exhausted:
                return None
            await self._find_next_retry()
            self._waits_for_retry = True
        if self._retry_at is not None:
            waits.append((self._retry_at - local_time(), RETRIES_WAIT))
        if not waits:
            return await self._finish(FINISHED)
        seconds, reason = min(waits)
        return await self._leave(Waiting(seconds, reason)) if seconds > LONGEST_WAIT else None

    async def _finish(self, outcome: Outcome) -> Outcome:
        await self._leave(outcome)
        await self._learner.finish()
        await self._finalization.settle()
        if outcome is FINISHED:
            await self._finalization.expect_a_page()
        return outcome

    async def _hand_over(self, shape_stats: ShapeStats) -> Outcome:
        """Leave the crawl to a worker with a browser: the stats keep the others from it."""
        await self._leave(Stopped())
        async with self._context.commit() as connection:
            await self._committer.write_shape_stats(connection, [shape_stats])
        return Waiting(0.0, "some pages need a worker with a browser")

    async def _leave(self, outcome: Outcome) -> Outcome:
        """Commit what is settled; what is under way was never begun."""
        await self._abandon_visits()
        while self._settled or self._committing:
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

    async def _wait_for_change(self) -> None:
        """Wait until something arrives, a host may be requested, or a limit has to be checked."""
        await wait_for_event(self._changed, self._pause())
        self._changed.clear()

    def _pause(self) -> float:
        now, monotonic = local_time(), time.monotonic()
        pauses = [LONGEST_PAUSE]
        next_at = self._queues.next_at()
        if next_at is not None and not self._blocked and self._room() > 0:
            pauses.append(next_at - now)
        if self._retry_at is not None:
            pauses.append(self._retry_at - now)
        if self._settled and self._committing is None:
            pauses.append(self._oldest + self._max_batch_age() - monotonic)
            if (wanted_at := self._links_wanted_at()) > now:
                pauses.append(wanted_at - now)
        if self._options.max_time is not None:
            pauses.append(self._started + self._options.max_time - monotonic)
        return max(SHORTEST_PAUSE, min(pauses))
