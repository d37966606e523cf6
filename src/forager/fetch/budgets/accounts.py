"""The budget of one domain as one runner knows it: bookkeeping without I/O."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING

from forager.clock import local_time
from forager.fetch.budgets.exchange import (
    PAIR_DELAY,
    Answers,
    PairReservation,
    Reservation,
    ReturnedSlots,
    ServerClock,
    SlotRequest,
)
from forager.fetch.budgets.slots import LATENESS, RequestLane, Slot, SlotWindow
from forager.fetch.budgets.terms import CrawlTerms, DomainCrawls, Waiter

if TYPE_CHECKING:
    from forager.fetch.host_history.record import HostRecorder

FRESH_FOR = 2.5
"""Nothing is sent on knowledge older than this: a block by others is noticed within it."""
RENEW_EVERY = 1.0
STARVED_RENEW_EVERY = 0.25
LINGER = 2.5
"""Seconds after its last request in which a domain stays open here."""
LONGEST_BLOCK = 366 * 86400.0
ERRORS_PER_REPORT = 5
"""This many errors are reported at once: a host without a delay may get hundreds in a second."""
EXPIRY_MARGIN = 1.0


class DomainAccount:
    """Permits, windows and reports of a domain, for all hosts that its row covers."""

    def __init__(
        self,
        domain_id: int,
        name: str,
        clock: ServerClock,
        *,
        on_wanted: Callable[[DomainAccount], None] = lambda _: None,
        on_released: Callable[[], None] = lambda: None,
        recorder: HostRecorder | None = None,
    ) -> None:
        self.domain_id = domain_id
        self.name = name
        # hosts that this row applies to
        self.hosts: set[str] = set()
        self._clock = clock
        self._on_wanted = on_wanted
        self._on_released = on_released
        self._recorder = recorder
        self.is_active = True
        self.is_starved = False
        self.per_proxy_only = False
        self.delay = 0.0
        self.pair_delay = PAIR_DELAY
        self.slow_delay = 0.0
        self.permits = 0
        self.in_use = 0
        self.peak = 0
        self.fresh_until = 0.0
        self.blocked_until = 0.0
        self.cooldown_until = 0.0
        self.pair_cooldowns: dict[int, float] = {}
        self.unknown_proxies: set[int] = set()
        self.last_used = self.exchanged_at = local_time()
        self.error: Exception | None = None
        self.robots_delay = 0.0
        self._robots_delays: dict[str, float] = {}
        # reports that wait for the next exchange
        self.answers = Answers()
        self.unwritten_block = 0.0
        self.unwritten_slow: float | None = None
        self.waiting: dict[object, Waiter] = {}
        # the turns of crawls, and of the requests of each crawl
        self._turns: dict[tuple[int | None, bool, CrawlTerms | None], asyncio.Lock] = {}
        # whether pages of other runners wait; unknown before the first exchange
        self._others_wait = True
        self.crawls = DomainCrawls(name)
        self._last_window: SlotWindow | None = None
        # slots that were returned in an exchange that failed
        self.unreturned: ReturnedSlots | None = None
        self._reserved_until = 0.0
        self.changed = asyncio.Event()
        self._lane = RequestLane()
        self._pairs: dict[int, RequestLane] = {}
        self._sent = 0

    # --- crawls ----------------------------------------------------------------------------

    def admit(self, terms: CrawlTerms) -> None:
        """Apply the options of a crawl, together with those of the others."""
        if self.crawls.admit(terms):
            self.fresh_until = 0.0  # the reserved slots are too close

    def drop(self, terms: CrawlTerms) -> None:
        """Forget the options of a crawl that has ended."""
        if self.crawls.drop(terms):
            self._turns = {key: turn for key, turn in self._turns.items() if terms not in key}

    # --- sending ---------------------------------------------------------------------------

    def ready_at(self, now: float, proxy_id: int | None) -> float:
        """When a request may be sent; inf until a slot is returned or an exchange grants one."""
        if now >= self.fresh_until or self.in_use >= self.permits:
            return inf
        if proxy_id is None and self.delay == 0:
            return self.blocked_until
        lanes = self._lanes(proxy_id)
        return max(self.blocked_until, *(lane.ready_at(now) for lane in lanes))

    def take(self, now: float, proxy_id: int | None, terms: CrawlTerms) -> Slot:
        """Take a slot; the caller has checked `ready_at`."""
        if proxy_id is not None or self.delay > 0:
            for lane in self._lanes(proxy_id):
                lane.use(now)
            self._sent += 1
        self.crawls.connected(terms)
        self.in_use += 1
        self.peak = max(self.peak, self.in_use)
        self.last_used = now
        return Slot(self, now, terms)

    def _lanes(self, proxy_id: int | None) -> list[RequestLane]:
        """The lanes of a request; a delay that is long enough for a pair needs no second lane."""
        if proxy_id is None or (self.delay >= self.pair_delay and not self.per_proxy_only):
            return [self._lane]
        pair = self._pairs.setdefault(proxy_id, RequestLane())
        return [pair] if self.per_proxy_only or self.delay == 0 else [self._lane, pair]

    # --- waiting ---------------------------------------------------------------------------

    @contextmanager
    def queued(self, waiter: Waiter) -> Iterator[tuple[asyncio.Lock, asyncio.Lock]]:
        """Count a waiting request; yields the locks for its turn in its crawl, and of its crawl.

        One request of each crawl waits for the second lock, so that crawls with many and with few
        requests get the same number of slots.
        """
        key = object()
        self.waiting[key] = waiter
        try:
            yield self._turn(waiter, waiter.terms), self._turn(waiter, None)
        finally:
            del self.waiting[key]

    def _turn(self, waiter: Waiter, terms: CrawlTerms | None) -> asyncio.Lock:
        return self._turns.setdefault((waiter.proxy_id, waiter.background, terms), asyncio.Lock())

    @property
    def pages_waiting(self) -> int:
        """Waiting requests for pages; others wait in the background."""
        return sum(not waiter.background for waiter in self.waiting.values())

    def room(self, begun: int) -> int:
        """Further pages that can be sent within a second."""
        if self.blocked_until > local_time() + 1:
            return 0  # the database may not know it yet
        waiting = max(0, begun - self.in_use)
        if not self.fresh_until:
            slots = 1  # the delay is not known yet
        elif self.delay == 0 or self.per_proxy_only:
            slots = self.permits
        else:
            slots = ceil(1 / self.delay)
        return max(0, slots - waiting)

    @property
    def background_waits(self) -> bool:
        """Whether pages wait in any process: background requests are sent after them."""
        return self._others_wait or self.pages_waiting > 0

    def lacks_exchange(self, now: float, proxy_id: int | None) -> bool:
        """Whether the request waits only for an exchange with the database."""
        if now >= self.fresh_until:
            return True
        if self.in_use >= self.permits or self.throttled_until(proxy_id) > now:
            return False
        return self.ready_at(now, proxy_id) == inf

    def throttled_until(self, proxy_id: int | None) -> float:
        """The time until which nothing can be reserved."""
        pair = self.pair_cooldowns.get(proxy_id, 0.0) if proxy_id is not None else 0.0
        return max(self.blocked_until, self.cooldown_until, pair)

    def slots_wanted(self) -> Counter[int | None]:
        """Slots to reserve, by proxy: for waiting requests, and for as many as were sent lately."""
        if self.is_starved or self.in_use >= self.permits > 0:
            return Counter()  # without a connection a slot would only be lost
        background = not self.background_waits
        counts = Counter(
            each.proxy_id for each in self.waiting.values() if background or not each.background
        )
        for proxy_id in counts:
            busy = self._sent if len(counts) == 1 else 0
            left = min(lane.slots_left() for lane in self._lanes(proxy_id))
            counts[proxy_id] = max(0, max(counts[proxy_id], busy) - left)
        return +counts

    @property
    def slack(self) -> float:
        """Seconds that are reserved in addition, because they pass before they can be used.

        A window begins when the database reserves it, is known here one response later, and is used
        only where it is valid by both clocks. A shorter one would expire each time.
        After a freeze the last response was very late. The bound keeps a process that slept from
        blocking a host for hours.
        """
        lateness = min(LATENESS, LATENESS * self.delay) if self.delay else LATENESS
        return min(FRESH_FOR, max(0.0, self._clock.lag - lateness))

    def max_wait(self, now: float) -> float:
        """Seconds until the last deadline of the waiting requests; later slots are useless."""
        return max((each.deadline - now for each in self.waiting.values()), default=0.0)

    def want_exchange(self) -> None:
        """Ask for an exchange with the database soon."""
        self._on_wanted(self)

    def exchange_at(self) -> float:
        """When the next exchange is due; the last one is that without requests."""
        if self.in_use or self.waiting:
            pause = STARVED_RENEW_EVERY if self.is_starved else RENEW_EVERY
            return self.exchanged_at + pause
        return self.last_used + LINGER

    def is_idle(self, now: float) -> bool:
        """Whether the domain was unused for long enough to be closed here."""
        return not self.in_use and not self.waiting and now >= self.last_used + LINGER

    # --- reports ---------------------------------------------------------------------------

    def give_back(self, terms: CrawlTerms) -> None:
        """End a connection."""
        self.in_use -= 1
        self.crawls.disconnected(terms)
        self.last_used = local_time()
        self._on_released()
        if self.waiting:
            self.changed.set()

    def record(self, status: int | None, seconds: float) -> None:
        """Add a request to the history of the host."""
        if self._recorder is not None:
            delay = self.delay + self.slow_delay
            self._recorder.add(self.domain_id, status=status, seconds=seconds, delay=delay)

    def note_success(self) -> None:
        """Count a request that the host answered."""
        self.answers = replace(self.answers, good=self.answers.good + 1)

    def take_answers(self) -> Answers:
        """The counts since the last exchange, which begin again."""
        answers, self.answers = self.answers, Answers()
        return answers

    def note_error(self, seen: float, *, is_retry: bool) -> None:
        """Count a failure; several of them are reported at once, not a second later."""
        answers = self.answers
        if is_retry:
            self.answers = replace(answers, repeated_errors=answers.repeated_errors + 1)
            return
        self.answers = replace(answers, errors=answers.errors + 1, seen=max(seen, answers.seen))
        if self.slow_delay > 0 or self.answers.errors >= ERRORS_PER_REPORT:
            self.want_exchange()
        if self.delay == 0 and self.answers.errors >= max(ERRORS_PER_REPORT, self.answers.good):
            # without a delay, hundreds of requests would be sent before the database knows
            self.fresh_until = min(self.fresh_until, local_time())

    def note_slow_down(self, retry_after: float | None, seen: float) -> None:
        """Stop this process at once; the next exchange informs the others."""
        if retry_after is not None and retry_after > 0:
            until = local_time() + min(retry_after, LONGEST_BLOCK)
            self.blocked_until = max(self.blocked_until, until)
            self.unwritten_block = max(self.unwritten_block, until)
        elif seen >= self.slow_delay:
            self.unwritten_slow = seen
            self.fresh_until = min(self.fresh_until, local_time())
        self.want_exchange()
        self.changed.set()

    def written(self, wanted: SlotRequest, sent_at: float) -> None:
        """Forget reports that the database has; slow-downs noted since then are still unwritten."""
        self.exchanged_at = sent_at
        self.error = None
        self.unreturned = None
        if self.unwritten_block <= sent_at + wanted.block_for:
            self.unwritten_block = 0.0
        if self.unwritten_slow == wanted.refused_under:
            self.unwritten_slow = None

    def not_written(self, wanted: SlotRequest) -> None:
        """Keep the reports of an exchange that failed for the next one."""
        self.exchanged_at = local_time()
        self.answers = self.answers.plus(wanted.answers)
        self.unreturned = wanted.returned

    def apply_robots(self, host: str, delay: float) -> None:
        """Set the Crawl-delay of a host; the longest of all hosts of the row applies."""
        self._robots_delays[host] = delay
        longest = max(self._robots_delays.values())
        if longest > self.robots_delay:
            self.fresh_until = 0.0  # the reserved slots are too close
        self.robots_delay = longest

    # --- the exchange ----------------------------------------------------------------------

    def stop_sending(self) -> None:
        """Send nothing until the next exchange."""
        self.fresh_until = 0.0
        self.permits = 0

    def take_unused(self) -> ReturnedSlots | None:
        """Return reserved slots that were missed, or are due while no request waits."""
        window, now = self._last_window, local_time()
        if window is None or window.due > now:
            return None
        return None if self.waiting and not window.has_expired(now) else self.take_all()

    def take_all(self) -> ReturnedSlots | None:
        """Return all reserved slots; only the last window can be returned."""
        window, self._last_window = self._last_window, None
        self._lane.clear()
        if window is None or window.is_over:
            return None
        return ReturnedSlots(window.due + window.offset, self._reserved_until)

    def hold(self) -> int:
        """The connections that may be open until the next response, which may never arrive."""
        most = min(self.peak, max(self.in_use, self.permits))
        self.permits = min(self.permits, most)
        return most

    def learn(
        self,
        wanted: SlotRequest,
        given: Reservation,
        pairs: Sequence[PairReservation],
        sent_at: float,
    ) -> None:
        """Apply the answer of the database to what was asked at `sent_at`."""
        self.written(wanted, sent_at)
        self.is_active, self.per_proxy_only = given.is_active, given.per_proxy_only
        self.delay, self.slow_delay = given.delay, given.slow_delay
        self.pair_delay = given.pair_delay
        self.crawls.limit = given.limit if given.has_own_limit else None
        self.permits, self.peak, self.is_starved = given.permits, self.in_use, given.permits == 0
        self._others_wait = given.others_waiting > 0
        self._learn_block(given)
        self._learn_slots(wanted, given)
        self._learn_pairs(wanted, pairs)
        # a slow-down or delay that the database does not know yet applies here
        if self.unwritten_slow is None and self.robots_delay <= wanted.robots_delay:
            self.fresh_until = min(
                sent_at + FRESH_FOR, self._clock.earliest(given.expires_at) - EXPIRY_MARGIN
            )
        self.changed.set()

    def _learn_block(self, given: Reservation) -> None:
        until = 0.0 if given.blocked_until is None else self._clock.latest(given.blocked_until)
        self.blocked_until = max(until, self.unwritten_block)
        for lane in (self._lane, *self._pairs.values()):
            lane.drop(before=self.blocked_until)

    def _learn_slots(self, wanted: SlotRequest, given: Reservation) -> None:
        asked = wanted.direct + (0 if given.per_proxy_only else sum(wanted.proxied.values()))
        self._sent = 0
        self.cooldown_until = 0.0
        self._lane.drop(faster_than=given.delay)
        if given.slots:
            window = SlotWindow.reserved(self._clock, given, wanted.slack)
            self._lane.add(window)
            self._last_window, self._reserved_until = window, given.reserved_until
        elif asked and given.delay > 0:
            self.cooldown_until = self._clock.latest(given.starts_at)

    def _learn_pairs(self, wanted: SlotRequest, pairs: Sequence[PairReservation]) -> None:
        self.unknown_proxies = set(wanted.proxied) - {pair.proxy_id for pair in pairs}
        for pair in pairs:
            lane = self._pairs.setdefault(pair.proxy_id, RequestLane())
            lane.drop(faster_than=pair.delay)
            self.pair_cooldowns.pop(pair.proxy_id, None)
            if not pair.slots:
                self.pair_cooldowns[pair.proxy_id] = self._clock.latest(pair.starts_at)
            elif lane in self._lanes(pair.proxy_id):
                lane.add(SlotWindow.reserved(self._clock, pair, wanted.slack))
