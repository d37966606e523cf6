"""The end of runs, as their supervisor records it: nothing, a release, a requeue or a retry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from forager.jobs.hosting import UNRENEWED
from forager.jobs.lifecycle import ACTIVE, LOSSES_LIMIT, Status
from forager.jobs.queue import Queue, log_failure
from forager.jobs.runners import HostedJob, RunnerProcess
from forager.logs import get_logger
from forager.metrics.catalog import JOB_RUNS
from forager.processes.control import StopCause

log = get_logger("supervisor")


async def settle(
    runner: RunnerProcess, ended: Sequence[HostedJob], queue: Queue, *, stopping: bool
) -> None:
    """Jobs no longer run. Those that are still under their lease did not finish: give them back."""
    leased = await queue.leased([job.lease for job in ended])
    if runner.blamed is not None and runner.exited.is_set() and not runner.own:
        await queue.run_alone(runner.blamed)
    released, lost = defaultdict(list), []
    # a completed job keeps its lease
    for job in (job for job in ended if leased.get(job.id) in ACTIVE):
        if reason := _release_reason(runner, job, stopping):
            released[reason].append(job.lease)
        elif job.ended or runner.own or job.drop_reason:
            await _fail(runner, job, queue)
        else:
            lost.append(job)
    for reason, leases in released.items():
        log.warning("jobs are given back", jobs=len(leases), reason=reason)
        await queue.release_many(leases, reason=reason)
    if lost:
        await _requeue(runner, lost, queue)


def _release_reason(runner: RunnerProcess, job: HostedJob, stopping: bool) -> str | None:
    """Why a job is given back without a fault of the job, if this is so."""
    if stopping:
        return StopCause.SHUTDOWN
    return UNRENEWED if runner.unrenewed else job.release_reason


async def _fail(runner: RunnerProcess, job: HostedJob, queue: Queue) -> None:
    """The job itself is the cause: spend a retry."""
    JOB_RUNS.add("lost")
    in_runner = "run ended before the job was finished" if job.ended else runner.how_it_ended()
    reason = job.drop_reason or in_runner
    log.warning("run lost", job=str(job.id), reason=reason)
    failed = await queue.fail(job.lease, reason)
    if failed is not None and failed.status is Status.FAILED:
        log_failure(log, failed)


async def _requeue(runner: RunnerProcess, lost: Sequence[HostedJob], queue: Queue) -> None:
    """A shared runner is gone: nothing proves that one of its jobs is the cause."""
    reason = runner.how_it_ended()
    log.warning(
        "runner lost, its jobs are requeued",
        pid=runner.pid,
        jobs=len(lost),
        reason=reason,
        blamed=None if runner.blamed is None else str(runner.blamed),
    )
    for _ in lost:
        JOB_RUNS.add("requeued")
    losses = [job.earlier_losses + _share(runner, job) for job in lost]
    await queue.requeue([job.lease for job in lost], losses=losses, reason=reason)


def _share(runner: RunnerProcess, job: HostedJob) -> int:
    """How much the loss of its runner counts for a job: nothing if another one is the cause."""
    if runner.blamed is None:
        return 1
    return LOSSES_LIMIT if runner.blamed == job.id else 0
