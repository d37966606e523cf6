"""Check the promises against the database, the site and the webhook receiver."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise

from chaos.control import Control
from chaos.recovery import refetched
from chaos.requests import Budget, excess, most_at_once
from chaos.site import Host, Site
from chaos.store import checks
from chaos.store.checks import JobRow, LedgerRow
from chaos.violation import Promise, Violations
from forager.archive.reader import read_response
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.crawl.engine import BATCH_SIZE
from forager.db.database import Connection, Database
from forager.errors import NotFound

SHOWN = 5
# A permitted request may be delayed, by a frozen process or a slow connection, and then arrive
# together with later ones: at most as many as may be in flight at once.
DELAYED = 1.0


class Promises:
    """Checks once per second while the run lasts, and again at the end."""

    def __init__(
        self, database: Database, site: Site, budget: Budget, archive: Storage, control: Control
    ) -> None:
        self.violations = Violations()
        self.checks = 0
        self._database = database
        self._site = site
        self._budget = budget
        self._archive = archive
        self._control = control
        self._seen_write = 0

    # --- at any moment ---------------------------------------------------------------------------

    async def check(self) -> None:
        """Check the invariants that hold at every moment, in one snapshot."""
        async with self._database.transaction() as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            unbalanced = await checks.select_unbalanced(connection)
            publications = await checks.select_bad_publications(connection)
            old_writes = await checks.select_old_writes(connection, self._seen_write)
            twice = await checks.select_broken_attempts(connection)
        self.violations.add(Promise.LEDGER, *(_unbalanced(row) for row in unbalanced))
        self.violations.add(Promise.ONE_GENERATION, *publications)
        self.violations.add(Promise.ONE_WRITER, *(message for _, message in old_writes))
        self.violations.add(Promise.COUNTED_ONCE, *twice)
        for host in self._site.hosts:
            self._check_budget(host)
        self._seen_write = max([self._seen_write, *(number for number, _ in old_writes)])
        self.checks += 1

    # --- at the end ------------------------------------------------------------------------------

    async def check_at_the_end(self, rounds: Counter[str], begun: datetime) -> None:
        """Compare the results of all work with the expected outcomes of the site."""
        await self.check()
        async with self._database.connection() as connection:
            jobs = await checks.select_jobs(connection)
            await self._check_jobs(connection, jobs)
            self._check_orders(jobs, rounds)
            self._check_refetched(jobs)
            await self._check_products(connection)
            await self._check_messages(connection)
            broken = await broken_refs(self._archive, await checks.select_archive_refs(connection))
            wrong_times = await checks.count_misdated(connection, begun)
            unknown = await checks.count_nameless_writes(connection)
            retries = await checks.select_spent_retries(connection)
        self.violations.add(Promise.NOTHING_LOST, *broken[:SHOWN])
        self.violations.add(Promise.RETRIES, *retries)
        if unknown:
            self.violations.add(Promise.ONE_WRITER, f"{unknown} commits by unknown runners")
        if wrong_times:
            self.violations.add(Promise.DATABASE_TIME, f"{wrong_times} rows have a wrong timestamp")

    async def _check_jobs(self, connection: Connection, jobs: list[JobRow]) -> None:
        hosts = {host.name: host for host in self._site.docs}
        for job in jobs:
            if job.status == "completed":
                outcomes = await checks.select_outcomes(connection, job.id)
                self._check_outcomes(hosts[job.source_id], job, outcomes)
            elif job.status != "cancelled":
                message = f"{job.agent} did not finish: {job.status} {job.error or ''}"
                self.violations.add(Promise.NOTHING_LOST, message)
        for name in hosts:
            if not any(job.status == "completed" and job.source_id == name for job in jobs):
                self.violations.add(Promise.NOTHING_LOST, f"{name} was never crawled completely")

    def _check_outcomes(self, host: Host, job: JobRow, outcomes: list[tuple[str, str]]) -> None:
        truth = {host.url + path.removeprefix("/"): p.outcome for path, p in host.pages.items()}
        found = dict(outcomes)
        wrong = {
            url: (expected, found.get(url, "nothing"))
            for url, expected in truth.items()
            if found.get(url) != expected
        }
        for url, (expected, got) in list(wrong.items())[:SHOWN]:
            message = (
                f"{job.agent}: {url} should be {expected} but is {got} ({len(wrong)} in total)"
            )
            self.violations.add(Promise.NOTHING_LOST, message)
        for url in sorted(found.keys() - truth.keys())[:SHOWN]:
            self.violations.add(Promise.COUNTED_ONCE, f"{job.agent}: {url} is not on the site")

    def _check_orders(self, jobs: list[JobRow], rounds: Counter[str]) -> None:
        """Each request creates one job, no matter how often its answer was lost."""
        made = Counter(job.source_id for job in jobs)
        again = [agent for agent, times in Counter(job.agent for job in jobs).items() if times > 1]
        for agent in again:
            self.violations.add(Promise.COUNTED_ONCE, f"{agent} was created twice")
        for name, count in rounds.items():
            if made[name] < count:
                message = f"{count} crawls of {name} were requested, and {made[name]} exist"
                self.violations.add(Promise.NOTHING_LOST, message)

    def _check_refetched(self, jobs: list[JobRow]) -> None:
        """An interrupted engine may lose the pages that it fetched and did not commit."""
        again, starts = refetched(self._site), self._control.engine_starts()
        in_flight = self._budget.concurrency + BATCH_SIZE
        for job in jobs:
            interruptions = max(0, starts[job.id] - 1)
            if again[job.agent] > interruptions * in_flight:
                message = (
                    f"{job.agent}: {again[job.agent]} pages were fetched again after"
                    f" {interruptions} interruptions with at most {in_flight} pages in flight"
                )
                self.violations.add(Promise.FETCHED_ONCE, message)

    async def _check_products(self, connection: Connection) -> None:
        histories: dict[str, list[int]] = {name: [] for name in self._site.shop.versions}
        for url, price in await checks.select_prices(connection):
            name = url.rpartition("/")[2]
            histories[name].append(int((price - self._site.shop.price(name, 0)) * 100))
        for name, seen in histories.items():
            self._check_product(name, seen)

    def _check_product(self, name: str, seen: list[int]) -> None:
        shop = self._site.shop
        if seen[-1:] != [shop.versions[name]]:
            message = (
                f"{name} has price {shop.versions[name]}, but its history ends with {seen[-3:]}"
            )
            self.violations.add(Promise.NOTHING_LOST, message)
        if any(after <= before for before, after in pairwise(seen)):
            message = f"the prices of {name} only rise, but its history falls: {seen}"
            self.violations.add(Promise.ONE_WRITER, message)
        if not set(seen) <= shop.served[name]:
            self.violations.add(Promise.COUNTED_ONCE, f"{name} has prices that the shop never had")

    async def _check_messages(self, connection: Connection) -> None:
        receiver = self._site.receiver
        lost = await checks.select_events(connection) - receiver.taken
        if lost:
            message = f"{len(lost)} events were never delivered, for example {sorted(lost)[:SHOWN]}"
            self.violations.add(Promise.MESSAGES, message)
        self.violations.add(Promise.MESSAGES, *receiver.forged[:SHOWN])

    def _check_budget(self, host: Host) -> None:
        requests, budget = list(host.log), self._budget
        if excess(requests, budget) > budget.concurrency * DELAYED:
            self.violations.add(Promise.BUDGET, f"{host.name} got requests above its rate")
        if most_at_once(requests) > budget.concurrency:
            self.violations.add(Promise.BUDGET, f"{host.name} got too many concurrent requests")


async def broken_refs(archive: Storage, refs: list[ArchiveRef]) -> list[str]:
    """Find rows that refer to missing or damaged archive records."""
    broken = []
    for ref in refs:
        try:
            await read_response(archive, ref)
        except (ArchiveError, NotFound) as error:
            broken.append(f"rows refer to {ref}: {error}")
    return broken


def _unbalanced(row: LedgerRow) -> str:
    both = f", {row.twice} both pending and settled" if row.twice else ""
    return f"{row.status} job {row.job_id}: ledger {row.ledger}, rows {row.rows}{both}"
