"""Random moves by several workers and people against the real queue, beside a model of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from modelled_job import Modelled

from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import LeaseLost, NotAllowed
from forager.jobs.context import JobContext
from forager.jobs.job import Lease, NewJob
from forager.jobs.lifecycle import LOSSES_LIMIT, MOVE_BACK, MOVE_OUT, MOVES, Status
from forager.jobs.queue import Queue
from forager.jobs.watchdog import Watchdog
from forager.settings import Settings

S = Status
ACTIVE = {S.PENDING, S.PROCESSING, S.PAUSED}
WORKERS = [new_id() for _ in range(3)]

PICK = st.integers(0, 30)

Answer = TypeVar("Answer")


class QueueMachine(RuleBasedStateMachine):
    def __init__(self, runner: asyncio.Runner, database: Database, settings: Settings) -> None:
        super().__init__()
        self.runner = runner
        self.database = database
        self.settings = settings
        self.queue = Queue(database, settings)
        self.watchdog = Watchdog(database, settings)
        self.model: dict[UUID, Modelled] = {}
        self.suspects: dict[UUID, int] = {}
        self.leases: list[Lease] = []

    def do(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(coroutine)

    def sql(self, statement: Any, *values: object) -> list[Any]:
        async def execute() -> list[Any]:
            async with self.database.connection() as connection:
                cursor = await connection.execute(statement, values)
                return await cursor.fetchall() if cursor.description else []

        return self.do(execute())

    # Jobs and leases are picked by number, not drawn from bundles: how many leases a race gives is
    # the server's choice, and must not change what is generated next.

    def job(self, pick: int) -> tuple[UUID, Modelled]:
        return list(self.model.items())[-1 - pick % len(self.model)]

    def lease(self, pick: int) -> Lease:
        return self.leases[-1 - pick % len(self.leases)]

    @initialize()
    def begin(self) -> None:
        self.sql("DELETE FROM crawl_jobs")
        for source in (None, "a", None, "b"):
            self.enqueue(source, 1)
        self.claim(WORKERS[0], 2)

    # --- people ----------------------------------------------------------------------------

    @rule(source=st.sampled_from([None, "a", "b"]), retries=st.integers(0, 2))
    def enqueue(self, source: str | None, retries: int) -> None:
        busy = [
            job_id
            for job_id, job in self.model.items()
            if source is not None and job.source == source and job.status in ACTIVE
        ]
        new = NewJob(kind="selftest", max_retries=retries, source_id=source)
        answer = self.do(self.queue.enqueue(new))
        assert answer.created == (not busy)
        if answer.created:
            self.model[answer.job.id] = Modelled(retries, source)
        else:
            assert [answer.job.id] == busy

    @rule(pick=PICK)
    def pause(self, pick: int) -> None:
        job_id, job = self.job(pick)
        legal = job.status in (S.PENDING, S.PROCESSING)
        if self.allowed(self.queue.pause(job_id), legal):
            job.move(S.PAUSED, revokes=False, keeps_worker=True)

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        job_id, job = self.job(pick)
        if self.allowed(self.queue.resume(job_id), job.status is S.PAUSED):
            target = S.PENDING if job.worker is None else S.PROCESSING
            job.move(target, revokes=False, keeps_worker=True)

    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        job_id, job = self.job(pick)
        if self.allowed(self.queue.cancel(job_id), job.status in ACTIVE):
            job.move(S.CANCELLED)

    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        job_id, job = self.job(pick)
        rivals = [
            other
            for other in self.model.values()
            if job.source is not None and other.source == job.source and other.status in ACTIVE
        ]
        if self.allowed(self.queue.retry(job_id), job.status is S.FAILED and not rivals):
            job.move(S.PENDING)
            job.retries = job.losses = 0

    # --- workers ---------------------------------------------------------------------------

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 3))
    def claim(self, worker: UUID, limit: int) -> None:
        self.claim_by([worker], limit)

    @rule(limit=st.integers(1, 2))
    def claim_all_at_once(self, limit: int) -> None:
        self.claim_by(WORKERS, limit)

    def claim_by(self, workers: list[UUID], limit: int) -> None:
        self.sql("UPDATE crawl_jobs SET run_after = now() WHERE status = 'pending'")

        async def together() -> list[Any]:
            return await asyncio.gather(
                *(self.queue.claim(w, kinds=["selftest"], limit=limit) for w in workers)
            )

        due = [job_id for job_id, job in self.model.items() if job.status is S.PENDING]
        leases = []
        for worker, claimed in zip(workers, self.do(together()), strict=True):
            assert len(claimed) <= limit
            for row in claimed:
                job = self.model[row.id]
                assert job.status is S.PENDING
                job.move(S.PROCESSING)
                job.worker = worker
                job.beat, job.stale = job.beat + 1, False
                leases.append(Lease(row.id, row.lease, worker))
        if len(workers) == 1:
            assert len(leases) == min(limit, len(due))
        self.leases += leases

    @rule(worker=st.sampled_from(WORKERS), picks=st.lists(PICK, max_size=4))
    def heartbeat(self, worker: UUID, picks: list[int]) -> None:
        leased = [self.lease(pick) for pick in picks]
        mine = {lease.job_id: lease for lease in leased if lease.worker_id == worker}
        current = {i for i, lease in mine.items() if self.model[i].leased_under(lease)}
        assert self.do(self.queue.heartbeat(list(mine.values()))) == current
        for job_id in current:
            job = self.model[job_id]
            job.beat, job.stale = job.beat + 1, False

    @rule(pick=PICK)
    def write(self, pick: int) -> None:
        """A runner's commit, perhaps by a zombie."""
        lease = self.lease(pick)
        job = self.model[lease.job_id]

        async def commit() -> None:
            row = await self.queue.get(lease.job_id)
            context = JobContext(row, lease, self.database, self.settings)
            async with context.commit() as connection:
                done = len(job.writes) + 1
                await context.save(connection, processed=done, pending=0, data={})

        if self.fenced(commit(), job.leased_under(lease)):
            job.writes.append(lease.number)

    @rule(pick=PICK)
    def complete(self, pick: int) -> None:
        lease = self.lease(pick)
        job = self.model[lease.job_id]

        async def finish() -> None:
            async with self.database.transaction() as connection:
                await self.queue.complete(connection, lease)

        if self.fenced(finish(), job.leased_under(lease) and job.status is S.PROCESSING):
            job.move(S.COMPLETED, revokes=False)

    @rule(pick=PICK, permanent=st.booleans())
    def fail(self, pick: int, permanent: bool) -> None:
        lease = self.lease(pick)
        job = self.model[lease.job_id]
        answer = self.do(self.queue.fail(lease, "boom", permanent=permanent))
        assert (answer is not None) == job.leased_under(lease)
        if answer is not None:
            job.end_failed(permanent=permanent)

    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        lease = self.lease(pick)
        job = self.model[lease.job_id]
        answer = self.do(self.queue.release(lease, reason="test"))
        assert (answer is not None) == job.leased_under(lease)
        if answer is not None:
            job.move(S.PAUSED if job.status is S.PAUSED else S.PENDING)

    @rule(picks=st.lists(PICK, min_size=1, max_size=4), losses=st.integers(0, 2))
    def lose_a_runner(self, picks: list[int], losses: int) -> None:
        """The runner of several jobs is lost; some may have lost their leases before."""
        leases = list({lease.job_id: lease for lease in map(self.lease, picks)}.values())
        leased = [lease for lease in leases if self.model[lease.job_id].leased_under(lease)]
        answer = self.do(
            self.queue.requeue(leases, losses=[losses] * len(leases), reason="it died")
        )
        assert {job.id for job in answer} == {lease.job_id for lease in leased}
        for lease in leased:
            self.model[lease.job_id].lose_runner(losses)

    @rule(pick=PICK, own_runner=st.booleans())
    def change_runner(self, pick: int, own_runner: bool) -> None:
        lease = self.lease(pick)
        job = self.model[lease.job_id]
        move = MOVE_OUT if own_runner else MOVE_BACK
        answer = self.do(self.queue.release(lease, reason="test", move=move))
        assert (answer is not None) == job.leased_under(lease)
        if answer is None:
            return
        if job.status is S.PROCESSING:
            job.own_runner = own_runner
            job.losses = job.losses if own_runner else LOSSES_LIMIT - 1
        job.move(S.PAUSED if job.status is S.PAUSED else S.PENDING)

    @rule(pick=PICK)
    def park(self, pick: int) -> None:
        lease = self.lease(pick)
        job = self.model[lease.job_id]
        answer = self.do(self.queue.park(lease))
        assert (answer is not None) == (job.leased_under(lease) and job.status is S.PAUSED)
        if answer is not None:
            job.move(S.PAUSED)

    @rule(pick=PICK)
    def end_in_three_ways_at_once(self, pick: int) -> None:
        """Whatever order the server chooses, one of them ends the run and the others nothing."""
        lease = self.lease(pick)
        job = self.model[lease.job_id]

        async def together() -> tuple[object, ...]:
            return await asyncio.gather(
                self.queue.fail(lease, "boom"),
                self.queue.release(lease, reason="test"),
                self.queue.fail(lease, "boom", permanent=True),
            )

        answers = self.do(together())
        assert sum(answer is not None for answer in answers) == job.leased_under(lease)
        for answer, end in zip(answers, ("fail", "release", "give up"), strict=True):
            if answer is None:
                continue
            if end == "release":
                job.move(S.PAUSED if job.status is S.PAUSED else S.PENDING)
            else:
                job.end_failed(permanent=end == "give up")

    # --- time ------------------------------------------------------------------------------

    @rule(pick=PICK)
    def grow_old(self, pick: int) -> None:
        job_id, job = self.job(pick)
        self.sql(
            "UPDATE crawl_jobs SET last_heartbeat = clock_timestamp() - interval '1 hour'"
            " WHERE id = %s AND last_heartbeat IS NOT NULL",
            job_id,
        )
        job.beat, job.stale = job.beat + 1, True

    @rule()
    def watch(self) -> None:
        stale = {i: j.beat for i, j in self.model.items() if j.stale and j.worker is not None}
        dead = {i for i, beat in stale.items() if self.suspects.get(i) == beat}
        self.suspects = stale
        assert {job.id for job in self.do(self.watchdog.run_once())} == dead
        for job_id in dead:
            self.model[job_id].recover()

    # --- promises --------------------------------------------------------------------------

    @invariant()
    def rows_are_as_modelled(self) -> None:
        rows = self.sql(
            """
            SELECT j.id, j.status, j.lease, j.worker_id, j.retry_count, j.runner_losses,
                   j.own_runner,
                   (SELECT count(*) FROM job_events e WHERE e.job_id = j.id),
                   coalesce(s.total_processed, 0)
              FROM crawl_jobs j LEFT JOIN crawl_states s ON s.job_id = j.id
            """
        )
        found = {row[0]: (S(row[1]), *row[2:]) for row in rows}
        assert found == {
            job_id: (
                j.status,
                j.lease,
                j.worker,
                j.retries,
                j.losses,
                j.own_runner,
                j.events,
                len(j.writes),
            )
            for job_id, j in self.model.items()
        }

    @invariant()
    def writes_are_of_growing_leases(self) -> None:
        for job in self.model.values():
            assert job.writes == sorted(job.writes)

    def teardown(self) -> None:
        """Every history is a chain of legal moves under leases that only grow."""
        legal = {(m.name, s, m.target) for m in MOVES for s in m.sources}
        rows = self.sql(
            "SELECT job_id, move, from_status, to_status, lease FROM job_events ORDER BY id"
        )
        for job_id in self.model:
            events = [(m, f, S(t), lease) for j, m, f, t, lease in rows if j == job_id]
            assert events[0][:3] == ("enqueue", None, S.PENDING)
            for (_, _, before, old), (move, source, target, lease) in pairwise(events):
                assert S(source) is before
                assert (move, S(source), target) in legal
                assert lease >= old

    # ---------------------------------------------------------------------------------------

    def allowed(self, move: Coroutine[Any, Any, object], legal: bool) -> bool:
        try:
            self.do(move)
        except NotAllowed:
            assert not legal
            return False
        assert legal
        return True

    def fenced(self, move: Coroutine[Any, Any, object], current: bool) -> bool:
        try:
            self.do(move)
        except LeaseLost:
            assert not current
            return False
        assert current
        return True


def test_no_sequence_of_moves_breaks_a_promise(database_url: str, settings: Settings) -> None:
    with asyncio.Runner() as runner:
        database = Database(database_url, max_size=4)
        try:
            run_state_machine_as_test(
                lambda: QueueMachine(runner, database, settings),  # type: ignore[arg-type]
                settings=PROFILE,
            )
        finally:
            runner.run(database.__aexit__())


PROFILE = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
