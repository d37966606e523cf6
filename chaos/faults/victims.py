"""Victims: processes of the cluster by role, and the jobs that they run."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from uuid import UUID

import psutil

from chaos.cluster import Cluster, Member
from forager.processes.started import MARK_VARIABLE

RUNNER = "forager.jobs"
TASK_WORKER = "forager.tasks"
READER = "forager.crawl.extraction.process"


@dataclass(frozen=True, slots=True)
class Victim:
    """A process, and the worker to which it belongs, if it runs jobs."""

    process: psutil.Process
    role: str
    worker: UUID | None = None


def supervisors(cluster: Cluster) -> list[Victim]:
    found = []
    for member in cluster.members:
        if member.pid is not None and member.slot.startswith("worker"):
            workers = (runner.worker for runner in _below(cluster, member, RUNNER, "runner"))
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(member.pid)
                found.append(Victim(process, "supervisor", next(workers, None)))
    return found


def services(cluster: Cluster, slot: str) -> list[Victim]:
    """The API, or the scheduler."""
    found = []
    for member in cluster.members:
        if member.pid is not None and member.slot == slot:
            with contextlib.suppress(psutil.Error):
                found.append(Victim(psutil.Process(member.pid), slot))
    return found


def runners(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, RUNNER, "runner")


def task_workers(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, TASK_WORKER, "task worker")


def extractors(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, READER, "extraction process")


def _descendants(cluster: Cluster, module: str, role: str) -> list[Victim]:
    return [
        victim for member in cluster.members for victim in _below(cluster, member, module, role)
    ]


def _below(cluster: Cluster, member: Member, module: str, role: str) -> list[Victim]:
    found = []
    for process in cluster.descendants(member):
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[1:3] == ["-m", module]:
                found.append(Victim(process, role, _worker(process) if module == RUNNER else None))
    return found


def _worker(process: psutil.Process) -> UUID | None:
    """The worker of a runner; None for a runner that waits for its first job."""
    mark = process.environ().get(MARK_VARIABLE, "").split()
    with contextlib.suppress(ValueError):
        return UUID(mark[0]) if mark else None
    return None
