"""A simulated market: hours pass in rounds, shops fall ill on a schedule, workers are killed.

An hour passes by moving the times in the tables back. Everything else is real: worker processes,
the scheduler, webhook deliveries and the database. A round ends when every shop that answers was
visited, whatever the others do.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle, groupby, pairwise
from pathlib import Path

from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.parsers import registry
from forager.parsers.rollouts import roll_out
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert
from forager.secrets import Vault
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.rereading import reread_archive
from forager.tasks.scheduler import Scheduler
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import NewWebhook, Webhooks
from market.shops import Fault, Shop, Shops, SlowProxy, Template, Wrong
from servers.proxies import HttpProxy
from support.waiting import eventually
from tasks.working import Process, Tasks
from webhooks.receiver import Got, Receiver

# by shop: what it has, and in which hours of a day
SCHEDULE = {
    0: (Fault.BUSY, range(2, 4)),
    1: (Fault.OUTAGE, range(2, 6)),
    2: (Fault.CAPTCHA, range(2, 4)),
    3: (Fault.GONE, range(2, 6)),
    4: (Fault.HANGS, range(2, 5)),
    7: (Fault.SAME_PAGE, range(2, 4)),
    8: (Fault.EMPTY, range(2, 4)),
}
# by shop: what its pages show instead of their products, one after the other, in which hours
WRONG_PAGES = {11: range(2, 6)}
# by shop: how it shows its prices, and in which hours they are missing or its parser fails
TEMPLATES = {
    12: (Template.DEAL, range(0)),
    13: (Template.CROWNS, range(0)),
    14: (Template.EMPTY, range(3, 4)),
    15: (Template.RAISING, range(2, 5)),
    16: (Template.HANGING, range(2, 4)),
    17: (Template.FLIPPING, range(0)),
    18: (Template.UNTRIED, range(0)),
    19: (Template.LATE, range(0)),
}
# the hour in which a parser is rolled out that corrects what was read before
LATE_ROLLOUT = 4
PARSERS = str(Path(__file__).parent.parent / "parsers" / "faulty_parsers.py")
OUTAGE, LATE = 1, 19
# these are visited through the proxies
PROXIED = (5, 6)
DAY = 8
QUIET_HOURS = 2
LIMIT = 120.0
DROP = Decimal(5)
COMPRESSED = {
    "recrawl_every": 3600.0, "revisit_changed": False, "revisit_withheld": 0,
    "images": False, "browser": "none",
    "scheduler_interval": 0.1, "poll_interval": 0.1, "heartbeat_interval": 1.0,
    "task_retries": 1, "task_retry_delay": 0.05, "task_retry_delay_max": 0.1,
    "parser_bypass_time": 1.0, "gone_visits": 3, "gone_after": 5 * 3600.0,
    "dead_letter_visits": 5, "dead_letter_after": 3 * 86400.0,
}  # fmt: skip


@dataclass(slots=True)
class Market:
    """Shops, tasks for their products, a receiver that fails 15 % of the time, and a worker."""

    tasks: Tasks
    receiver: Receiver
    shops: Shops
    chance: random.Random
    worker: Process | None = None
    hours: int = 0
    kills: int = 0
    # seconds until all shops that answer were visited, by hour
    rounds: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[Shop]:
        return self.shops.shops

    async def pass_an_hour(self, *, quiet: bool = False) -> None:
        """Change offers, let shops fall ill, and wait until those that answer were visited."""
        hour = self.hours % DAY
        self.hours += 1
        ill = {n: f for n, (f, when) in SCHEDULE.items() if hour in when and not quiet}
        self.shops.fall_ill(ill)
        if hour == LATE_ROLLOUT and not quiet:
            await roll_out(self.tasks.database, self.tasks.settings, "late", "1")
        for number, when in WRONG_PAGES.items():
            shown = hour in when and not quiet
            pages = dict(zip(self.all[number].products, cycle(Wrong), strict=False))
            self.all[number].wrong = pages if shown else {}
        for number, (_, when) in TEMPLATES.items():
            self.all[number].is_incomplete = hour in when and not quiet
        for shop in self.all:
            shop.hour = self.hours
            # what such a shop changes meanwhile cannot be read
            if not shop.is_incomplete:
                shop.change_offers(self.chance)
        await self._move_times_back()
        started = time.monotonic()
        try:
            await eventually(self.visited, LIMIT)
        except TimeoutError:
            raise AssertionError(f"hour {hour}: {await self._late()}") from None
        self.rounds.append(time.monotonic() - started)

    async def _move_times_back(self) -> None:
        """Tasks that a worker holds are left alone: they are visited in this hour anyway."""
        await self.tasks.sql(
            """
            WITH waiting AS (
                SELECT id FROM crawl_tasks WHERE status IN ('pending', 'completed')
                   FOR UPDATE SKIP LOCKED
            )
            UPDATE crawl_tasks t
               SET scheduled_at = scheduled_at - interval '1 hour',
                   next_crawl_at = next_crawl_at - interval '1 hour',
                   completed_at = completed_at - interval '1 hour',
                   failing_since = failing_since - interval '1 hour'
              FROM waiting WHERE t.id = waiting.id
            """
        )
        await self.tasks.sql(
            "UPDATE task_attempts SET finished_at = finished_at - interval '1 hour'"
        )
        await self.tasks.sql(
            """
            WITH locked AS (SELECT id FROM domains ORDER BY id FOR UPDATE)
            UPDATE domains d SET slowed_at = slowed_at - interval '1 hour',
                                 blocked_until = blocked_until - interval '1 hour'
              FROM locked WHERE d.id = locked.id
            """
        )
        await self.hurry_deliveries()

    async def hurry_deliveries(self) -> None:
        """The backoff of messages that were refused is over."""
        await self.tasks.sql("UPDATE webhooks SET rests_until = NULL")
        await self.tasks.sql(
            """
            WITH waiting AS (
                SELECT id FROM outbox
                 WHERE sent_at IS NULL AND claimed_by IS NULL AND due_at > now() AND attempts > 0
                   FOR UPDATE SKIP LOCKED
            )
            UPDATE outbox o SET due_at = now() FROM waiting WHERE o.id = waiting.id
            """
        )

    async def visited(self) -> bool:
        """Whether the products of all shops that answer were visited within the hour."""
        return not await self._late()

    async def _late(self) -> list[object]:
        """A shop that answers with wrong pages is visited too, until its alarm pauses that."""
        healthy = [shop.host for shop in self.all if shop.fault is None]
        wrong = (Fault.GONE, Fault.SAME_PAGE)
        alarming = [shop.host for shop in self.all if shop.fault in wrong]
        return await self.tasks.sql(
            """
            SELECT t.url, t.status, t.scheduled_at - now(), t.next_crawl_at - now(),
                   t.started_at - now(), t.error_message, d.blocked_until - now(), d.slow_delay
              FROM crawl_tasks t JOIN domains d ON d.id = t.domain_id
              LEFT JOIN domain_health h ON h.domain_id = d.id
             WHERE (d.domain_name = ANY(%s) OR d.domain_name = ANY(%s) AND h.alarm IS NULL)
               AND NOT (t.status IN ('completed', 'pending')
                        AND coalesce(t.next_crawl_at, t.scheduled_at) > now() + interval '10 min'
                        AND t.started_at > now() - interval '1 hour')
            """,
            healthy,
            alarming,
        )

    async def kill_worker(self) -> None:
        """Kill the worker in the middle of its work, and start another one."""
        assert self.worker is not None
        await self.worker.kill()
        self.kills += 1
        await self.tasks.silence()
        await self.tasks.recover()
        self.worker = Process(self.tasks)

    async def settle(self) -> None:
        """Hours without faults, until all products were visited and all events delivered."""
        for _ in range(QUIET_HOURS):
            await self.pass_an_hour(quiet=True)
        await eventually(self._delivered, LIMIT)

    async def correct_histories(self) -> None:
        """Rewrite what was read before a parser was rolled out, without an alert."""
        preview = await reread_archive(self.tasks.database, self.tasks.settings, "late")
        done = await reread_archive(self.tasks.database, self.tasks.settings, "late", write=True)
        assert done.corrected == preview.corrected > 0
        assert done.repriced == 0

    async def _delivered(self) -> bool:
        await self.hurry_deliveries()
        rows = await self.tasks.sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL")
        return bool(rows[0][0] == 0)


@asynccontextmanager
async def open_market(
    tasks: Tasks, *, shops: int = 20, products: int = 3, seed: int = 1
) -> AsyncIterator[Market]:
    tasks.settings = Settings(**(tasks.settings.model_dump() | COMPRESSED))
    chance = random.Random(seed)
    tasks.settings = tasks.settings.model_copy(update={"parser_modules": (PARSERS,)})
    served = Shops([Shop(n, products) for n in range(shops)], [HttpProxy(), SlowProxy()])
    for number, (template, _) in TEMPLATES.items():
        served.shops[number].template = template
    before = registry.loaded_modules()
    registry.load_parsers([PARSERS])
    async with AsyncExitStack() as stack:
        stack.callback(setattr, registry, "_modules", before)
        stack.enter_context(served.open())
        receiver = await stack.enter_async_context(Receiver())
        receiver.refuses = lambda _: chance.random() < 0.15
        market = Market(tasks, receiver, served, chance)
        await _prepare(market)
        services = [
            Scheduler(tasks.database, tasks.settings).service(),
            Deliverer(tasks.database, tasks.settings).service(),
        ]
        await stack.enter_async_context(running(services))
        market.worker = Process(tasks)
        try:
            yield market
        finally:
            if not market.worker.worker.exited.is_set():
                await market.worker.kill()


async def _prepare(market: Market) -> None:
    tasks = market.tasks
    vault = Vault(tasks.settings)
    hook = NewWebhook(market.receiver.url, allow_private=True)
    await Webhooks(tasks.database, vault).add(hook)
    for proxy in market.shops.proxies:
        spec = ProxySpec.parse(f"http://127.0.0.1:{proxy.port}")
        await Proxies(tasks.database, vault).add(spec, allow_private=True)
    await add_alert(tasks.database, NewAlert(AlertKind.PRICE_DROP, percent=DROP))
    await add_alert(tasks.database, NewAlert(AlertKind.BACK_IN_STOCK))
    for shop in market.all:
        urls = [shop.url(name) for name in shop.products]
        await tasks.add(*urls, status="pending")
    for name in ("raising", "hanging"):
        await roll_out(tasks.database, tasks.settings, name, "1")
    await tasks.sql(
        "UPDATE domains SET use_proxies = true WHERE domain_name = ANY(%s)",
        [market.all[n].host for n in PROXIED],
    )


# --- judging -------------------------------------------------------------------------------------

Seen = tuple[str, str]


# templates whose price cannot be read for some rounds
WITHOUT_PRICE = {Template.EMPTY, Template.RAISING, Template.HANGING}


async def histories(market: Market) -> dict[str, list[Seen]]:
    rows = await market.tasks.sql(
        """
        SELECT p.url, h.price, h.availability
          FROM price_history h JOIN products p ON p.id = h.product_id
         ORDER BY h.recorded_at, h.id
        """
    )
    found: dict[str, list[Seen]] = {}
    for url, price, availability in rows:
        found.setdefault(url, []).append((f"{price:.2f}", availability))
    return found


async def check_market(market: Market) -> Counter[str]:
    """Every promise at the end; the number of events by kind."""
    expected: Counter[str] = Counter()
    await _check_events_of_late_rollout(market)
    for url, history in (await histories(market)).items():
        if not url.startswith(f"http://{market.all[LATE].host}/"):
            _count_changes(history, expected)
    await market.correct_histories()
    known = await histories(market)
    for shop in market.all:
        for name in shop.products:
            _check_history(shop, name, known.pop(shop.url(name)))
    assert known == {}
    rows = await market.tasks.sql(
        """
        SELECT e.id, e.kind, d.domain_name FROM catalog_events e
          LEFT JOIN domains d ON d.id = e.domain_id
        """
    )
    events = Counter(kind for _, kind, domain in rows if domain != market.all[LATE].host)
    # pages that showed something else were withheld, and nothing of them is in a history
    del events["product.replaced"]
    assert {kind: n for kind, n in events.items() if kind.startswith("product.")} == expected
    _check_deliveries(market, {id_ for id_, *_ in rows})
    await _check_requests(market)
    return events


async def _check_events_of_late_rollout(market: Market) -> None:
    """The rollout of a parser is another reading, and no price change that triggers an alert."""
    rows = await market.tasks.sql(
        """
        SELECT e.kind, (e.payload ->> 'new')::numeric / (e.payload ->> 'old')::numeric
          FROM catalog_events e JOIN domains d ON d.id = e.domain_id
         WHERE d.domain_name = %s AND e.payload ? 'old' AND e.payload ->> 'percent' IS NOT NULL
           AND e.kind <> 'product.alert'
        """,
        market.all[LATE].host,
    )
    assert sum(kind == "product.reread" for kind, _ in rows) == len(market.all[LATE].products)


async def _check_requests(market: Market) -> None:
    """A client that repeats requests by itself sends more of them than there are attempts."""
    shop = market.all[OUTAGE]
    [(attempts,)] = await market.tasks.sql(
        """
        SELECT count(*) FROM task_attempts a JOIN crawl_tasks t ON t.id = a.task_id
          JOIN domains d ON d.id = t.domain_id
         WHERE d.domain_name = %s AND a.stage = 'download'
        """,
        shop.host,
    )
    lost = market.kills * len(shop.products)
    assert shop.pages_requested <= attempts + lost, "requests without an attempt"
    waiting = await market.tasks.sql("SELECT count(*) FROM crawl_tasks WHERE needs_browser")
    assert waiting == [(0,)], "pages wait for a browser after empty answers"


def _check_history(shop: Shop, name: str, history: list[Seen]) -> None:
    """No offer that the shop did not show, none twice in a row, and at last the current one."""
    url = shop.url(name)
    assert all(a != b for a, b in pairwise(history)), url
    withdrawn = [(price, "discontinued") for price, _ in history]
    if name in shop.gone:
        assert history[-1] in withdrawn, f"{url} is gone: {history}"
        history = history[:-1]
    else:
        assert history[-1] == shop.products[name].shown, f"{url}: {history}"
    served = shop.served[name]
    if shop.template not in WITHOUT_PRICE:
        missed = [offer for offer in shop.lasting[name] if offer not in history]
        assert not missed, f"{url}: {missed} lasted two visits and is not in {history}"
    if shop.template in WITHOUT_PRICE:  # beside a price that stays as it was, the stock may change
        shown = all(
            _is_in_order(*columns)
            for columns in zip(zip(*history, strict=True), zip(*served, strict=True), strict=True)
        )
    else:
        shown = _is_in_order(history, served)
    assert shown, f"{url}: {history} of {served}"


def _is_in_order(found: Sequence[object], served: Sequence[object]) -> bool:
    """Whether all that was found was served, in this order; repeated values count once."""
    rest = iter(served)
    return all(value in rest for value, _ in groupby(found))


def _count_changes(history: list[Seen], expected: Counter[str]) -> None:
    expected["product.added"] += 1
    for (old, before), (new, now) in pairwise(history):
        if old != new:
            expected["product.price_changed"] += 1
        if before != now:
            expected["product.availability_changed"] += 1
        if Decimal(new) <= Decimal(old) * (1 - DROP / 100):
            expected["product.alert"] += 1
        if before != "in_stock" and now == "in_stock":
            expected["product.alert"] += 1


def _check_deliveries(market: Market, events: set[int]) -> None:
    """Every event was taken exactly once, however often it was refused."""
    attempts = Counter(got.json["id"] for got in market.receiver.got)
    assert set(attempts) == events
    last = {got.json["id"]: _attempt(got) for got in market.receiver.got}
    assert last == dict(attempts), "a message was sent again after it was taken"


def _attempt(got: Got) -> int:
    return int(got.headers["forager-attempt"])
